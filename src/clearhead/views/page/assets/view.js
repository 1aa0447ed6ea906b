// One view: its state, its components, and what the keys do. Everything lives under its root.

const KEYS = [
  ["← →", "previous, next word"],
  ["↑ ↓", "word in the line above, below"],
  ["Enter", "pin or unpin the word; several can be pinned"],
  ["[ ]", "previous, next head"],
  ["0", "all heads together"],
  ["Esc", "clear pins and close what is open"],
  ["?", "this help"],
];
const PIN_COLOURS = 4;

const sameChoice = (one, other) => one.group === other.group && one.layer === other.layer && one.head === other.head;

class View {
  // `live`: a page that is fed by a server gives its meta, its blocks and what was chosen before; it
  // is told of every change (`changed`), and which token somebody asks about (`asked`).
  constructor(root, live = null) {
    this.root = root;
    this.live = live;
    this.meta = live ? live.meta : JSON.parse(root.querySelector("script[data-meta]").textContent);
    this.blocks = live ? live.blocks : new Blocks(root);
    const kept = live?.state ?? {};
    this.pins = new Map();
    this.hovered = null;
    this.hiding = kept.hiding ?? this.meta.aids.hide !== "nothing";
    this.logarithmic = kept.logarithmic ?? this.meta.aids.colour === "log";
    this.pool = kept.pool ?? this.meta.aids.pool;
    this.cut = this.meta.cut.units;
    this.pictures = new Map();
    this.choices = this.allChoices();
    this.word = kept.word ?? this.meta.chosen.word;
    this.ramp = new Ramp(root);
    this.build();
    this.listen();
    this.first = this.headNamed(this.meta.chosen.head) || this.layerNamed(this.meta.chosen.head) || { group: 0 };
    this.alone = !live && document.querySelectorAll(".clearhead[data-view]").length === 1;
    this.choose(this.fromAddress() || this.choiceNamed(kept.head) || this.first);
  }

  // What a reader chose, for the next look at a text, or for an address.
  state() {
    return { word: this.word, head: this.headName(), pool: this.pool, hiding: this.hiding, logarithmic: this.logarithmic };
  }

  headName() {
    const { choice } = this;
    const layer = this.meta.layers[choice.layer];
    return choice.group !== undefined ? `all${choice.group}` : choice.head === undefined ? layer.name : layer.heads[choice.head];
  }

  choiceNamed(name) {
    if (!name) return null;
    if (name.startsWith("all")) return { group: Math.min(this.meta.groups.length - 1, Number(name.slice(3)) || 0) };
    return this.headNamed(name) || this.layerNamed(name);
  }

  // Nothing listens any more: another view takes its place.
  end() {
    this.ended.abort();
    this.app.remove();
  }

  // What the page's address asks for, as a link of another reader may: #word=9&head=L16H5&pool=mean.
  fromAddress() {
    if (!this.alone || !location.hash) return null;
    const asked = new URLSearchParams(location.hash.slice(1));
    const word = Number(asked.get("word") ?? NaN);
    if (Number.isInteger(word) && word >= 0) this.word = word;
    if (["max", "mean", "sum"].includes(asked.get("pool"))) this.poolPicker.value = this.pool = asked.get("pool");
    for (const [name, box] of [["hide", this.hideBox], ["log", this.logBox]]) {
      if (asked.has(name)) box.checked = asked.get(name) === "1";
    }
    this.hiding = this.hideBox.checked;
    this.logarithmic = this.logBox.checked;
    return this.choiceNamed(asked.get("head"));
  }

  // The address follows what is shown, so that it can be passed on.
  toAddress() {
    if (this.live && this.picture) this.live.changed?.(this);
    if (!this.alone || !this.picture) return;
    const state = { word: this.word, head: this.headName(), pool: this.pool, hide: Number(this.hiding), log: Number(this.logarithmic) };
    try {
      history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    } catch {
      this.alone = false; // a frame without an address of its own
    }
  }

