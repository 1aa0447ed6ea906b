// The whole head: rows are queries, columns are keys. Of a long text a window, with an overview to move it.

const WINDOW = 36; // words on a side that are drawn with their names
const OVERVIEW = 220; // pixels
const SMALL = 6; // pixels of a cell below which the map is an image

class Heatmap {
  constructor(view) {
    this.view = view;
    this.canvas = make("canvas", { class: "map", role: "img" });
    this.overview = make("canvas", { class: "overview", title: "Click to move the window" });
    this.title = make("h2", {});
    this.legend = make("div", { class: "legend" });
    this.where = make("p", { class: "quiet" });
    this.frame = make("div", { class: "map-frame" }, this.canvas, this.overview);
    this.element = make(
      "section",
      { class: "card heatmap", "aria-label": "The whole head" },
      this.title,
      this.where,
      this.frame,
      this.legend,
    );
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => {
      const cell = this.cellAt(event);
      if (cell && !this.dragged && !this.picture.place.whole) view.openSteps(cell.row, cell.column);
    });
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("pointerup", () => (this.held = null));
    this.overview.addEventListener("pointerdown", (event) => this.move(event));
    this.overview.addEventListener("pointermove", (event) => {
      if (event.buttons) this.move(event);
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  show() {
    const { picture } = this.view;
    const fresh = this.picture !== picture;
    this.picture = picture;
    if (fresh) {
      this.most = null;
      this.pooled = null;
    }
    if (fresh || this.shown !== this.view.shown) this.follow();
    this.shown = this.view.shown;
    this.draw();
  }

  // A map begins whole; the wheel and dragging change what is shown of it.
  wheel(event) {
    const cell = this.cellAt(event);
    if (!this.picture.place.whole || !cell) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, cell);
  }

  zoom(factor, { row, column }) {
    const part = this.window;
    for (const [from, size, at, count] of [["row", "rows", row, this.picture.rowCount], ["column", "columns", column, this.picture.columnCount]]) {
      const before = part[size];
      const grown = factor > 1 ? Math.ceil(before * factor) : Math.floor(before * factor);
      part[size] = Math.max(Math.min(6, count), Math.min(count, grown));
      const share = (at - part[from]) / before;
      part[from] = Math.max(0, Math.min(count - part[size], Math.round(at - share * part[size])));
    }
    this.draw();
  }

  grab(event) {
    this.dragged = false;
    if (!this.picture.place.whole) return;
    this.held = { x: event.clientX, y: event.clientY, row: this.window.row, column: this.window.column };
    this.canvas.setPointerCapture(event.pointerId);
  }

  // True while the map is dragged.
  drag(event) {
    if (!this.held || !event.buttons) return false;
    const { cell } = this.layout;
    const part = this.window;
    const [across, down] = [event.clientX - this.held.x, event.clientY - this.held.y];
    if (Math.abs(across) + Math.abs(down) > 3) this.dragged = true;
    const kept = (start, moved, count, size) => Math.max(0, Math.min(count - size, Math.round(start - moved / cell)));
    part.row = kept(this.held.row, down, this.picture.rowCount, part.rows);
    part.column = kept(this.held.column, across, this.picture.columnCount, part.columns);
    this.draw();
    return true;
  }

  // The window follows the shown word and its strongest source.
  follow() {
    const { picture, shown } = this.view;
    if (picture.place.whole) {
      this.window ??= { row: 0, column: 0, rows: picture.rowCount, columns: picture.columnCount };
      return;
    }
    const strongest = this.view.entries(shown)[0];
    const around = (count, place, now) => {
      if (count <= WINDOW) return 0;
      if (now !== undefined && place >= now && place < now + WINDOW) return now;
      return Math.max(0, Math.min(count - WINDOW, place - Math.floor(WINDOW * 0.7)));
    };
    const known = this.window || {};
    this.window = {
      row: around(picture.rowCount, shown, known.row),
      column: around(picture.columnCount, strongest ? strongest.column : shown, known.column),
      rows: Math.min(WINDOW, picture.rowCount),
      columns: Math.min(WINDOW, picture.columnCount),
    };
  }

  // The strongest weight that is not hidden: the end of the colour scale.
  strongest() {
    const hidden = this.view.hiddenColumns(this.picture);
    const key = `${hidden.size}`;
    if (this.most && this.most.key === key) return this.most.value;
    let most = 0;
    for (let row = 0; row < this.picture.rowCount; row++) {
      for (const entry of this.picture.row(row)) {
        if (entry.weight > most && !hidden.has(entry.column)) most = entry.weight;
      }
    }
    this.most = { key, value: most };
    return most;
  }

  draw() {
    if (!this.picture || !this.element.clientWidth) return;
    const { picture, window: part } = this;
    const { ramp, logarithmic } = this.view;
    const hidden = this.view.hiddenColumns(picture);
    const most = this.strongest();
    const long = picture.rowCount > WINDOW || picture.columnCount > WINDOW;
    this.title.textContent = picture.single ? `Head ${picture.name}` : picture.name;
    this.where.textContent = this.remark(long);
    const all = part.rows === picture.rowCount && part.columns === picture.columnCount;
    this.overview.hidden = !long || all;
    const style = getComputedStyle(this.element);
    const inside = this.element.clientWidth - parseFloat(style.paddingLeft) * 2;
    const wide = long && !all && inside > 620 ? inside - OVERVIEW - 24 : inside;
    this.layout = this.measured(wide, part);
    const { cell, left, top, width, height } = this.layout;
    const context = sharpCanvas(this.canvas, width, height);
    context.font = `${this.layout.font}px ${ramp.font}`;
    if (cell < SMALL) this.drawPixels(context, most, hidden);
    for (let r = 0; r < (cell < SMALL ? 0 : part.rows); r++) {
      const row = part.row + r;
      const weights = new Map(picture.row(row).map((entry) => [entry.column, entry.weight]));
      for (let c = 0; c < part.columns; c++) {
        const column = part.column + c;
        const [x, y] = [left + c * cell, top + r * cell];
        const weight = hidden.has(column) ? 0 : weights.get(column) || 0;
        const strength = share(weight, most, logarithmic);
        if (hidden.has(column) || !picture.visible(row, column)) this.blank(context, x, y, cell, hidden.has(column));
        else {
          context.fillStyle = ramp.css(strength);
          context.fillRect(x, y, cell - 1, cell - 1);
        }
        if (cell >= 30 && weight >= 0.005) {
          context.fillStyle = ramp.inkOn(strength);
          context.textAlign = "center";
          context.fillText(two(weight).replace(/^0/, ""), x + (cell - 1) / 2, y + cell / 2 + 4);
        }
      }
    }
    this.labels(context);
    this.drawLegend(most);
    if (long) this.drawOverview(most, hidden);
    const words = picture.rowAxis.words[this.view.shown];
    this.canvas.setAttribute("aria-label", `Weights of ${picture.name}; the row of ${quoted(words)} is marked`);
  }

  // Small cells as an image: one pixel each, made larger without smoothing.
  drawPixels(context, most, hidden) {
    const { picture, window: part, layout } = this;
    const { ramp, logarithmic } = this.view;
    const small = document.createElement("canvas");
    [small.width, small.height] = [part.columns, part.rows];
    const pencil = small.getContext("2d");
    const image = pencil.createImageData(part.columns, part.rows);
    const palette = Array.from({ length: 256 }, (_, i) => ramp.at(i / 255));
    for (let r = 0; r < part.rows; r++) {
      const row = part.row + r;
      for (let c = 0; c < part.columns; c++) {
        const column = part.column + c;
        const seen = picture.visible(row, column) && !hidden.has(column);
        image.data.set([...(seen ? palette[0] : ramp.masked), 255], (r * part.columns + c) * 4);
      }
      for (const { column, weight } of picture.row(row)) {
        const c = column - part.column;
        if (c < 0 || c >= part.columns || hidden.has(column)) continue;
        image.data.set([...palette[Math.round(share(weight, most, logarithmic) * 255)], 255], (r * part.columns + c) * 4);
      }
    }
    pencil.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, layout.left, layout.top, layout.cell * part.columns, layout.cell * part.rows);
  }

