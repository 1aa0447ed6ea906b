// Writing on: the model's tokens as they come, what it said before each, and other ways from there.

const SETTINGS = { t: "temperature", k: "topK", p: "topP" };
const REASONS = { "stop-token": "The model ended the text.", "max-tokens": "", context: "The context is full." };

class Writer {
  constructor(pane, start) {
    this.pane = pane;
    this.tokens = [];
    this.branches = []; // earlier ways, each a list of tokens
    this.selected = null;
    this.running = null;
    const number = (text, otherwise) => (text !== undefined && Number.isFinite(Number(text)) ? Number(text) : otherwise);
    this.settings = { temperature: Math.min(2, Math.max(0, number(start.t, 0.7))), topK: whole(start.k) || null, topP: Math.min(1, Math.max(0.01, number(start.p, 1))), minP: 0 };
    this.seed = whole(start.seed) ?? 0;
    this.given = (start.ids ?? "").split(".").map(whole).filter((one) => one !== undefined);
    this.build();
  }

  get ids() {
    return [...this.given, ...this.tokens.map((one) => one.token)];
  }

  settingsState() {
    const { temperature: t, topK: k, topP: p } = this.settings;
    return { t: t === 0.7 ? undefined : t, k: k ?? undefined, p: p === 1 ? undefined : p, seed: this.seed || undefined };
  }

  build() {
    this.button = make("button", { class: "main", onclick: () => (this.running ? this.stop() : this.write()) }, "Write on");
    const given = TOP_K_STOPS.concat(this.settings.topK ?? []).sort((one, other) => one - other);
    const stops = [...new Set(given), null]; // an address may have another number than the usual ones
    const sliders = [
      ["temperature", "Temperature", { min: 0, max: 2, step: 0.1, value: this.settings.temperature }, (one) => Math.round(one * 10) / 10, (one) => (one === 0 ? "0: greedy" : one.toFixed(1))],
      ["topK", "Top-k", { min: 0, max: stops.length - 1, step: 1, value: Math.max(0, stops.indexOf(this.settings.topK)) }, (one) => stops[one], (one) => one ?? "off"],
      ["topP", "Top-p", { min: 0.01, max: 1, step: 0.01, value: this.settings.topP }, (one) => one, (one) => (one === 1 ? "off" : two(one))],
    ].map((parts) => makeSlider(this.settings, parts, () => this.set()).element);
    this.controls = make("div", { class: "writing-controls" }, this.button, ...sliders);
    this.strips = make("div", { class: "strips" });
    this.note = make("span", { class: "quiet", role: "status" });
    this.detail = make("div", { class: "token-detail", hidden: true });
    const clear = make("button", { class: "plain", onclick: () => { this.clear(); this.pane.look(); } }, "Clear");
    this.element = make("section", { class: "card writing", "aria-label": "What the model writes", hidden: true }, make("p", { class: "writing-title" }, make("b", {}, "What the model writes "), make("span", { class: "quiet" }, "Click a token to see what else it could have been, and go another way. "), this.note, make("span", { class: "spacer" }), clear), this.strips, this.detail);
  }

  // The next token is sampled with other settings.
  set() {
    this.plain = this.plain && !this.tokens.length;
    if (this.running) this.pane.studio.connection.ask("settings", { pane: this.pane.number, settings: this.asked() });
    this.showDetail();
    this.pane.studio.changed(this.pane);
  }

  // Only decoders write on. Of a file that is not loaded yet, nobody knows.
  allow() {
    const { kind } = this.pane.models;
    const reads = ["encoder", "encoder-decoder", "trace"].includes(kind);
    this.button.disabled = reads;
    this.button.title = reads ? `Only decoders write on; this is ${kind === "trace" ? "a trace" : `an ${kind}`}.` : "";
  }

  // The settings as the server takes them.
  asked() {
    const { temperature, topK, topP } = this.settings;
    return { temperature, top_k: topK, top_p: topP === 1 ? null : topP };
  }

  clear() {
    if (this.running) this.stop();
    [this.tokens, this.branches, this.selected, this.given] = [[], [], null, []];
    this.show();
  }

