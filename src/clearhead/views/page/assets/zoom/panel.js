// What is beside a deep zoom: the text under the pointer, search, the strongest weights, the scale.

const AROUND = 14; // tokens of real text on each side

class ZoomPanel {
  constructor(zoom) {
    this.zoom = zoom;
    this.number = make("p", { class: "zoom-number number" });
    this.what = make("p", { class: "quiet" });
    this.texts = make("div", { class: "zoom-texts" });
    this.under = make("section", { class: "card zoom-under", "aria-label": "Under the pointer" }, this.number, this.what, this.texts);
    this.list = make("ol", { class: "zoom-strongest" });
    this.best = make("section", { class: "card", "aria-label": "The strongest weights" }, make("h2", {}, "Strongest single weights"), this.list);
    this.element = make("div", { class: "zoom-side" }, this.under, this.best);
    this.legend = make("div", { class: "legend" });
    this.status = make("p", { class: "quiet zoom-status", role: "status" });
    this.found = { places: [], at: -1 };
    this.controls = this.makeControls();
    this.point(null);
    zoom.ready.then(() => this.strongest());
  }

  makeControls() {
    const { zoom } = this;
    const button = (label, title, onclick) => make("button", { class: "plain zoom-button", type: "button", title, "aria-label": title, onclick }, label);
    const middle = () => [zoom.geometry.width / 2, zoom.geometry.height / 2];
    this.field = make("input", { type: "search", class: "zoom-search", placeholder: "Search the text", "aria-label": "Search the text", oninput: () => this.search(), onkeydown: (event) => event.key === "Enter" && this.jump(event.shiftKey ? -1 : 1) });
    this.side = make("select", { "aria-label": "Where to search", onchange: () => this.search() }, make("option", { value: "rows" }, "in queries"), make("option", { value: "columns" }, "in keys"));
    this.count = make("span", { class: "quiet number", role: "status" });
    return make(
      "div",
      { class: "toolbar zoom-toolbar", role: "toolbar", "aria-label": "Zoom and search" },
      button("Whole map", "Show the whole map (0)", () => zoom.whole()),
      button("−", "Zoom out (-)", () => zoom.zoomAt(1 / 1.8, middle())),
      button("+", "Zoom in (+)", () => zoom.zoomAt(1.8, middle())),
      make("span", { class: "field" }, this.field, this.side, button("‹", "Previous place", () => this.jump(-1)), button("›", "Next place", () => this.jump(1)), this.count),
    );
  }

  search() {
    const { zoom } = this;
    const side = this.side.value;
    if (!zoom.axes) return;
    this.found = { places: zoom.axes[side].find(this.field.value), at: -1 };
    zoom.found = { rows: [], columns: [], [side]: this.found.places };
    this.tellCount();
    zoom.draw();
  }

  tellCount() {
    const { places, at } = this.found;
    if (!this.field.value.trim()) this.count.textContent = "";
    else if (!places.length) this.count.textContent = "not in this text";
    else this.count.textContent = at < 0 ? `${numbered(places.length)} places` : `${numbered(at + 1)} of ${numbered(places.length)}`;
  }

  // To the next place; along the other axis to where its query looks at itself, or stays.
  jump(by) {
    const { places } = this.found;
    if (!places.length) return;
    this.found.at = (this.found.at + by + places.length + (this.found.at < 0 && by < 0 ? 1 : 0)) % places.length;
    this.tellCount();
    const place = places[this.found.at];
    const { geometry } = this.zoom;
    const queries = this.side.value === "rows";
    const other = queries ? geometry.columns : geometry.rows;
    const same = Math.min(place, other - 1);
    this.zoom.go(queries ? place : same, queries ? same : place, Math.max(16, geometry.scale));
  }

  async strongest() {
    const { zoom } = this;
    const found = await zoom.source.strongest();
    this.best.hidden = !found.length;
    this.list.replaceChildren(
      ...found.map((one) => {
        const [query, key] = [zoom.axes.rows.name(one.row), zoom.axes.columns.name(one.column)];
        const words = [make("b", { dir: "auto" }, shortened(query, 18)), " → ", make("b", { dir: "auto", class: "source" }, shortened(key, 18))];
        const where = make("span", { class: "quiet number" }, `${numbered(one.row)} → ${numbered(one.column)}`);
        return make("li", {}, make("button", { class: "plain", type: "button", onclick: () => zoom.go(one.row, one.column) }, make("span", { class: "number" }, two(one.weight)), make("span", {}, ...words), where));
      }),
    );
  }