  // Everything that can be looked at, in the order of the picker.
  allChoices() {
    const choices = this.meta.groups.map((_, group) => ({ group }));
    this.meta.layers.forEach((layer, number) => {
      if (layer.heads.length > 1) choices.push({ layer: number });
      layer.heads.forEach((_, head) => choices.push({ layer: number, head }));
    });
    return choices;
  }

  headNamed(name) {
    for (const [layer, { heads }] of this.meta.layers.entries()) {
      const head = heads.indexOf(name);
      if (head >= 0) return { layer, head };
    }
    return null;
  }

  layerNamed(name) {
    const layer = this.meta.layers.findIndex((one) => one.name === name);
    return layer >= 0 ? { layer } : null;
  }

  build() {
    const { meta } = this;
    this.headline = make("h1", { class: "headline", "aria-live": "polite" });
    this.reason = make("p", { class: "reason" });
    this.tooltip = make("div", { class: "tooltip", role: "status", hidden: true });
    this.sentence = new Sentence(this);
    this.bars = new Bars(this);
    this.predictions = new Predictions(this);
    this.lens = new LensTable(this);
    this.heatmap = new Heatmap(this);
    this.gallery = new GalleryPanel(this);
    this.steps = new Steps(this);
    this.written = new Written(this);
    const hint = meta.axes[0].words.length > 1 ? "Point at a word to see where it looks; click to pin it." : "";
    const byModel = meta.written_from === null ? "" : " In italics: what the model wrote.";
    const card = make("section", { class: "card reading", "aria-label": "The text" }, make("p", { class: "quiet hint" }, hint + byModel), this.sentence.element);
    const map = make("div", { class: meta.gallery ? "columns map-columns" : "map-columns" }, this.heatmap.element, this.gallery.element);
    const app = make(
      "main",
      { class: "app" },
      this.header(),
      make("section", { class: "top", "aria-label": "What is shown" }, this.headline, this.reason),
      this.toolbar(),
      meta.layers[0].whole ? map : null,
      make("div", { class: "columns reading-columns" }, card, this.bars.element),
      this.steps.element,
      this.predictions.element,
      this.written.element,
      meta.layers[0].whole ? null : map,
      this.lens.element,
      this.footer(),
      this.tooltip,
    );
    this.root.querySelector(".plain-text")?.remove();
    this.app = app;
    this.root.append(app);
  }

  header() {
    const theme = make("button", { class: "plain", "aria-label": "Light or dark", onclick: () => this.nextTheme() }, "◐", make("span", { class: "wide" }, " Light or dark"));
    const help = make("button", { class: "plain", onclick: () => this.toggleHelp(), title: "Keyboard (?)" }, "?", make("span", { class: "wide" }, " Keys"));
    const rows = KEYS.map(([key, what]) => make("div", {}, make("kbd", {}, key), make("span", {}, what)));
    this.help = make("div", { class: "card help", hidden: true, role: "dialog", "aria-label": "Keyboard" }, ...rows);
    const brand = make("span", { class: "brand" }, make("b", {}, "clearhead"), ` ${this.meta.title}`);
    const model = this.meta.model ? make("span", { class: "model" }, ` · ${this.meta.model}`) : null;
    brand.append(...[model].filter(Boolean));
    const picture = (kind) =>
      make("button", { class: "plain", title: `Save the map as ${kind.toUpperCase()}`, onclick: () => savePicture(this.heatmap, kind) }, kind.toUpperCase());
    return make("header", {}, brand, make("span", { class: "spacer" }), picture("png"), picture("svg"), theme, help, this.help);
  }