  write(from = this.ids) {
    if (!this.pane.text.trim()) return;
    this.plain = !from.length; // one seed and its settings give this text
    const fields = { ...this.pane.about, ids: from, settings: this.asked(), count: 40, seed: this.seed };
    this.began = performance.now();
    this.count = 0;
    this.running = this.pane.studio.connection.ask("write", fields, (message) => this.heard(message));
    this.button.textContent = "Stop";
    this.note.textContent = "";
    this.show();
  }

  heard(message) {
    if (message.kind === "token") {
      this.count += 1;
      this.tokens.push(message);
      this.add(message);
    } else if (message.kind === "written") {
      this.rest(message.rest);
      this.ended(REASONS[message.reason] ?? "");
    } else if (message.kind === "stopped") this.ended("");
    else if (message.kind === "lost") this.cut();
    else {
      this.pane.heard(message);
      if (message.kind === "error") this.ended("");
    }
  }

  stop() {
    this.pane.studio.connection.ask("stop", { pane: this.pane.number });
    this.ended("");
  }

  ended(why) {
    if (this.running === null) return;
    this.pane.studio.connection.forget(this.running);
    this.running = null;
    this.button.textContent = "Continue";
    const seconds = (performance.now() - this.began) / 1000;
    this.note.textContent = `${this.count} tokens, ${(this.count / seconds).toFixed(0)} a second. ${why}`;
    this.element.dataset.ended = "true";
    this.pane.why.close();
    this.pane.look();
  }

  // One more token at the end of the strip, without drawing the others again.
  add(token) {
    this.element.hidden = false;
    if (!this.strip) this.show();
    else {
      this.strip.append(this.chip(token, this.tokens.length - 1));
      if (this.selected === null) this.showDetail(token, false);
    }
  }

  // What the last tokens hold of a character that no other token completed.
  rest(text) {
    if (!text) return;
    this.tokens.at(-1).text += text;
    this.show();
  }

  chip(token, place) {
    const name = token.text || `<${token.names?.[token.rank - 1] ?? token.token}>`;
    const probability = token.probability === null ? "" : `, probability ${likely(token.probability)}`;
    const label = `${name.trim() || "space"}${probability}`;
    const chip = make("button", { class: "chip", title: label, "aria-label": label, "aria-pressed": `${this.selected === place}`, onclick: () => this.select(place) }, name.replaceAll("\n", "⏎\n"));
    chip.style.setProperty("--strength", `${Math.round(token.probability * 100)}%`);
    return chip;
  }

  show() {
    this.element.hidden = !this.tokens.length && !this.running;
    this.button.textContent = this.running ? "Stop" : this.tokens.length ? "Continue" : "Write on";
    if (!this.running) delete this.element.dataset.ended;
    this.strip = make("div", { class: "strip", dir: "auto", role: "group", "aria-label": "Written tokens" }, ...this.tokens.map((one, place) => this.chip(one, place)));
    const others = this.branches.map((branch, number) => this.other(branch, number));
    this.strips.replaceChildren(this.strip, ...others);
    this.showDetail();
  }

  // What an address says that was written, once the model has read it.
  restore(generated) {
    if (!this.given.length || this.tokens.length) return;
    this.tokens = this.given.map((token, place) => ({ token, text: generated[place]?.text ?? "", probability: generated[place]?.probability ?? null, sources: null }));
    this.given = [];
    this.show();
  }

  // The line broke while it wrote: what has come stays.
  cut() {
    if (this.running === null) return;
    this.running = null;
    this.note.textContent = "";
    this.show();
  }

  // An earlier way, with the place where it leaves the one that is shown.
  other(branch, number) {
    let same = 0;
    while (same < branch.length && branch[same].token === this.tokens[same]?.token) same++;
    const text = (part) => part.map((one) => one.text).join("");
    const swap = make("button", { class: "plain", title: "Go on with this one", onclick: () => this.swap(number) }, "Take this one");
    return make("p", { class: "branch" }, make("span", { class: "quiet" }, text(branch.slice(0, same))), make("mark", {}, branch[same]?.text ?? ""), text(branch.slice(same + 1)), " ", swap);
  }

  swap(number) {
    [this.branches[number], this.tokens] = [this.tokens, this.branches[number]];
    this.selected = null;
    this.show();
    this.pane.look();
  }

  select(place) {
    this.selected = this.selected === place ? null : place;
    this.show();
    if (this.selected !== null) this.describe(this.selected);
    this.strip.children[place]?.focus();
  }