  // How large the cells are, and what of the map is shown.
  tell() {
    const { zoom } = this;
    const { info } = zoom.source;
    const part = zoom.visible();
    const side = 2 ** zoom.level;
    const cells = side === 1 ? "Every cell is a single weight." : `A cell is ${numbered(side)} × ${numbered(side)} tokens and shows ${this.pooled()}.`;
    const range = ([first, last]) => `${numbered(first)}–${numbered(last)}`;
    const where = zoom.geometry.isWhole ? `The whole map: ${numbered(info.rows)} × ${numbered(info.columns)} tokens.` : `Queries ${range(part.rows)}, keys ${range(part.columns)}.`;
    const left = zoom.coarser ? " Finer cells of this part are not in this file." : "";
    const counted = info.counted !== undefined && info.counted < 1 && side > 1 ? ` ${Math.floor(info.counted * 100)} % of the queries are counted so far.` : "";
    this.status.textContent = `${where} ${cells}${left}${counted}`;
    this.drawLegend();
  }

  pooled() {
    return { max: "the largest weight in it", mean: "the mean of its weights", sum: "the sum of its weights" }[this.zoom.source.info.pool];
  }

  drawLegend() {
    const { zoom } = this;
    const { info } = zoom.source;
    const most = info.most[zoom.level];
    const steps = [0, 0.25, 0.5, 0.75, 1].map((at) => zoom.ramp.css(at)).join(",");
    const scale = make("span", { class: "scale", style: `background:linear-gradient(90deg,${steps})` });
    const low = zoom.logarithmic ? (Math.max(most, 1e-4) / 10 ** LOG_DECADES).toPrecision(2) : "0";
    const parts = [make("span", { class: "number" }, low), scale, make("span", { class: "number" }, likely(most)), `${info.measure}${zoom.logarithmic ? " (log)" : ""}`];
    const masked = `rgb(${zoom.colours().masked.join(",")})`;
    parts.push(make("span", { class: "swatch", style: `background:${masked};outline:1px solid var(--line)` }), info.hidden.length ? "masked or hidden" : "masked");
    this.legend.replaceChildren(...parts);
  }

  point(cell, spoken = false) {
    const { zoom } = this;
    this.under.setAttribute("aria-live", spoken ? "polite" : "off");
    if (!cell || !zoom.axes) {
      this.number.textContent = "";
      this.what.textContent = "Point at the map: the text, its positions and the exact number appear here. Wheel, pinch or + and − zoom; drag or arrow keys move.";
      this.texts.replaceChildren();
      return;
    }
    const side = 2 ** cell.level;
    const rows = [cell.row * side, Math.min(zoom.geometry.rows, (cell.row + 1) * side)];
    const columns = [cell.column * side, Math.min(zoom.geometry.columns, (cell.column + 1) * side)];
    this.number.textContent = cell.number === TILE_MASKED ? "masked" : likely(cell.number);
    this.what.textContent = this.meaning(cell, rows, columns);
    this.texts.replaceChildren(this.text("query", zoom.axes.rows, rows), this.text("key", zoom.axes.columns, columns));
    if (side === 1 && zoom.source.info.hidden.length) this.tellHidden(cell.row);
  }

  // What the query gives to columns that the picture leaves out.
  async tellHidden(row) {
    this.row = row;
    const mass = await this.zoom.source.hiddenMass(row);
    if (mass === null || this.row !== row || this.zoom.pointed?.row !== row) return;
    this.texts.append(make("p", { class: "quiet number" }, `${two(mass)} of query ${numbered(row)} is on hidden tokens.`));
  }

  meaning(cell, rows, columns) {
    const { info } = this.zoom.source;
    if (cell.number === TILE_MASKED) return "No query here can see a key here.";
    const several = rows[1] - rows[0] > 1 || columns[1] - columns[0] > 1;
    if (several) return `${{ max: "the largest", mean: "the mean", sum: "the sum" }[info.pool]} of ${numbered(rows[1] - rows[0])} × ${numbered(columns[1] - columns[0])} numbers (${info.measure})`;
    const hidden = info.hidden.includes(columns[0]) ? ", hidden in the picture" : "";
    return `${info.measure} of one query on one key${hidden}`;
  }

  // Real text around a place, or the text that a cell stands for.
  text(what, axis, [from, to]) {
    const single = to - from === 1;
    const place = single ? numbered(from) : `${numbered(from)}–${numbered(to - 1)}`;
    const before = single ? axis.text(from - AROUND, from) : "";
    const after = single ? axis.text(to, to + AROUND) : "";
    const inside = single ? axis.name(from) : shortened(axis.text(from, Math.min(to, from + 80)).trim(), 170);
    const [lead, trail] = [single && from > AROUND ? "…" : "", single && to + AROUND < axis.length ? "…" : ""];
    const gap = (one, other) => (single && one && !/\s$/.test(one) && /^\s/.test(axis.pieces[from] ?? "") ? " " : other);
    return make(
      "p",
      { dir: "auto" },
      make("span", { class: "quiet" }, `${what} ${place} `),
      make("span", { class: "zoom-context" }, lead, before, gap(before, ""), make(single ? "mark" : "span", { class: what === "key" ? "source" : "" }, inside), after, trail),
    );
  }
}
