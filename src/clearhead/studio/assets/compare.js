// Two sides: two texts or two models, with linked pointers and what differs most between them.

class Comparison {
  constructor(studio) {
    this.studio = studio;
    this.element = make("section", { class: "card comparison", "aria-label": "What differs most", hidden: true });
  }

  ask() {
    const [one, other] = this.studio.panes;
    this.element.hidden = !other;
    if (!one?.view?.picture || !other?.view?.picture) return;
    this.asked = this.heads();
    one.work("comparing", "compare", { heads: this.asked }, (message) => {
      if (message.kind === "compared") this.show(message);
      else if (message.kind === "error") this.element.replaceChildren(make("p", { class: "quiet" }, message.text));
    });
  }

  heads() {
    return this.studio.panes.map(({ view }) => view.headName());
  }

  // Another head was chosen, or a word is pointed at.
  follow(pane) {
    this.point(pane);
    const [one, other] = this.studio.panes;
    if (this.alike && one.view?.picture && other.view?.picture && `${this.heads()}` !== `${this.asked}`) this.ask();
  }

  // The words whose rows differ most, on both sides.
  mark(places) {
    this.studio.panes.forEach(({ view }, side) => {
      const rows = view?.sentence.rows;
      if (!rows) return;
      const tokens = new Set(places.slice(0, 5).map((pair) => pair[side]));
      for (const [place, word] of rows.words) word.classList.toggle("differs", view.picture.rowAxis.tokens[place].some((one) => tokens.has(one)));
    });
  }

  show({ alike, heads, words, cells, places, notes }) {
    this.alike = alike;
    this.mark(places);
    const same = alike && this.asked[0] === this.asked[1];
    if (same) {
      this.element.replaceChildren(make("h2", {}, "What differs most"), make("p", { class: "quiet" }, "Nothing: both sides show the same head of the same text. Change a text, a model or a head."));
      this.element.dataset.ready = "true";
      return;
    }
    const known = (name) => this.studio.panes.some(({ view }) => view?.headNamed(name));
    const link = (name) => (known(name) ? make("button", { class: "head-link", onclick: () => this.choose(name) }, name) : name);
    const table = (title, names, rows) => make("div", {}, make("h3", {}, title), make("table", { class: "parts-live" }, make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...rows)));
    const row = (...cells) => make("tr", {}, ...cells.map((cell) => make("td", { class: typeof cell === "number" ? "number" : "" }, typeof cell === "number" ? two(cell) : cell)));
    this.element.replaceChildren(
      make("h2", {}, alike ? `What differs most between ${this.asked.join(" and ")}` : "What differs most"),
      make("p", { class: "quiet" }, "A change of 0 is the same row, 1 nothing in common. Words that differ most are underlined in both texts."),
      make("div", { class: "comparison-columns" },
        alike ? null : table("Heads", ["head", "change"], heads.slice(0, 8).map(([before, , distance]) => row(link(before), distance))),
        table("Words", alike ? ["word", "change"] : ["word", "change", "most in"], words.slice(0, 8).map(([before, after, distance, head]) => row(before === after ? before : `${before} → ${after}`, distance, ...(alike ? [] : [link(head)])))),
        table("Weights", [...(alike ? [] : ["head"]), "from", "to", "left", "right"], cells.slice(0, 8).map(([head, from, to, before, after]) => row(...(alike ? [] : [link(head)]), from, to, before, after))),
      ),
      make("ul", { class: "quiet" }, ...notes.map((note) => make("li", {}, note))),
    );
    this.element.dataset.ready = "true";
  }

  choose(name) {
    for (const { view } of this.studio.panes) {
      const choice = view?.headNamed(name);
      if (choice) view.choose(choice);
    }
  }

  // A word that is pointed at on one side is pointed at on the other, if it is the same word.
  point(pane) {
    const other = this.studio.panes[1 - pane.number];
    if (!other?.view?.picture || !pane.view?.picture || this.pointing) return;
    const place = pane.view.hovered;
    const [one, two_] = [pane.view, other.view].map((view) => view.picture.rowAxis.words);
    if (place !== null && one[place] !== two_[place]) return;
    this.pointing = true;
    other.view.hover(place);
    this.pointing = false;
  }
}
