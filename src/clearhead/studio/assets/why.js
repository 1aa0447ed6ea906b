// Why a token is predicted: what heads and words added. Heads and edges can be switched off.

const signedPart = (number) => (number < 0 ? `−${Math.abs(number).toFixed(2)}` : `+${number.toFixed(2)}`);

class WhyPanel {
  constructor(pane, start) {
    this.pane = pane;
    this.off = new Map(); // "L23H4" or "L23H4<3" → { head, source, name }
    this.element = make("section", { class: "card why-live", "aria-label": "Why", hidden: true });
    this.start = start.why === undefined ? null : start;
  }

  get shown() {
    return !this.element.hidden && this.token !== undefined;
  }

  state() {
    const off = [...this.off.values()].map(({ head, source }) => (source === undefined ? head : `${head}<${source}`));
    return { why: `${this.position}.${this.token}`, off: off.join(" ") || undefined };
  }

  // What an address asks for, once the text is there; or what a broken line has left open.
  open() {
    if (this.pending) this.ask(this.position, this.which, this.off);
    if (!this.start) return;
    const [position, token] = (this.start.why ?? "").split(".").map(whole);
    for (const one of (this.start.off ?? "").split(" ").filter((part) => /^[A-Z]\d+(H\d+|F)?(<\d+)?$/.test(part))) {
      const [head, source] = one.split("<");
      this.off.set(one, { head, source: source === undefined ? undefined : Number(source), name: one });
    }
    this.start = null;
    if (position !== undefined) this.ask(position, { token }, this.off);
  }

  close() {
    this.element.hidden = true;
    this.token = this.asked = undefined;
    this.pending = false;
    this.off.clear();
    this.pane.studio.changed?.(this.pane);
  }

