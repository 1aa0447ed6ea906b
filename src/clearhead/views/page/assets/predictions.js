// What the model says at the shown word: the distribution, the token that came, and sampling from it.

const FEW_TOKENS = 10; // rows before "show all"
const TOP_K_STOPS = [1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200];
const TITLES = { next: "What comes after ", written: "What could be written at ", place: "What fits at " };
const MISSING = "Words of the encoder have no prediction: the decoder writes. Choose one of its heads to see what it predicts.";

// A token's name: the space in front of it as a faint sign.
function tokenName(name) {
  const spaced = name.length > 1 && name.startsWith("␣") && name[1] !== "␣";
  return make("bdi", { title: spaced ? `${name.slice(1)}, with a space in front` : name }, spaced ? make("span", { class: "space", "aria-hidden": "true" }, "␣") : null, spaced ? name.slice(1) : name);
}

const percent = (share) => `${Math.max(0, Math.min(100, share * 100)).toFixed(3)}%`;

class Predictions {
  constructor(view) {
    this.view = view;
    this.meta = view.meta.predictions;
    this.settings = { ...OFF };
    this.seed = 0;
    this.all = false;
    this.chosen = null; // a token of the shown word; its last one unless somebody chose
    this.element = make("section", { class: "card predictions", "aria-label": "Predictions", hidden: !this.meta });
    if (!this.meta) return;
    if (this.meta.missing) {
      this.element.append(make("p", { class: "quiet" }, this.meta.missing));
      return;
    }
    this.build();
    this.load();
  }

  async load() {
    const { blocks } = this.view;
    const [bytes, tokens] = await Promise.all([blocks.raw(this.meta.block), blocks.json(this.meta.tokens)]);
    this.logits = new Logits(bytes, this.meta, tokens);
    this.show();
    this.element.dataset.ready = "true";
  }

  build() {
    this.title = make("h2");
    this.came = make("p", { class: "came", "aria-live": "polite" });
    this.parts = make("p", { class: "token-choice", role: "group", "aria-label": "Tokens of the word", hidden: true });
    this.body = make("tbody");
    this.sampledHeading = make("th", { scope: "col" }, "sampled");
    const heading = make("tr", {}, make("th", { scope: "col" }, "token"), make("td", { class: "track-heading" }), make("th", { scope: "col" }, "model"), this.sampledHeading);
    const table = make("table", { class: "distribution", "aria-label": "Likeliest tokens" }, make("thead", {}, heading), this.body);
    this.more = make("button", { class: "plain more", onclick: () => this.toggleAll() });
    this.unknown = make("p", { class: "unknown", role: "status", hidden: true });
    this.scroll = make("div", { class: "table-scroll" }, table);
    const left = make("div", { class: "bars-side" }, this.scroll, this.more, make("p", { class: "quiet" }, this.meta.note));
    const columns = make("div", { class: "prediction-columns" }, left, this.sampling());
    this.content = make("div", {}, this.came, this.parts, columns);
    this.element.append(this.title, this.content);
  }

  sampling() {
    const stops = TOP_K_STOPS.filter((one) => one <= this.meta.kept);
    const off = stops.length;
    this.sliders = [
      ["temperature", "Temperature", { min: 0, max: 2, step: 0.1, value: 1 }, (one) => Math.round(one * 10) / 10, (one) => (one === 0 ? "0: greedy" : one.toFixed(1))],
      ["topK", "Top-k", { min: 0, max: off, step: 1, value: off }, (one) => (one === off ? null : stops[one]), (one) => one ?? "off"],
      ["topP", "Top-p", { min: 0.01, max: 1, step: 0.01, value: 1 }, (one) => one, (one) => (one === 1 ? "off" : two(one))],
      ["minP", "Min-p", { min: 0, max: 1, step: 0.01, value: 0 }, (one) => one, (one) => (one === 0 ? "off" : two(one))],
    ].map((parts) => makeSlider(this.settings, parts, () => this.show()));
    this.seedBox = make("input", { type: "number", min: 0, max: this.meta.uniforms.length - 1, step: 1, value: 0, class: "seed", oninput: () => this.setSeed(this.seedBox.value) });
    const next = make("button", { class: "plain", onclick: () => this.setSeed((this.seed + 1) % this.meta.uniforms.length, true) }, "Draw again");
    this.draw = make("p", { class: "draw", "aria-live": "polite" });
    this.greedy = make("p", {});
    const reset = make("button", { class: "plain", onclick: () => this.reset() }, "Reset");
    return make(
      "div",
      { class: "sampling", role: "group", "aria-label": "Sampling" },
      make("h3", {}, "Sampling", reset),
      ...this.sliders.map((one) => one.element),
      this.unknown,
      this.greedy,
      make("p", { class: "seed-line" }, make("label", { class: "field" }, "Seed ", this.seedBox), next),
      this.draw,
    );
  }

  reset() {
    for (const one of this.sliders) one.reset();
    this.show();
  }

  setSeed(seed, write = false) {
    const most = this.meta.uniforms.length - 1;
    this.seed = Math.max(0, Math.min(most, Math.trunc(Number(seed)) || 0));
    if (write) this.seedBox.value = this.seed;
    this.show();
  }

  toggleAll() {
    this.all = !this.all;
    this.show();
  }

  // The positions whose predictions belong to the shown row: those of its tokens.
  positions() {
    const { picture, shown } = this.view;
    return picture.place.predicts ? picture.rowAxis.tokens[shown] : [];
  }

  position() {
    const positions = this.positions();
    return positions.includes(this.chosen) ? this.chosen : positions[positions.length - 1];
  }