  toolbar() {
    const { meta } = this;
    this.headPicker = make("select", { onchange: () => this.choose(this.choices[this.headPicker.value]) });
    this.choices.forEach((choice, number) => {
      const indent = choice.head === undefined ? "" : "\u2003";
      this.headPicker.append(make("option", { value: number }, indent + this.choiceName(choice)));
    });
    this.wordPicker = make("select", { onchange: () => this.moveTo(Number(this.wordPicker.value)) });
    const step = (by, label, sign) => make("button", { class: "plain step", "aria-label": label, onclick: () => this.stepHead(by) }, sign);
    const hide = this.toggle(meta.hide_label, this.hiding, (on) => (this.hiding = on));
    const log = this.toggle("Log colours", this.logarithmic, (on) => (this.logarithmic = on));
    [this.hideBox, this.logBox] = [hide, log].map((label) => label.querySelector("input"));
    this.poolPicker = make("select", { onchange: () => this.setPool(this.poolPicker.value) });
    for (const name of ["max", "mean", "sum"]) this.poolPicker.append(make("option", { value: name }, name));
    this.poolPicker.value = this.pool;
    this.poolLabel = make("label", { class: "field" }, "Heads pooled by ", this.poolPicker);
    const several = this.choices.length > 1;
    return make(
      "div",
      { class: "toolbar", role: "toolbar", "aria-label": "What is shown" },
      make("label", { class: "field" }, "Word ", this.wordPicker),
      several ? make("span", { class: "field" }, make("label", {}, "Head ", this.headPicker), step(-1, "Previous head", "‹"), step(1, "Next head", "›")) : null,
      several ? this.poolLabel : null,
      make("span", { class: "spacer" }),
      meta.can_hide ? hide : null,
      log,
    );
  }

  toggle(label, on, set) {
    const box = make("input", { type: "checkbox", role: "switch" });
    box.checked = on;
    box.addEventListener("change", () => {
      set(box.checked);
      this.show();
    });
    return make("label", { class: "switch" }, box, make("span", { class: "knob" }), label);
  }

  footer() {
    const { meta } = this;
    const notes = meta.notes.map((note) => make("li", {}, note));
    const stamp = meta.proof
      ? make("p", { class: meta.proof.exact ? "stamp" : "stamp bad" }, make("b", {}, meta.proof.exact ? "✓ Proved " : "✗ Not proved "), meta.proof.text)
      : null;
    return make("footer", {}, make("p", { class: "caveat" }, meta.headline), stamp, make("ul", {}, ...notes));
  }

