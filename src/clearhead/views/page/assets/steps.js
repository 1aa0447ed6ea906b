// The step table: score, scaled score, softmax, softmax·v, recomputed here from q, k, v.

const MOST_STEPS = 24;

class Steps {
  constructor(view) {
    this.view = view;
    this.element = make("section", { class: "card steps", "aria-label": "Step by step", hidden: true });
  }

  async open(row, column) {
    const { view } = this;
    const entry = view.picture.row(row).find((one) => one.column === column);
    const head = view.picture.single ? view.picture.name : entry && entry.head;
    if (head) this.asked = { row, column, head };
    else this.asked = { row, column, head: view.picture.place.heads?.[0] };
    this.token = null;
    await this.show();
  }

  close() {
    this.asked = null;
    this.element.hidden = true;
  }

  async show() {
    if (!this.asked) return;
    const { row, column, head } = this.asked;
    const choice = this.view.headNamed(head);
    const layer = this.view.meta.layers[choice.layer];
    const rowAxis = this.view.meta.axes[layer.rows];
    const columnAxis = this.view.meta.axes[layer.columns];
    const word = rowAxis.words[row];
    const close = make("button", { class: "plain", "aria-label": "Close", onclick: () => this.close() }, "✕");
    const title = make("h2", { dir: "auto" }, `How ${head} computes where ${quoted(shortened(word, 24))} looks`, close);
    const vectors = this.view.meta.vectors[head];
    const body = vectors
      ? await this.table(vectors, layer, rowAxis, columnAxis, row, column)
      : await this.weightsOnly(choice, row, columnAxis, head, word);
    this.element.replaceChildren(title, ...body);
    this.element.hidden = false;
  }

  async table(vectors, layer, rowAxis, columnAxis, row, column) {
    const bytes = await this.view.blocks.raw(vectors.block);
    const numbers = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
    const { queries, keys, width, valueWidth, place, heads } = vectors;
    const tokens = rowAxis.tokens[row];
    const token = this.token ?? tokens[tokens.length - 1];
    const at = (start, index, size) => numbers.subarray(start + index * size, start + (index + 1) * size);
    const keyStart = heads * queries * width;
    const valueStart = keyStart + keys * width;
    const sumStart = valueStart + keys * valueWidth;
    const bandStart = sumStart + heads * queries;
    const query = at(place * queries * width, token, width);
    const logsum = numbers[sumStart + place * queries + token];
    const [low, high] = [numbers[bandStart + token], numbers[bandStart + queries + token]];
    const output = new Float64Array(valueWidth);
    const rows = [];
    for (let key = 0; key < keys; key++) {
      const seen = key >= low && key < high;
      const k = at(keyStart, key, width);
      let score = 0;
      for (let i = 0; i < width; i++) score += query[i] * k[i];
      let scaled = score * layer.scale;
      if (layer.softcap) scaled = layer.softcap * Math.tanh(scaled / layer.softcap);
      const weight = seen ? Math.exp(scaled - logsum) : 0;
      const value = at(valueStart, key, valueWidth);
      for (let i = 0; i < valueWidth; i++) output[i] += weight * value[i];
      const why = seen ? "" : layer.causal && key >= high ? "future" : "masked";
      rows.push({ key, why, k, score, scaled, weight, value });
    }
    const marked = new Set(columnAxis.tokens[column]);
    const shown = this.chosen(rows, marked);
    const scale = this.scaleName(layer);
    const body = make("tbody", {}, ...shown.map((one) => this.stepRow(one, columnAxis, marked)));
    const sum = rows.reduce((total, one) => total + one.weight, 0);
    const heading = ["token", "k", "v", "score = q·k", scale, "softmax", "softmax·v"];
    const head = make("thead", {}, make("tr", {}, ...heading.map((name) => make("th", { scope: "col" }, name))));
    const foot = make("tfoot", {}, make("tr", {}, make("th", { scope: "row" }, "sum"), ...Array.from({ length: 4 }, () => make("td")), make("td", { class: "number" }, two(sum)), make("td", { class: "number" }, this.vector(output))));
    const parts = [make("p", {}, "q = ", make("span", { class: "number" }, this.vector(query, 4)), ` (${width} numbers; the first ones are shown)`)];
    if (tokens.length > 1) parts.unshift(this.tokenPicker(rowAxis, tokens, token));
    parts.push(make("div", { class: "table-scroll" }, make("table", {}, head, body, foot)));
    if (shown.length < rows.length) {
      const seen = rows.filter((one) => !one.why).length;
      parts.push(make("p", { class: "quiet" }, `The ${shown.length} strongest of ${seen} visible tokens; the sum is over all.`));
    }
    return parts;
  }

  chosen(rows, marked) {
    if (rows.length <= MOST_STEPS) return rows;
    const strongest = [...rows].sort((a, b) => b.weight - a.weight).slice(0, MOST_STEPS - marked.size);
    const kept = new Set([...strongest.map((one) => one.key), ...marked]);
    return rows.filter((one) => kept.has(one.key));
  }

  stepRow({ key, why, k, score, scaled, weight, value }, axis, marked) {
    const number = (text) => make("td", { class: "number" }, text);
    const weighted = value.map((one) => one * weight);
    return make(
      "tr",
      { class: marked.has(key) ? "marked" : "" },
      make("th", { scope: "row", dir: "auto" }, shortened(axis.token_texts[key], 20)),
      number(this.vector(k)),
      number(this.vector(value)),
      number(signed(score)),
      number(why ? `−∞ ${why}` : signed(scaled)),
      number(two(weight)),
      number(this.vector(weighted)),
    );
  }

  tokenPicker(axis, tokens, token) {
    const pick = make("select", { onchange: (event) => this.pick(Number(event.target.value)) });
    for (const one of tokens) {
      const option = make("option", { value: one }, axis.token_texts[one] ?? `token ${one + 1}`);
      option.selected = one === token;
      pick.append(option);
    }
    const remark = ` The word has ${tokens.length} tokens; its row above is their mean, this is the row of one: `;
    return make("p", { class: "quiet" }, make("label", {}, remark, pick));
  }

  pick(token) {
    this.token = token;
    this.show();
  }

  scaleName({ scale, softcap }) {
    if (softcap) return "scaled, capped";
    if (scale === 1) return "score";
    const by = 1 / scale;
    return `score/${Math.abs(by - Math.round(by)) < 1e-5 ? Math.round(by) : by.toPrecision(3)}`;
  }

  vector(numbers, most = 2) {
    const parts = Array.from(numbers.slice(0, most), signed);
    return `[${parts.join(" ")}${numbers.length > most ? " …" : ""}]`;
  }

  async weightsOnly(choice, row, axis, head, word) {
    const { view } = this;
    const table = make("tbody");
    const picture = await view.pictureOf(choice).load(view.blocks);
    const entries = [...picture.row(row)];
    entries.sort((a, b) => b.weight - a.weight);
    for (const entry of entries.slice(0, MOST_STEPS)) {
      const name = make("th", { scope: "row", dir: "auto" }, shortened(axis.words[entry.column], 24));
      table.append(make("tr", {}, name, make("td", { class: "number" }, four(entry.weight))));
    }
    const heading = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "word"), make("th", { scope: "col" }, "softmax")));
    const command = `clearhead steps "…" --head ${head} --word ${word}`;
    const remark = make("p", { class: "quiet" }, view.meta.without_vectors, " ", make("code", {}, command));
    return [remark, make("div", { class: "table-scroll" }, make("table", {}, heading, table))];
  }
}