  show() {
    if (!this.logits || !this.view.picture) return;
    const { picture } = this.view;
    const kind = picture.place.predicts;
    this.content.hidden = !kind;
    if (!kind) {
      this.title.replaceChildren(make("span", { class: "quiet" }, MISSING));
      return;
    }
    const position = this.position();
    const row = this.logits.at(position);
    const found = sampled(row, this.settings);
    const came = this.logits.came(position);
    this.title.replaceChildren(TITLES[kind], "“", make("bdi", {}, this.label(kind, position)), "”");
    this.showCame(kind, came);
    this.showParts(kind, position);
    const drawn_ = found.unknown ? null : drawn(row, found, this.meta.uniforms[this.seed]);
    this.showBars(row, found, came, drawn_);
    this.showDraw(row, found, drawn_);
  }

  // The word, or its token if the word has several.
  label(kind, position) {
    const { picture, shown } = this.view;
    const word = picture.rowAxis.words[shown];
    const last = this.positions().at(-1);
    return shortened(position === last && kind !== "written" ? word : this.tokenText(kind, position), 30);
  }

  tokenText(kind, position) {
    return this.meta.texts[position + (kind === "written" ? 1 : 0)] ?? "next";
  }

  showCame(kind, came) {
    const verb = kind === "place" ? " stands there" : " came";
    const text = came && `${verb}: probability ${likely(came.probability)}, rank ${came.rank.toLocaleString("en")} of ${this.meta.vocab.toLocaleString("en")}, surprise ${two(came.bits)} bits.`;
    if (came) this.came.replaceChildren(make("b", {}, tokenName(came.name)), text);
    else this.came.textContent = kind === "place" ? "This is a mask: what stands there is not known." : "The text ends here: nothing came.";
  }

  showParts(kind, position) {
    const positions = this.positions();
    this.parts.hidden = positions.length < 2;
    const choose = (one) => () => {
      this.chosen = one;
      this.show();
    };
    const part = (one) => make("button", { class: "plain part", "aria-pressed": `${one === position}`, onclick: choose(one) }, this.tokenText(kind, one));
    this.parts.replaceChildren("Its tokens: ", ...positions.map(part));
  }

  showBars(row, found, came, drawn_) {
    const own = sampled(row, OFF);
    const changed = found.shares.some((share, i) => share !== own.shares[i]);
    this.element.classList.toggle("changed", changed);
    const count = row.logits.length;
    const listed = Math.min(count, this.all ? count : FEW_TOKENS);
    const lines = [];
    for (let i = 0; i < listed; i++) {
      const name = this.logits.tokens[row.places[i]];
      lines.push(this.line({ name: tokenName(name), own: own.shares[i], share: found.shares[i], rank: i, came: came && came.place === row.places[i], drawn: drawn_ === i }));
    }
    const sum = (shares) => shares.subarray(listed).reduce((a, b) => a + b, 0);
    if (listed < count) lines.push(this.line({ name: `${count - listed} more${this.view.live ? "" : " in this file"}`, own: sum(own.shares), share: sum(found.shares), drawn: drawn_ >= listed, kind: "sum" }));
    if (!row.whole) {
      const others = this.meta.vocab - count;
      lines.push(this.line({ name: `all other ${others.toLocaleString("en")}`, own: own.rest, share: found.rest, drawn: drawn_ === -1, kind: "rest" }));
    }
    this.body.replaceChildren(...lines);
    this.more.hidden = count <= FEW_TOKENS;
    this.more.textContent = this.all ? `Show the ${FEW_TOKENS} likeliest` : `Show all ${count}`;
    this.unknown.hidden = !found.unknown;
    this.unknown.textContent = found.unknown;
  }

  line({ name, own, share, rank = null, came = false, drawn = false, kind = "" }) {
    const asked = this.view.live?.asked;
    if (asked && rank !== null) name = make("button", { class: "plain ask", title: "Why this token?", onclick: () => asked(this.position(), rank) }, name);
    const classes = [kind, came && "came", drawn && "drawn", share === 0 && "out"].filter(Boolean).join(" ");
    const signs = [came && make("span", { class: "sign" }, "came"), drawn && make("span", { class: "sign drawn" }, "drawn")].filter(Boolean);
    const track = make("span", { class: "bar-track" }, make("span", { class: "bar-fill", style: `width:${percent(share)}` }), make("span", { class: "own", style: `inset-inline-start:${percent(own)}` }));
    const element = make(
      "tr",
      { class: classes },
      make("th", { scope: "row", dir: "auto" }, name, ...signs),
      make("td", { class: "track", "aria-hidden": "true" }, track),
      make("td", { class: "number" }, likely(own)),
      make("td", { class: "number sampled" }, share === 0 ? "out" : likely(share)),
    );
    element.dataset.share = share;
    element.dataset.own = own;
    if (rank !== null) element.dataset.rank = rank + 1;
    return element;
  }

  showDraw(row, found, place) {
    const best = this.logits.tokens[row.places[0]];
    this.greedy.replaceChildren("Greedy decoding takes ", make("b", {}, tokenName(best)), ".");
    const uniform = this.meta.uniforms[this.seed];
    this.draw.dataset.place = place ?? "";
    if (found.unknown) this.draw.textContent = "No draw: see above.";
    else if (place < 0) this.draw.textContent = `The seed's number ${four(uniform)} draws one of the tokens that this file does not hold.`;
    else this.draw.replaceChildren(`The seed's number ${four(uniform)} draws `, make("b", {}, tokenName(this.logits.tokens[row.places[place]])), found.rest > 0 ? "." : `, as generate does with seed ${this.seed}.`);
  }
}