  // All that is known of a token: its distribution at every temperature, and where its query looked.
  describe(place) {
    const ids = this.ids.slice(0, place + 1);
    this.pane.studio.connection.ask("token", { ...this.pane.about, ids }, (message) => {
      if (message.kind !== "described") return this.pane.heard(message);
      Object.assign(this.tokens[place] ?? {}, { ids: message.ids, names: message.names, logits: message.logits, after: message.after, rests: message.rests, sources: message.sources });
      if (this.selected === place) this.showDetail();
    });
  }

  showDetail(token = this.tokens[this.selected ?? this.tokens.length - 1], chosen = this.selected !== null) {
    this.detail.hidden = !token || !(token.logits || chosen);
    if (!token) return;
    if (!token.logits) {
      this.detail.replaceChildren(make("p", { class: "quiet" }, "What it said before this token …"));
      return;
    }
    const row = { logits: Float32Array.from(token.logits), places: token.ids, after: token.after ?? -Infinity, rests: new Map(token.rests), whole: token.logits.length === token.vocab };
    const [own, found] = [sampled(row, OFF), sampled(row, this.settings)];
    const lines = token.ids.slice(0, 8).map((id, i) => this.line(token, id, i, own.shares[i], found.unknown ? null : found.shares[i]));
    const title = make("p", { class: "quiet" }, chosen ? "What it said before this token:" : "What it said before the newest token:");
    const heading = make("tr", {}, make("th", { scope: "col" }, "token"), make("td", { class: "track-heading" }), make("th", { scope: "col" }, "model"), make("th", { scope: "col" }, "sampled"), make("th", { scope: "col" }, make("span", { class: "unseen" }, "other way")));
    this.detail.replaceChildren(title, make("table", { class: "distribution" }, make("thead", {}, heading), make("tbody", {}, ...lines)), this.looked(token, chosen), found.unknown ? make("p", { class: "quiet" }, found.unknown) : "");
  }

  line(token, id, i, own, share) {
    const came = id === token.token;
    const track = make("span", { class: "bar-track" }, make("span", { class: "bar-fill", style: `width:${percent(share ?? own)}` }), make("span", { class: "own", style: `inset-inline-start:${percent(own)}` }));
    const other = came ? make("span", { class: "quiet" }, "came") : make("button", { class: "plain", "aria-label": `Go on with ${token.names[i]} instead`, onclick: () => this.branch(id, token.names[i]) }, "instead");
    return make("tr", { class: came ? "came" : "" }, make("th", { scope: "row", dir: "auto" }, tokenName(token.names[i])), make("td", { class: "track", "aria-hidden": "true" }, track), make("td", { class: "number" }, likely(own)), make("td", { class: "number" }, share === null ? "–" : share === 0 ? "out" : likely(share)), make("td", {}, other));
  }

  looked({ sources }, chosen) {
    if (!chosen) return "";
    if (!sources) return make("p", { class: "quiet" }, "Where its query looked …");
    if (!sources.length) return make("p", { class: "quiet" }, "Its query looked at nothing that stands out.");
    const parts = sources.flatMap(({ word, weight, head }) => [make("bdi", {}, shortened(word, 18)), ` ${two(weight)} `, make("button", { class: "head-link", onclick: () => this.pane.view?.choose(this.pane.view.headNamed(head), true) }, head), " "]);
    return make("p", {}, "As it was written, its query looked at ", ...parts);
  }

  // Another token at the selected place: what was written so far is kept below.
  branch(id, name) {
    const place = this.selected ?? this.tokens.length - 1;
    const token = this.tokens[place];
    const taken = token.ids.indexOf(id);
    const probability = sampled({ logits: Float32Array.from(token.logits), places: token.ids, after: token.after ?? -Infinity, rests: new Map(token.rests), whole: token.logits.length === token.vocab }, OFF).shares[taken];
    this.branches.unshift([...this.tokens]);
    this.branches.length = Math.min(this.branches.length, 4);
    const text = name.startsWith("␣") ? ` ${name.slice(1)}` : name;
    this.tokens = [...this.tokens.slice(0, place), { ...token, token: id, text, probability, sources: null }];
    this.selected = null;
    this.show();
    this.write();
  }
}
