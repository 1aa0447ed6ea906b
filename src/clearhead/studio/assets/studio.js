// The page of the studio: its bar, one or two sides, and what happens when the line breaks.

const WHO = "The kids were scared of the lions, so they left right away.";
const EXAMPLES = [
  ["Who are they?", { text: WHO, word: 8 }, "they"],
  ["Why Rome?", { text: "The capital of France is Paris. The capital of Italy is", why: true }],
  ["Who gave it to whom?", { text: "When Mary and John went to the store, John gave a drink to", why: true }],
];

class Studio {
  constructor(root) {
    this.root = root;
    this.firstText = WHO;
    this.taking = new Taking(this);
    this.comparison = new Comparison(this);
    const starts = readAddress();
    this.panes = [];
    this.sides = make("div", { class: "panes" });
    root.replaceChildren(this.bar(), this.taking.panel, this.guide(), this.sides, this.comparison.element);
    for (const start of starts) this.addPane(start);
    this.connection = new Connection({ opened: () => this.opened(), lost: (pause) => this.lost(pause) });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  bar() {
    this.line = make("span", { class: "line-state quiet", role: "status" }, "connecting …");
    this.compareButton = make("button", { class: "plain", "aria-pressed": "false", onclick: () => this.toggleCompare() }, "⇆", make("span", { class: "wide" }, " Compare"));
    const theme = make("button", { class: "plain", "aria-label": "Light or dark", onclick: () => this.nextTheme() }, "◐");
    const help = make("button", { class: "plain", title: "Keyboard (?)", "aria-label": "Keys", onclick: () => this.panes[0].view?.toggleHelp() }, "?");
    return make("header", { class: "studio-bar" }, make("span", { class: "brand" }, make("b", {}, "clearhead"), " studio"), this.line, make("span", { class: "spacer" }), this.compareButton, this.taking.button, theme, help);
  }

  // Three questions to begin with.
  guide() {
    const examples = EXAMPLES.map(([name, what, word]) => make("button", { class: "example", onclick: () => this.example(what, word) }, name));
    return make("nav", { class: "guide", "aria-label": "Examples" }, make("span", { class: "quiet" }, "Type a text, or try: "), ...examples, make("button", { class: "example", onclick: () => this.chapter() }, "A whole chapter"));
  }

  // Some thousand words that are on this machine anyway: Python's manual.
  chapter() {
    this.connection.ask("chapter", {}, ({ kind, text }) => kind === "chapter" && this.panes[0].setText(text));
  }

  example({ text, why }, word) {
    const pane = this.panes[0];
    pane.kept = {};
    pane.untouched = false;
    pane.field.value = text;
    pane.writer.clear();
    pane.why.close();
    pane.fit();
    pane.look(() => {
      const place = pane.view.picture.rowAxis.words.indexOf(word);
      if (place >= 0) pane.view.moveTo(place);
      if (!why) return;
      pane.view.moveTo(pane.view.picture.rowCount - 1);
      pane.why.ask(pane.meta.tokens.ids.length - 1, { rank: 0 });
    });
  }

  addPane(start) {
    const pane = new Pane(this, this.panes.length, start);
    this.panes.push(pane);
    this.sides.append(pane.element);
    pane.fit();
    this.root.classList.toggle("two", this.panes.length > 1);
    this.compareButton?.setAttribute("aria-pressed", `${this.panes.length > 1}`);
    return pane;
  }

  toggleCompare() {
    if (this.panes.length > 1) {
      this.panes.pop().element.remove();
      this.root.classList.remove("two");
      this.comparison.element.hidden = true;
      this.compareButton.setAttribute("aria-pressed", "false");
      this.panes[0].view?.heatmap.show();
      return;
    }
    const first = this.panes[0];
    const pane = this.addPane({ model: first.model, text: first.text.replace(/\bkids\b(.*)\blions\b/, "lions$1kids"), ...(first.view ? { head: first.view.headName(), word: String(first.view.word) } : {}) });
    pane.models.fill([...first.models.models.values()]);
    pane.look();
    pane.setRoles(first.roles);
  }

  opened() {
    this.line.textContent = "";
    this.root.dataset.line = "open";
    this.models(() => {
      for (const pane of this.panes) {
        pane.models.begin(this.firstModel);
        pane.suggest();
        pane.look(() => pane.why.open());
        pane.askRoles(false);
      }
    });
  }

  lost(pause, status) {
    const why = status === NOT_THERE ? "This studio has ended, and another one runs here: open the address that it printed" : status ? "The server has no room for another page" : "The server does not answer";
    this.root.dataset.line = "lost";
    this.line.textContent = `${why}; trying again in ${Math.ceil(pause / 1000)} s …`;
    for (const pane of this.panes) pane.cut();
  }

  models(then = null) {
    this.connection.ask("models", {}, ({ kind, models, first }) => {
      if (kind !== "models") return;
      this.firstModel = first;
      for (const pane of this.panes) {
        if (!models.some((one) => one.name === pane.model)) {
          if (pane.model) this.line.textContent = `${shortened(pane.model, 28)} is not here, or not any more: this is ${first}. A dropped trace can be dropped again.`;
          pane.model = first;
        }
        pane.models.fill(models);
        pane.writer.allow();
      }
      then?.();
    });
  }

  looked() {
    if (this.panes.length > 1) this.comparison.ask();
  }

  // Something that a reader chose has changed: the address follows.
  changed(pane) {
    if (this.panes.length > 1) this.comparison.follow(pane);
    clearTimeout(this.later);
    this.later = setTimeout(() => writeAddress(this.panes), 200);
  }

  nextTheme() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const now = this.root.dataset.theme || (dark ? "dark" : "light");
    this.root.dataset.theme = now === "dark" ? "light" : "dark";
    for (const { view } of this.panes) view?.recolour();
  }

  // Keys that nobody else takes go to the first view.
  key(event) {
    if (event.key === "Escape") this.taking.toggle(false);
    if (event.target === document.body) this.panes[0].view?.key(event);
  }
}

const studioRoot = document.getElementById("studio");
studioRoot.studio = new Studio(studioRoot);