  remark(long) {
    const { picture, window: part } = this;
    if (picture.place.whole) {
      const all = part.rows === picture.rowCount && part.columns === picture.columnCount;
      const where = all ? "The whole map." : `Rows ${part.row + 1}–${part.row + part.rows} of ${picture.rowCount}, columns ${part.column + 1}–${part.column + part.columns} of ${picture.columnCount}.`;
      const { cells } = picture.place;
      const least = cells > 1 ? ` A cell stands for up to ${cells} × ${cells} tokens: single weights are not in this file.` : "";
      return `${where} The wheel zooms, dragging moves.${least}`;
    }
    const how = "Rows are queries (words that look), columns are keys (words they look at). Click a cell for its steps.";
    if (!long) return how;
    const rows = `words ${part.row + 1}–${part.row + part.rows} of ${picture.rowCount}`;
    return `${how} Shown: ${rows}; the overview moves the window.`;
  }

  measured(wide, part) {
    const { picture } = this;
    const names = (axis, from, count) => axis.words.slice(from, from + count);
    const probe = this.canvas.getContext("2d");
    const font = 12;
    probe.font = `${font}px ${this.view.ramp.font}`;
    const longest = (words) =>
      words.reduce((most, word) => Math.max(most, probe.measureText(shortened(word, 14)).width), 0);
    const left = Math.ceil(longest(names(picture.rowAxis, part.row, part.rows))) + 12;
    const above = Math.ceil(longest(names(picture.columnAxis, part.column, part.columns)) * 0.78) + 18;
    const room = (wide - left - above * 0.55) / part.columns;
    const high = (Math.max(320, window.innerHeight - 220) - above) / part.rows;
    const fitting = picture.place.whole ? Math.min(room, high) : Math.max(7, room);
    const cell = Math.min(38, fitting >= 4 ? Math.floor(fitting) : fitting);
    const width = Math.max(left + cell * part.columns + above * 0.6, 40);
    return { cell, left, top: above, width, height: above + cell * part.rows + 4, font };
  }