  // The query that wrote a token, in a head or, where it has that query, in what is shown.
  async goTo(row, head) {
    const { axes, groups, writing } = this.meta;
    if (head) await this.choose(this.headNamed(head));
    else if (this.picture.rowAxis !== axes[writing]) await this.choose({ group: groups.findIndex((group) => group.rows === writing) });
    this.moveTo(row);
    this.root.querySelector(".top").scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  choiceName(choice) {
    const { meta } = this;
    if (choice.group !== undefined) return meta.groups[choice.group].name;
    const layer = meta.layers[choice.layer];
    return choice.head === undefined ? `${layer.name}, its ${layer.heads.length} heads` : layer.heads[choice.head];
  }

  pictureOf(choice) {
    const pool = choice.head === undefined ? this.pool : "max";
    const key = `${choice.group},${choice.layer},${choice.head},${pool}`;
    if (!this.pictures.has(key)) {
      if (this.pictures.size > 40) this.pictures.clear();
      this.pictures.set(key, new Picture(this.meta, choice, pool));
    }
    return this.pictures.get(key);
  }

  async choose(choice, scroll = false) {
    this.choice = choice;
    const picture = await this.pictureOf(choice).load(this.blocks);
    if (this.choice !== choice) return; // somebody chose another one meanwhile
    const other = !this.picture || this.picture.rowAxis !== picture.rowAxis;
    this.picture = picture;
    if (other) {
      if (this.word >= picture.rowCount || this.wordPicker.options.length) this.word = Math.min(this.word, picture.rowCount - 1);
      this.pins.clear();
      this.fillWords();
    }
    this.headPicker.value = this.choices.findIndex((one) => sameChoice(one, choice));
    this.poolLabel.classList.toggle("off", picture.single);
    this.poolPicker.disabled = picture.single;
    this.show();
    if (other) this.sentence.reveal(this.word);
    if (this.steps.asked && picture.single) this.steps.open(this.steps.asked.row, this.steps.asked.column);
    if (scroll) this.root.querySelector(".top").scrollIntoView({ block: "nearest", behavior: "smooth" });
    this.root.dataset.ready = "true";
  }

  fillWords() {
    const { words } = this.picture.rowAxis;
    const options = words.map((word, place) => make("option", { value: place }, `${shortened(word, 24)}`));
    this.wordPicker.replaceChildren(...options);
  }

  get shown() {
    return this.hovered ?? this.word;
  }

  hiddenColumns(picture) {
    return new Set(this.hiding ? picture.place.hidden : []);
  }

  hiddenNames(picture) {
    const names = [...new Set(picture.place.hidden.map((place) => shortened(picture.columnAxis.words[place], 12)))];
    return names.length > 3 ? `${names.slice(0, 3).join(", ")} …` : names.join(", ");
  }

  // What a word looks at, the strongest first; hidden words left out.
  entries(row) {
    const hidden = this.hiddenColumns(this.picture);
    const found = this.picture.row(row).filter((entry) => !hidden.has(entry.column) && entry.weight > 0);
    return found.sort((a, b) => b.weight - a.weight || a.column - b.column);
  }

  show() {
    this.wordPicker.value = this.word;
    this.sentence.show();
    this.bars.show();
    this.predictions.show();
    this.lens.show();
    this.heatmap.show();
    this.gallery.show();
    this.written.show();
    this.showHeadline();
    this.toAddress();
  }

  // The rule of pictures.py: the strongest word that is shown; first what hidden words have, if more.
  showHeadline() {
    const { picture, shown } = this;
    const word = shortened(picture.rowAxis.words[shown], 40);
    const best = this.entries(shown).find((entry) => entry.weight >= 0.005);
    const strong = (text, kind) => make("b", { class: kind, dir: "auto" }, text);
    const rests = this.hiding ? picture.hiddenMass(shown) : 0;
    const parts = [];
    if (rests > Math.max(best ? best.weight : 0, 0.005)) {
      const average = picture.pooled ? " on average" : "";
      parts.push(`${two(rests)} rests${average} on `, make("bdi", {}, this.hiddenNames(picture)), " (hidden); of the rest, ");
    }
    parts.push(strong(word, "query"));
    if (!best) parts.push(" looks at nothing that is shown.");
    else {
      const source = shortened(picture.columnAxis.words[best.column], 40);
      const itself = picture.place.kind !== "cross" && picture.rowAxis === picture.columnAxis && best.column === shown;
      const where = picture.place.kind === "cross" ? " in the source" : "";
      parts.push(" looks most at ", strong(itself ? "itself" : source, "source"), where, this.measured(best, picture));
    }
    const left = picture.pooled === "sum" ? 0 : picture.leftOut(shown);
    if (left >= 0.2) parts.push(` ${two(left)} of its row is on weak words that are not in this file.`);
    this.headline.replaceChildren(...parts);
    const untouched = shown === this.meta.chosen.word && sameChoice(this.choice, this.first);
    // Quoted words are set apart, so that right-to-left ones do not turn the sentence around.
    this.reason.textContent = untouched ? this.meta.why.replace(/“([^”]*)”/g, "“\u2068$1\u2069”") : "";
  }

  measured(best, picture) {
    const what = this.meta.measure === "weight" ? "of its attention" : "of its weight·‖v‖";
    const { cells } = picture.place;
    if (cells > 1) {
      const how = { max: "largest weight", mean: "mean", sum: "sum" }[this.meta.aids.pool];
      return `: ${two(best.weight)}, the ${how} in a cell of up to ${cells} × ${cells} tokens of ${picture.name}.`;
    }
    if (!picture.pooled) return `: ${two(best.weight)} ${what} in head ${picture.name}.`;
    if (picture.pooled === "max" && best.head !== picture.name) return `: ${two(best.weight)} ${what} in ${best.head}, the most of any head.`;
    return `: ${two(best.weight)}, the ${picture.name}.`;
  }

  hover(place) {
    if (this.hovered === place) return;
    this.hovered = place;
    this.show();
  }

  moveTo(place) {
    this.hovered = null;
    this.word = Math.max(0, Math.min(this.picture.rowCount - 1, place));
    this.show();
    this.sentence.reveal(this.word);
  }

  click(place) {
    this.word = place;
    this.togglePin(place);
  }

  togglePin(place) {
    if (this.pins.has(place)) this.pins.delete(place);
    else {
      const used = new Set(this.pins.values());
      let colour = 0;
      while (used.has(colour) && colour < PIN_COLOURS - 1) colour++;
      this.pins.set(place, colour);
    }
    this.show();
  }

  stepHead(by) {
    const heads = this.choices.filter((one) => one.head !== undefined);
    const now = heads.findIndex((one) => one.layer === this.choice.layer && one.head === this.choice.head);
    const next = now < 0 ? (by > 0 ? 0 : heads.length - 1) : (now + by + heads.length) % heads.length;
    this.choose(heads[next]);
  }

  setPool(pool) {
    this.pool = pool;
    this.choose({ ...this.choice });
  }

  async openSteps(row, column) {
    this.word = row;
    this.hovered = null;
    this.show();
    await this.steps.open(row, column);
    this.steps.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  tip(event, lines) {
    this.tooltip.hidden = event === null;
    if (event === null) return;
    const [title, number] = lines;
    this.tooltip.replaceChildren(make("b", { dir: "auto" }, title), make("span", { class: "number" }, number));
    const box = this.root.getBoundingClientRect();
    const room = box.right - this.tooltip.offsetWidth - 12;
    this.tooltip.style.left = `${Math.min(event.clientX + 14, room) - box.left}px`;
    this.tooltip.style.top = `${event.clientY + 16 - box.top}px`;
  }

  toggleHelp(open = this.help.hidden) {
    this.help.hidden = !open;
  }

  nextTheme() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const now = this.root.dataset.theme || (dark ? "dark" : "light");
    this.root.dataset.theme = now === "dark" ? "light" : "dark";
    this.recolour();
  }

  recolour() {
    this.ramp = new Ramp(this.root);
    this.gallery.draw();
    if (this.lens.table) this.lens.colour();
    if (this.picture) this.show();
  }

  listen() {
    this.ended = new AbortController();
    const { signal } = this.ended;
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.recolour(), { signal });
    document.addEventListener("keydown", (event) => {
      const inside = this.root.contains(event.target);
      const alone = event.target === document.body && document.querySelector(".clearhead") === this.root;
      if (inside || alone) this.key(event);
    }, { signal });
  }

