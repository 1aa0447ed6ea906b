// The lens: what the model would say after each layer, at each word. The last row is its answer.

const LENS_LEGEND = "Each cell: the token that the output head finds likeliest in the state after the layer; its colour is the probability. Outlined: from here on it is the final answer.";

class LensTable {
  constructor(view) {
    this.view = view;
    const lens = view.meta.predictions?.lens;
    this.element = make("section", { class: "card lens", "aria-label": "Lens", hidden: !lens });
    if (lens && !lens.later) this.load(lens);
    else if (lens) this.offer(lens);
  }

  // It takes longer than everything else: a live page computes it when somebody asks.
  offer(lens) {
    const button = make("button", { class: "plain", onclick: () => this.load(lens) }, "Show what the model would say after each layer");
    button.addEventListener("click", () => (button.disabled = true));
    this.offered = button;
    this.element.append(button);
  }

  async load(lens) {
    this.data = await this.view.blocks.json(lens.block);
    this.offered?.remove();
    const { words, positions, appears, tokens } = this.data;
    this.said = make("p", { class: "said" });
    const heading = words.map((word, column) => make("th", { scope: "col" }, make("button", { class: "plain", onclick: () => this.goTo(positions[column]) }, shortened(word, 14))));
    this.cells = tokens.map((row, layer) => row.map((token, column) => this.cell(layer, column, token, layer >= appears[column])));
    const rows = this.cells.map((cells, layer) => make("tr", {}, make("th", { scope: "row" }, `L${layer}`), ...cells));
    this.table = make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "layer"), ...heading)), make("tbody", {}, ...rows));
    this.scroll = make("div", { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Layers and words" }, this.table);
    this.table.addEventListener("pointerleave", () => this.tell(null));
    this.element.append(
      make("h2", {}, "What the model would say after each layer"),
      make("p", { class: "quiet" }, LENS_LEGEND + this.left()),
      this.said,
      this.scroll,
    );
    this.colour();
    this.show();
    this.element.dataset.ready = "true";
  }

  // Of a long text the words around the chosen one.
  left() {
    const { words } = this.data;
    return this.data.cut ? ` This file holds the lens of ${words.length} words around the chosen one; look.lens() has all of them.` : "";
  }

  cell(layer, column, token, standing) {
    const cell = make("td", { class: standing ? "standing" : "" }, tokenName(shortened(token, 12)));
    cell.addEventListener("pointerenter", () => this.tell([layer, column]));
    const { probabilities, final } = this.data;
    cell.dataset.probability = probabilities[layer][column];
    cell.title = `${token.replace(/^␣(?=[^␣])/, "")}: ${four(probabilities[layer][column])}; the final answer: ${four(final[layer][column])}`;
    return cell;
  }

  colour() {
    const { ramp } = this.view;
    this.data.probabilities.forEach((row, layer) =>
      row.forEach((share, column) => {
        Object.assign(this.cells[layer][column].style, { background: ramp.css(share), color: ramp.inkOn(share) });
      }),
    );
  }

  goTo(position) {
    const { picture } = this.view;
    if (!picture.place.predicts) return;
    const row = picture.rowAxis.tokens.findIndex((tokens) => tokens.includes(position));
    if (row >= 0) this.view.moveTo(row);
  }

  column() {
    const own = this.view.predictions.positions();
    return this.data.positions.findIndex((position) => own.includes(position));
  }

  show() {
    if (!this.data || !this.table || !this.view.picture) return;
    const shown = this.column();
    for (const row of this.table.rows) {
      [...row.cells].forEach((cell, place) => cell.classList.toggle("shown", place - 1 === shown));
    }
    this.tell(null);
    if (shown >= 0) this.reveal(this.table.rows[0].cells[shown + 1]);
  }

  // Scrolls the table, and only the table, to a column.
  reveal(heading) {
    const { scroll, table } = this;
    const first = table.rows[0].cells[0].offsetWidth; // the names of the layers stay in view
    const { offsetLeft: left, offsetWidth: width } = heading;
    if (left - first < scroll.scrollLeft || left + width > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = left - first - (scroll.clientWidth - first - width) / 2;
  }

  // Where the answer stood for a while before it came to stay.
  earlier(column) {
    const { first, appears } = this.data;
    return first[column] < appears[column] ? `, and for the first time after L${first[column]}` : "";
  }

  tell(place) {
    const { data } = this;
    const column = place ? place[1] : this.column();
    if (column < 0) {
      this.said.textContent = "";
      return;
    }
    const answer = make("b", {}, tokenName(data.tokens.at(-1)[column]));
    const word = make("bdi", {}, shortened(data.words[column], 20));
    if (!place) this.said.replaceChildren("At “", word, "” the final answer ", answer, ` is the likeliest from L${data.appears[column]} on${this.earlier(column)}.`);
    else {
      const [layer] = place;
      const token = make("b", {}, tokenName(data.tokens[layer][column]));
      this.said.replaceChildren(`After L${layer}, at “`, word, "”: ", token, ` ${four(data.probabilities[layer][column])}; the final answer `, answer, ` ${four(data.final[layer][column])}.`);
    }
  }
}
