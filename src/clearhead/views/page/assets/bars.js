// The strongest sources of the shown word as bars, and what is not among them.

const MOST_BARS = 9;

class Bars {
  constructor(view) {
    this.view = view;
    this.element = make("section", { class: "card bars", "aria-label": "Strongest sources" });
  }

  show() {
    const { view } = this;
    const parts = [this.part(view.shown, MOST_BARS, "var(--accent)")];
    for (const [place, colour] of view.pins) {
      if (place !== view.shown) parts.push(this.part(place, 3, `var(--pin-${colour})`));
    }
    this.element.replaceChildren(...parts);
  }

  part(row, most, colour) {
    const { view } = this;
    const { picture } = view;
    const word = picture.rowAxis.words[row];
    const entries = view.entries(row).slice(0, most).filter((one) => one.weight >= 0.005);
    const list = make("ol", { style: `--bar:${colour}` });
    for (const entry of entries) list.append(this.bar(row, entry));
    const title = make("h2", {}, make("bdi", {}, shortened(word, 30)), " looks at");
    const part = make("div", { class: "bars-part" }, title, list);
    if (!entries.length) part.append(make("p", { class: "quiet" }, this.nothing(row)));
    for (const line of this.rest(row)) part.append(make("p", { class: "quiet" }, line));
    return part;
  }

  bar(row, entry) {
    const { view } = this;
    const words = view.picture.columnAxis.words;
    const name = shortened(words[entry.column], 18);
    const width = `${Math.max(1, Math.min(100, entry.weight * 100))}%`;
    const open = make(
      "button",
      {
        class: "bar",
        title: "Show the steps of this number",
        onclick: () => view.openSteps(row, entry.column),
      },
      make("span", { class: "bar-name", dir: "auto" }, name, this.number(entry.column)),
      make("span", { class: "bar-track" }, make("span", { class: "bar-fill", style: `width:${width}` })),
      make("span", { class: "number" }, two(entry.weight)),
    );
    const item = make("li", {}, open);
    if (entry.head && !view.picture.single) {
      const go = () => view.choose(view.headNamed(entry.head));
      const title = `Look at head ${entry.head}`;
      item.append(make("button", { class: "head-link", title, onclick: go }, entry.head));
    }
    return item;
  }

  // In a long text the same word comes often: its number tells which one is meant.
  number(column) {
    if (this.view.picture.columnCount <= 60) return null;
    return make("span", { class: "quiet number" }, ` ${column + 1}`);
  }

  nothing(row) {
    if (this.view.picture.hiddenMass(row) > 0 && this.view.hiding) {
      return "Nothing but hidden words: the first word can only look at itself.";
    }
    return "Nothing: the mask lets this word see no other.";
  }

  // What a reader would otherwise miss: hidden words, and what the file leaves out.
  rest(row) {
    const { picture, hiding } = this.view;
    const lines = [];
    const average = picture.single ? "" : " (mean over heads)";
    const hidden = picture.hiddenMass(row);
    if (hiding && hidden >= 0.005) {
      lines.push(`${two(hidden)} on hidden words: ${this.view.hiddenNames(picture)}${average}`);
    }
    const left = picture.leftOut(row);
    if (left >= 0.005) lines.push(`${two(left)} on many weak words that this file leaves out${average}`);
    return lines;
  }
}