  blank(context, x, y, cell, hiddenColumn) {
    const [red, green, blue] = this.view.ramp.masked;
    context.fillStyle = `rgba(${red},${green},${blue},${hiddenColumn ? 0.9 : 0.45})`;
    context.fillRect(x, y, cell - 1, cell - 1);
    if (!hiddenColumn || cell < 6) return;
    context.strokeStyle = this.view.ramp.quiet;
    context.globalAlpha = 0.35;
    context.beginPath();
    context.moveTo(x, y + cell - 1);
    context.lineTo(x + cell - 1, y);
    context.stroke();
    context.globalAlpha = 1;
  }

  labels(context) {
    const { picture, window: part, pointed } = this;
    const { cell, left, top } = this.layout;
    const { ramp } = this.view;
    const every = Math.max(1, Math.ceil(13 / cell));
    const bold = (chosen) => {
      context.fillStyle = chosen ? ramp.accent : ramp.ink;
      context.font = `${chosen ? "600 " : ""}12px ${ramp.font}`;
    };
    // The chosen name is always drawn, and makes room for itself.
    const near = (place, other) => other !== undefined && place !== other && Math.abs(place - other) < every;
    const drawn = (place, chosen, first) => place === chosen || ((place - first) % every === 0 && !near(place, chosen));
    const query = pointed ? pointed.row : this.view.shown;
    context.textAlign = "right";
    for (let r = 0; r < part.rows; r++) {
      const row = part.row + r;
      const chosen = row === query;
      if (!drawn(row, query, part.row)) continue;
      bold(chosen);
      context.fillText(shortened(picture.rowAxis.words[row], 14), left - 7, top + r * cell + cell / 2 + 4);
      if (!chosen) continue;
      context.strokeStyle = ramp.accent;
      context.lineWidth = 1.5;
      context.strokeRect(left - 1, top + r * cell - 1, part.columns * cell + 1, cell + 1);
    }
    context.textAlign = "left";
    for (let c = 0; c < part.columns; c++) {
      const column = part.column + c;
      const chosen = column === pointed?.column;
      if (!drawn(column, pointed?.column, part.column)) continue;
      bold(chosen);
      context.save();
      context.translate(left + c * cell + cell / 2 + 3, top - 6);
      context.rotate(-0.9);
      context.fillText(shortened(picture.columnAxis.words[column], 14), 0, 0);
      context.restore();
    }
  }

  drawLegend(most) {
    const { logarithmic, ramp } = this.view;
    const steps = [0, 0.25, 0.5, 0.75, 1].map((at) => ramp.css(at)).join(",");
    const scale = make("span", { class: "scale", style: `background:linear-gradient(90deg,${steps})` });
    const low = logarithmic ? (Math.max(most, 1e-4) / 10 ** LOG_DECADES).toPrecision(2) : "0";
    const parts = [make("span", { class: "number" }, low), scale];
    parts.push(make("span", { class: "number" }, two(most)), `${this.view.meta.measure}${logarithmic ? " (log)" : ""}`);
    if (this.picture.masked) parts.push(make("span", { class: "swatch masked" }), "masked");
    if (this.view.hiding && this.picture.place.hidden.length) parts.push(make("span", { class: "swatch hidden-column" }), "hidden");
    this.legend.replaceChildren(...parts);
  }