  ask(position, which, off = new Map()) {
    Object.assign(this, { position, which, off, pending: false });
    this.element.hidden = false;
    this.element.replaceChildren(make("p", { class: "quiet" }, "Taking the prediction apart …"));
    const fields = { ...this.pane.about, ids: this.pane.writer.ids, position, ...which };
    delete this.element.dataset.tried;
    delete this.element.dataset.ready;
    this.changing = null;
    const number = this.pane.work("taking the prediction apart", "why", fields, (message) => {
      if (this.asked !== number) return;
      if (message.kind === "why") this.show(message);
      else if (message.kind === "effect") this.effect(message);
      else if (message.kind === "measured") this.tried();
      else if (message.kind === "lost") this.pending = !this.element.hidden && !this.element.dataset.tried;
      else {
        if (message.kind !== "progress" && !this.element.dataset.ready) this.element.hidden = true;
        this.pane.heard(message);
      }
    });
    this.asked = number;
    this.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  show(message) {
    this.found = message;
    this.token = message.token.id;
    const close = make("button", { class: "plain", "aria-label": "Close", onclick: () => this.close() }, "✕");
    this.chips = make("p", { class: "off-chips" });
    this.result = make("div", { class: "without" });
    this.hint = make("p", { class: "hint-off", role: "status" });
    const stamp = make("p", { class: message.exact ? "stamp" : "stamp bad" }, make("b", {}, message.exact ? "✓ " : "✗ "), message.proof);
    this.element.replaceChildren(
      make("div", { class: "why-title" }, make("h2", {}, message.text), close),
      make("p", {}, message.summary),
      make("p", { class: "quiet" }, "Switch a head off and see what the model says without it. The number is what the head added to the logit, directly; beside it, measured, what the model says without that head."),
      this.hint,
      make("div", { class: "why-columns" }, this.heads(message), make("div", {}, this.words(message), this.grid(message))),
      this.chips,
      this.result,
      stamp,
    );
    this.element.dataset.ready = "true";
    this.lookAt(message);
    this.measure();
    this.pane.studio.changed(this.pane);
  }

  // The view below shows where it came from: the strongest head that takes it from another word.
  lookAt({ heads, columns }) {
    const { view } = this.pane;
    const last = columns.length - 1;
    const found = heads.find(({ sources }) => sources.length && ![0, last].includes(sources[0][1]));
    const choice = found && view?.headNamed(found.name);
    const row = view?.picture?.rowAxis.tokens.findIndex((tokens) => tokens.includes(this.position)) ?? -1;
    if (!choice || row < 0) return;
    view.choose(choice).then(() => view.moveTo(row));
  }

  words({ words, rest }) {
    const listed = [...words.slice(0, 8).map(([text, , value]) => [text, value]), ...rest];
    const most = Math.max(...listed.map(([, value]) => Math.abs(value)), 1e-9);
    const rows = listed.map(([text, value]) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, shortened(text, 26)), make("td", { class: "track", "aria-hidden": "true" }, this.bar(value, most)), make("td", { class: "number" }, signedPart(value))));
    return make("div", {}, make("h3", {}, "By word, over all heads"), make("table", { class: "parts-live" }, make("tbody", {}, ...rows)));
  }

  bar(value, most) {
    return make("span", { class: "bar-track" }, make("span", { class: value < 0 ? "bar-fill against" : "bar-fill", style: `width:${percent(Math.abs(value) / most)}` }));
  }

  heads({ heads }) {
    const most = Math.max(...heads.map((one) => Math.abs(one.value)), 1e-9);
    const rows = heads.slice(0, 10).map((one) => this.head(one, most));
    return make("div", {}, make("h3", {}, "By head"), make("ul", { class: "why-heads" }, ...rows));
  }

  head({ name, value, sources }, most) {
    const toggle = this.toggle(name, { head: name }, `Switch ${name} off`);
    const from = sources.slice(0, 3).filter((one) => Math.abs(one[2]) >= 0.01).map(([word, column, part, weight]) => this.edge(name, word, column, part, weight));
    const role = this.pane.roles?.heads[name]?.[0]?.role;
    const open = make("button", { class: "head-link", title: "Look at this head", onclick: () => this.pane.view?.choose(this.pane.view.headNamed(name), true) }, name);
    return make("li", {}, toggle, open, make("span", { class: "number part" }, signedPart(value)), this.bar(value, most), make("span", { class: "effect quiet", "data-effect": name }), make("span", { class: "edges" }, from.length ? "from " : "", ...from, role ? ` · ${role}` : ""));
  }

  // What the model said in a real run without a head.
  effect({ head, token, probability, own, changed }) {
    const place = this.element.querySelector(`[data-effect="${head}"]`);
    if (!place) return;
    const said = make("b", { class: changed ? "source" : "" }, tokenName(token));
    place.replaceChildren("without it ", said, ` ${two(probability)}`);
    place.title = `Measured: without ${head} the likeliest token has ${likely(probability)}; this one has ${likely(own)}.`;
    place.classList.toggle("quiet", !changed);
    if (changed) this.changing ??= { head, token };
    this.showHint();
  }

  tried() {
    this.element.dataset.tried = "true";
    this.showHint();
  }

  // The strongest head without which the model says something else, to switch off at once.
  showHint() {
    const { head, token } = this.changing ?? {};
    if (!head) this.hint.textContent = this.element.dataset.tried ? "Without any one of these heads it still says the same: switch several off." : "";
    else if (this.off.has(head)) this.hint.replaceChildren();
    else if (this.hint.dataset.head !== head || !this.hint.childNodes.length) this.hint.replaceChildren(make("button", { class: "example", onclick: () => this.flip(head, { head, name: head }) }, `Switch ${head} off: then it says `, make("b", {}, tokenName(token))));
    this.hint.dataset.head = head ?? "";
  }

  // One edge: what the head takes from one word, which can be switched off alone.
  edge(head, word, column, part, weight) {
    const source = this.columnsOf(head)[column][1];
    const key = `${head}<${source.at(-1)}`;
    const label = `${word}, ${signedPart(part)}, weight ${two(weight ?? 0)}: switch off what ${head} takes from it`;
    const on = this.off.has(key);
    return make("button", { class: "edge", "aria-pressed": `${on}`, "aria-label": label, title: label, "data-off": key, onclick: () => this.flip(key, { head, source: source.at(-1), name: `${head} ← ${word}` }) }, make("bdi", {}, shortened(word, 14)), ` ${signedPart(part)}`);
  }

  // The words that a head reads: of cross-attention, those of the source.
  columnsOf(head) {
    return head.startsWith("C") ? this.found.source_columns : this.found.columns;
  }

  toggle(key, what, label) {
    const box = make("input", { type: "checkbox", role: "switch", "data-off": key, "aria-label": label });
    box.checked = !this.off.has(key);
    box.addEventListener("change", () => this.flip(key, { ...what, name: what.head }));
    return make("label", { class: "switch", title: label }, box, make("span", { class: "knob" }));
  }

  grid({ layers, grid }) {
    const most = Math.max(...grid.flat().map((one) => Math.abs(one ?? 0)), 1e-9);
    const element = make("div", { class: "why-grid", role: "group", "aria-label": "All heads: click one to switch it off" });
    element.style.setProperty("--heads", grid[0]?.length ?? 1);
    layers.forEach((layer, row) =>
      grid[row].forEach((value, head) => {
        if (value === null) return element.append(make("span", {}));
        const name = `${layer}H${head}`;
        const cell = make("button", { class: value < 0 ? "cell against" : "cell", "aria-label": `${name} ${signedPart(value)}`, title: `${name} ${signedPart(value)}: click to switch it off`, "aria-pressed": `${this.off.has(name)}`, "data-off": name, onclick: () => this.flip(name, { head: name, name }) });
        cell.style.setProperty("--strength", `${Math.round((Math.abs(value) / most) * 100)}%`);
        element.append(cell);
      }),
    );
    return make("div", {}, make("h3", {}, "All heads"), make("p", { class: "quiet" }, "A row for each layer. Blue is for the token, red against it. Click one to switch it off."), element);
  }

  flip(key, what) {
    if (this.off.has(key)) this.off.delete(key);
    else this.off.set(key, what);
    for (const one of this.element.querySelectorAll("[data-off]")) {
      const off = this.off.has(one.dataset.off);
      if (one.type === "checkbox") one.checked = !off;
      else one.setAttribute("aria-pressed", `${off}`);
    }
    this.measure();
    this.pane.studio.changed(this.pane);
  }

  // The word of an edge that came out of an address as a number.
  name({ head, source, name }) {
    const word = source === undefined ? null : this.columnsOf(head).find(([, tokens]) => tokens.includes(source));
    return word ? `${head} ← ${word[0]}` : name;
  }

  measure() {
    for (const what of this.off.values()) what.name = this.name(what);
    const off = [...this.off.entries()];
    this.showHint();
    const chips = off.map(([key, what]) => make("button", { class: "off-chip", "aria-label": `Switch ${what.name} on again`, onclick: () => this.flip(key, what) }, what.name, " ✕"));
    this.chips.replaceChildren(off.length ? "Switched off: " : make("span", { class: "quiet" }, "Nothing is switched off."), ...chips);
    this.result.replaceChildren();
    delete this.element.dataset.measured;
    delete this.element.dataset.continued;
    if (!off.length) return;
    this.result.append(make("p", { class: "quiet" }, "Running the model without it …"));
    const fields = { ...this.pane.about, ids: this.pane.writer.ids, position: this.position, off: off.map(([, { head, source }]) => (source === undefined ? { head } : { head, source })), write: 12 };
    this.continued = {};
    this.pane.work("running the model without it", "without", fields, (message) => {
      if (message.kind === "without") this.compare(message);
      else if (message.kind === "continued") this.told(message);
      else if (message.kind === "lost") this.pending = !this.element.hidden;
      else this.pane.heard(message);
    });
  }

  // The distribution without them beside the one with them.
  compare({ tokens }) {
    const before = tokens[0];
    const after = tokens.reduce((best, one) => (one.after > best.after ? one : best));
    const changed = before.id !== after.id;
    const names = [...this.off.values()].map((one) => one.name);
    const them = names.length > 3 ? `these ${names.length}` : names.join(", ");
    const said = changed
      ? ["Without ", make("b", {}, them), " the model says ", make("b", { class: "source" }, tokenName(after.name)), ` (${two(after.after)}) and not `, make("b", {}, tokenName(before.name)), ` (${two(before.before)} before, ${two(before.after)} now).`]
      : ["Without ", make("b", {}, them), " ", make("b", {}, tokenName(before.name)), ` is still the likeliest: ${two(before.before)} before, ${two(before.after)} now. Switch more off.`];
    const rows = [...tokens].sort((a, b) => b.after - a.after).slice(0, 8).map((one) => make("tr", { class: one === after ? "came" : "" }, make("th", { scope: "row", dir: "auto" }, tokenName(one.name)), make("td", { class: "track", "aria-hidden": "true" }, make("span", { class: "bar-track" }, make("span", { class: "bar-fill", style: `width:${percent(one.after)}` }), make("span", { class: "own", style: `inset-inline-start:${percent(one.before)}` }))), make("td", { class: "number" }, likely(one.before)), make("td", { class: "number" }, likely(one.after))));
    const heading = make("tr", {}, make("th", { scope: "col" }, "token"), make("td", { class: "track-heading" }), make("th", { scope: "col" }, "as it is"), make("th", { scope: "col" }, "without"));
    this.both = make("dl", { class: "continued" });
    this.result.replaceChildren(make("p", { class: "verdict", "aria-live": "polite" }, ...said), make("table", { class: "distribution" }, make("thead", {}, heading), make("tbody", {}, ...rows)), this.both);
    this.element.dataset.measured = "true";
  }

  told({ text, off }) {
    if (!this.both) return;
    this.both.append(make("dt", {}, off ? "It goes on, without" : "It goes on, as it is"), make("dd", { dir: "auto" }, text));
    if (off) this.element.dataset.continued = "true";
  }
}
