// The written tokens, and the words that the query of each looked at.

class Written {
  constructor(view) {
    this.view = view;
    const { generated } = view.meta;
    this.rows = generated.map((one) => this.row(one));
    this.element = make("section", { class: "card written", "aria-label": "What was written", hidden: !generated.length });
    const names = [["token", ""], ["probability", ""], ["most salient sources", "sources"]];
    const heading = names.map(([name, kind]) => make("th", { scope: "col", class: kind }, name));
    const hint = "The query of the token before it writes a token. Click a token, or a head, to see where that query looks.";
    this.element.append(
      make("h2", {}, "Written tokens, and the words that their queries looked at"),
      make("p", { class: "quiet" }, hint),
      make("div", { class: "table-scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heading)), make("tbody", {}, ...this.rows))),
    );
  }

  row({ text, row, probability, sources }) {
    const go = () => this.view.goTo(row, null);
    const token = make("button", { class: "plain token", title: "See where the query that wrote it looks", onclick: go }, text);
    const looked = sources.map((source) => this.looked(row, source));
    if (!looked.length) looked.push(make("span", { class: "quiet" }, "nothing stands out"));
    const likely = probability === null ? "" : two(probability);
    const element = make(
      "tr",
      {},
      make("th", { scope: "row", dir: "auto" }, token),
      make("td", { class: "number" }, likely),
      make("td", { class: "sources" }, ...looked),
    );
    element.dataset.row = row;
    return element;
  }

  looked(row, { word, weight, head }) {
    const go = () => this.view.goTo(row, head);
    const link = make("button", { class: "head-link", title: `Look at head ${head}`, onclick: go }, head);
    return make("span", { class: "looked" }, make("bdi", {}, shortened(word, 18)), " ", make("span", { class: "number" }, two(weight)), " ", link);
  }

  // Marks the tokens that the shown word's query wrote.
  show() {
    const { picture, meta, shown } = this.view;
    const here = picture.rowAxis === meta.axes[meta.writing];
    for (const element of this.rows) element.classList.toggle("marked", here && Number(element.dataset.row) === shown);
  }
}