  // The strongest weight under each pixel, so that nothing is lost between words.
  drawOverview(most, hidden) {
    const { picture } = this;
    const { ramp, logarithmic } = this.view;
    const size = OVERVIEW;
    if (!this.pooled || this.pooled.hidden !== hidden.size) {
      const cells = new Float32Array(size * size);
      const masked = new Uint8Array(size * size);
      for (let row = 0; row < picture.rowCount; row++) {
        const y = Math.floor((row * size) / picture.rowCount);
        for (const { column, weight } of picture.row(row)) {
          const at = y * size + Math.floor((column * size) / picture.columnCount);
          if (weight > cells[at] && !hidden.has(column)) cells[at] = weight;
        }
      }
      for (let y = 0; y < size; y++) {
        for (let x = 0; x < size; x++) {
          const row = Math.min(picture.rowCount - 1, Math.floor(((y + 1) * picture.rowCount) / size) - 1);
          const column = Math.floor((x * picture.columnCount) / size);
          masked[y * size + x] = row >= 0 && !picture.visible(row, column) ? 1 : 0;
        }
      }
      this.pooled = { cells, masked, hidden: hidden.size };
    }
    const small = document.createElement("canvas");
    small.width = small.height = size;
    const pencil = small.getContext("2d");
    const image = pencil.createImageData(size, size);
    const palette = Array.from({ length: 256 }, (_, i) => ramp.at(i / 255));
    const { cells, masked } = this.pooled;
    for (let i = 0; i < cells.length; i++) {
      const colour = masked[i] ? ramp.masked : palette[Math.round(share(cells[i], most, logarithmic) * 255)];
      image.data.set([colour[0], colour[1], colour[2], 255], i * 4);
    }
    pencil.putImageData(image, 0, 0);
    const context = sharpCanvas(this.overview, size, size);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, size, size);
    context.strokeStyle = ramp.accent;
    context.lineWidth = 2;
    const part = this.window;
    const across = size / picture.columnCount;
    const down = size / picture.rowCount;
    const [width, height] = [Math.max(4, part.columns * across), Math.max(4, part.rows * down)];
    context.strokeRect(part.column * across, part.row * down, width, height);
  }

  move(event) {
    const box = this.overview.getBoundingClientRect();
    const { picture, window: part } = this;
    const place = (at, size, count, shown) =>
      Math.max(0, Math.min(count - shown, Math.round((at / size) * count - shown / 2)));
    part.row = place(event.clientY - box.top, box.height, picture.rowCount, part.rows);
    part.column = place(event.clientX - box.left, box.width, picture.columnCount, part.columns);
    this.draw();
  }

  cellAt(event) {
    if (!this.layout) return null;
    const box = this.canvas.getBoundingClientRect();
    const { cell, left, top } = this.layout;
    const c = Math.floor((event.clientX - box.left - left) / cell);
    const r = Math.floor((event.clientY - box.top - top) / cell);
    if (c < 0 || r < 0 || c >= this.window.columns || r >= this.window.rows) return null;
    return { row: this.window.row + r, column: this.window.column + c };
  }

  hover(event) {
    if (this.drag(event)) return;
    const cell = this.cellAt(event);
    const same = cell && this.pointed && cell.row === this.pointed.row && cell.column === this.pointed.column;
    if (!cell) this.leave();
    else {
      if (!same) {
        this.pointed = cell;
        this.draw();
      }
      this.view.tip(event, this.tipLines(cell));
    }
  }

  tipLines({ row, column }) {
    const { picture } = this;
    const words = [picture.rowAxis.words[row], picture.columnAxis.words[column]];
    const pair = words.map((word) => shortened(word, 24)).join(" → ");
    if (!picture.visible(row, column)) return [pair, "masked: cannot be seen"];
    const places = (axis, place) => {
      const tokens = axis.tokens[place];
      return tokens.length > 1 ? `${tokens[0]}–${tokens[tokens.length - 1]}` : `${tokens[0]}`;
    };
    const where = picture.place.whole ? `, tokens ${places(picture.rowAxis, row)} → ${places(picture.columnAxis, column)}` : "";
    const entry = picture.row(row).find((one) => one.column === column);
    if (!entry) return [pair, (picture.incomplete(row) ? "too weak to be in this file" : "0.0000") + where];
    const head = picture.single || !entry.head ? "" : ` in ${entry.head}`;
    const hidden = this.view.hiddenColumns(picture).has(column) ? " (hidden)" : "";
    return [pair, `${four(entry.weight)}${head}${hidden}${where}`];
  }

  leave() {
    if (this.pointed) {
      this.pointed = null;
      this.draw();
    }
    this.view.tip(null);
  }
}
