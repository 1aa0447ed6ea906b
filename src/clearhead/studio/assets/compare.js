// Two sides: two texts or two models, with linked pointers and what differs most between them.

class Comparison {
  constructor(studio) {
    this.studio = studio;
    this.element = make("section", { class: "card comparison", "aria-label": "What differs most", hidden: true });
  }

  ask() {
    const [one, other] = this.studio.panes;
    this.element.hidden = !other;
    if (!one?.view || !other?.view) return;
    this.studio.connection.ask("compare", {}, (message) => {
      if (message.kind === "compared") this.show(message);
      else if (message.kind === "error") this.element.replaceChildren(make("p", { class: "quiet" }, message.text));
    });
  }

  show({ heads, words, cells, notes }) {
    const link = (name) => make("button", { class: "head-link", onclick: () => this.choose(name) }, name);
    const table = (title, names, rows) => make("div", {}, make("h3", {}, title), make("table", { class: "parts-live" }, make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, ...rows)));
    const row = (...cells) => make("tr", {}, ...cells.map((cell) => make("td", { class: typeof cell === "number" ? "number" : "" }, typeof cell === "number" ? two(cell) : cell)));
    this.element.replaceChildren(
      make("h2", {}, "What differs most"),
      make("div", { class: "comparison-columns" },
        table("Heads", ["head", "change"], heads.slice(0, 8).map(([before, , distance]) => row(link(before), distance))),
        table("Words", ["word", "change", "most in"], words.slice(0, 8).map(([before, after, distance, head]) => row(before === after ? before : `${before} → ${after}`, distance, link(head)))),
        table("Weights", ["head", "from", "to", "left", "right"], cells.slice(0, 8).map(([head, from, to, before, after]) => row(link(head), from, to, before, after))),
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