  key(event) {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (typing && event.key !== "Escape") return;
    if (event.ctrlKey || event.metaKey || event.altKey || !this.picture) return;
    const button = event.target.tagName === "BUTTON";
    const rightToLeft = getComputedStyle(this.sentence.rows.text).direction === "rtl" ? -1 : 1;
    const actions = {
      ArrowLeft: () => this.moveTo(this.word - rightToLeft),
      ArrowRight: () => this.moveTo(this.word + rightToLeft),
      ArrowUp: () => this.moveTo(this.sentence.neighbour(this.word, -1)),
      ArrowDown: () => this.moveTo(this.sentence.neighbour(this.word, 1)),
      Enter: button ? null : () => this.togglePin(this.word),
      "[": () => this.stepHead(-1),
      "]": () => this.stepHead(1),
      0: () => this.choose({ group: this.picture.place.group ?? this.choice.group ?? 0 }),
      Escape: () => this.clear(),
      "?": () => this.toggleHelp(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  clear() {
    this.pins.clear();
    this.hovered = null;
    this.toggleHelp(false);
    this.steps.close();
    this.show();
  }
}

// Every root of this page that has no view yet: a page may hold several.
for (const root of document.querySelectorAll(".clearhead[data-view]:not([data-started])")) {
  root.dataset.started = "true";
  root.view = new View(root);
}
