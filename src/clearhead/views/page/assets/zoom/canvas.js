// The deep zoom of a map on a canvas: tiles from a source, wheel, drag, pinch and keys.

const KEPT = 240; // coloured tiles that are kept
const WRITTEN = 28; // pixels of a cell from which on its number is written

class DeepZoom {
  constructor(source, { root, logarithmic = false, onpoint = () => {}, onmove = () => {}, onpaint = () => {} }) {
    Object.assign(this, { source, root, logarithmic, onpoint, onmove, onpaint });
    const { rows, columns } = source.info;
    this.geometry = new ZoomGeometry(rows, columns);
    this.ramp = new Ramp(root);
    this.edges = new ZoomEdges(this);
    this.tiles = new Map(); // place → { state: "asked" | "absent" | "here", tile, image }
    this.found = { rows: [], columns: [] };
    this.pointed = null;
    this.canvas = make("canvas", { class: "zoom-map", tabindex: 0, role: "img", "aria-roledescription": "zoomable map" });
    this.element = make("div", { class: "zoom-frame" }, this.canvas);
    this.input = new ZoomInput(this);
    this.ready = Promise.all([source.axis("rows"), source.axis("columns")]).then(([r, c]) => {
      this.axes = { rows: r, columns: c };
      this.draw();
    });
    new ResizeObserver(() => this.resize()).observe(this.element);
  }
  get narrow() {
    return this.element.clientWidth < 620;
  }
  get level() {
    return this.geometry.level(this.source.info.levels, window.devicePixelRatio || 1);
  }
  resize() {
    const width = this.element.clientWidth;
    if (!width) return;
    const { left, top } = this.edges;
    const most = Math.max(this.narrow ? 300 : 480, window.innerHeight - (this.narrow ? 200 : 280));
    const { rows, columns } = this.geometry;
    const high = Math.min(most - top, Math.max(120, ((width - left) * rows) / columns));
    this.geometry.resize(width - left - 2, high);
    this.draw();
  }
  // Other numbers: another head, or tiles that have become complete.
  refresh(source = this.source) {
    this.source = source;
    this.tiles.clear();
    this.draw();
  }
  recolour() {
    this.ramp = new Ramp(this.root);
    this.palette = null;
    for (const one of this.tiles.values()) one.image = null;
    this.draw();
  }
  draw() {
    this.wanted ??= requestAnimationFrame(() => {
      this.wanted = null;
      this.paint();
    });
  }
  paint() {
    const { geometry, edges } = this;
    const { left, top } = edges;
    if (!this.element.clientWidth) return;
    const context = sharpCanvas(this.canvas, left + geometry.width + 2, top + geometry.height + 2);
    const right = Math.min(geometry.width, (geometry.columns - geometry.x) * geometry.scale);
    const bottom = Math.min(geometry.height, (geometry.rows - geometry.y) * geometry.scale);
    context.save();
    context.beginPath();
    context.rect(left, top, right, bottom);
    context.clip();
    context.fillStyle = this.ramp.css(0);
    context.fillRect(left, top, right, bottom);
    context.imageSmoothingEnabled = false;
    this.coarser = false;
    for (const place of this.shown()) this.paintTile(context, place);
    if (this.level === 0 && geometry.scale >= 7) this.paintCells(context);
    this.repoint();
    this.paintPointed(context);
    context.restore();
    edges.draw(context);
    this.canvas.setAttribute("aria-label", this.spoken());
    this.element.dataset.loaded = String(this.shown().every((place) => ["here", "absent"].includes(this.tiles.get(this.key(place))?.state)));
    this.onpaint();
  }
  // The tiles of a level that can be seen.
  shown(level = this.level) {
    const { geometry } = this;
    const side = this.source.info.tile * 2 ** level;
    const places = [];
    const lastRow = Math.min(geometry.rows, geometry.y + geometry.height / geometry.scale);
    const lastColumn = Math.min(geometry.columns, geometry.x + geometry.width / geometry.scale);
    for (let row = Math.floor(geometry.y / side); row * side < lastRow; row++) {
      for (let column = Math.floor(geometry.x / side); column * side < lastColumn; column++) places.push({ level, row, column });
    }
    return places;
  }
  key({ level, row, column }) {
    return `${level}/${row}/${column}`;
  }
  // What is known of a tile; it is asked for on first use.
  tileAt(place) {
    const key = this.key(place);
    let known = this.tiles.get(key);
    if (!known) {
      known = { state: "asked", tile: null, image: null };
      this.tiles.set(key, known);
      const { source } = this;
      source.tile(place.level, place.row, place.column).then(
        (tile) => {
          known.tile = tile;
          known.state = tile ? "here" : "absent";
          if (this.source === source) this.draw();
        },
        () => this.tiles.delete(key), // asked again when it is drawn again
      );
      this.forget();
    } else {
      this.tiles.delete(key); // the last used stands last
      this.tiles.set(key, known);
    }
    return known;
  }
  forget() {
    for (const [key, one] of this.tiles) {
      if (this.tiles.size <= KEPT) return;
      if (one.state !== "asked") this.tiles.delete(key);
    }
  }
  // A tile, or as long as it is not there what a higher level has of it.
  paintTile(context, place) {
    const side = this.source.info.tile * 2 ** place.level;
    const [top, left] = [place.row * side, place.column * side];
    const known = this.tileAt(place);
    let [drawn, from] = [known, place];
    while (drawn.state !== "here" && from.level + 1 < this.source.info.levels) {
      from = { level: from.level + 1, row: from.row >> 1, column: from.column >> 1 };
      drawn = this.tileAt(from);
    }
    if (known.state === "absent") this.coarser = true;
    if (drawn.state !== "here") return;
    drawn.image ??= this.image(drawn.tile, from);
    const cell = 2 ** from.level;
    const [y0, x0] = [from.row * this.source.info.tile * cell, from.column * this.source.info.tile * cell];
    const bottom = Math.min(top + side, y0 + drawn.tile.rows * cell);
    const right = Math.min(left + side, x0 + drawn.tile.columns * cell);
    const { geometry, edges } = this;
    const [dx, dy] = [edges.left + (left - geometry.x) * geometry.scale, edges.top + (top - geometry.y) * geometry.scale];
    const [dw, dh] = [(right - left) * geometry.scale, (bottom - top) * geometry.scale];
    context.drawImage(drawn.image, (left - x0) / cell, (top - y0) / cell, (right - left) / cell, (bottom - top) / cell, dx, dy, dw, dh);
  }
  // The ramp in steps, and a colour for masked cells that is not that of a weight of 0.
  colours() {
    if (!this.palette) {
      const apart = (colour) => Math.max(...colour.map((part, i) => Math.abs(part - this.ramp.at(0)[i])));
      const card = Ramp.rgb(getComputedStyle(this.root).getPropertyValue("--card"));
      const masked = apart(card) > apart(this.ramp.masked) ? card : this.ramp.masked;
      this.palette = { palette: Array.from({ length: 256 }, (_, i) => this.ramp.at(i / 255)), masked };
    }
    return this.palette;
  }
  image(tile, place) {
    const image = document.createElement("canvas");
    [image.width, image.height] = [tile.columns, tile.rows];
    const pencil = image.getContext("2d");
    const pixels = pencil.createImageData(tile.columns, tile.rows);
    const most = this.source.info.most[place.level];
    const { palette, masked } = this.colours();
    const hidden = place.level === 0 ? new Set(this.source.info.hidden) : new Set();
    const first = place.column * this.source.info.tile;
    for (let i = 0; i < tile.numbers.length; i++) {
      const number = tile.numbers[i];
      if (number === TILE_PENDING) continue;
      const blank = number === TILE_MASKED || hidden.has(first + (i % tile.columns));
      const colour = blank ? masked : palette[Math.round(Math.min(1, share(number, most, this.logarithmic)) * 255)];
      pixels.data[4 * i] = colour[0];
      pixels.data[4 * i + 1] = colour[1];
      pixels.data[4 * i + 2] = colour[2];
      pixels.data[4 * i + 3] = 255;
    }
    pencil.putImageData(pixels, 0, 0);
    return image;
  }
  // Gaps between single weights, and their numbers as soon as there is room.
  paintCells(context) {
    const { geometry, edges, ramp } = this;
    const most = this.source.info.most[0];
    const [lastRow, lastColumn] = [
      Math.min(geometry.rows, Math.ceil(geometry.y + geometry.height / geometry.scale)),
      Math.min(geometry.columns, Math.ceil(geometry.x + geometry.width / geometry.scale)),
    ];
    const hidden = new Set(this.source.info.hidden);
    context.font = `12px ${ramp.font}`;
    context.textAlign = "center";
    const gap = getComputedStyle(this.root).getPropertyValue("--card").trim();
    for (let row = Math.floor(geometry.y); row < lastRow; row++) {
      const y = edges.top + (row - geometry.y) * geometry.scale;
      context.fillStyle = gap;
      context.fillRect(edges.left, y - 0.5, geometry.width, 1);
      for (let column = Math.floor(geometry.x); geometry.scale >= WRITTEN && column < lastColumn; column++) {
        const number = this.number({ level: 0, row, column });
        if (number === null || number < 0.005 || hidden.has(column)) continue;
        context.fillStyle = ramp.inkOn(share(number, most, this.logarithmic));
        context.fillText(two(number).replace(/^0/, ""), edges.left + (column + 0.5 - geometry.x) * geometry.scale, y + geometry.scale / 2 + 4);
      }
    }
    context.fillStyle = gap;
    for (let column = Math.floor(geometry.x); column < lastColumn; column++) {
      context.fillRect(edges.left + (column - geometry.x) * geometry.scale - 0.5, edges.top, 1, geometry.height);
    }
  }
  paintPointed(context) {
    if (!this.pointed) return;
    const { geometry, edges, ramp } = this;
    const { row, column, level } = this.pointed;
    const side = 2 ** level;
    const [x, y] = [edges.left + (column * side - geometry.x) * geometry.scale, edges.top + (row * side - geometry.y) * geometry.scale];
    const size = Math.max(3, side * geometry.scale);
    context.fillStyle = ramp.accent;
    context.globalAlpha = 0.28;
    context.fillRect(edges.left, y + size / 2 - 0.5, geometry.width, 1);
    context.fillRect(x + size / 2 - 0.5, edges.top, 1, geometry.height);
    context.globalAlpha = 1;
    context.strokeStyle = ramp.accent;
    context.lineWidth = 1.5;
    context.strokeRect(x - 0.75, y - 0.75, size + 1.5, size + 1.5);
  }
  // The number of a cell as far as it is known: {level, row, column} count cells of the level.
  number({ level, row, column }) {
    const size = this.source.info.tile;
    const known = this.tiles.get(`${level}/${Math.floor(row / size)}/${Math.floor(column / size)}`);
    if (!known || known.state !== "here") return null;
    const { tile } = known;
    const [r, c] = [row % size, column % size];
    return r < tile.rows && c < tile.columns ? tile.numbers[r * tile.columns + c] : null;
  }
  // The smallest cell at a position whose number is known, from the shown level on.
  cellAt(position) {
    for (let { level } = this; level < this.source.info.levels; level++) {
      const cell = { level, row: position.row >> level, column: position.column >> level };
      const number = this.number(cell);
      if (number !== null && number !== TILE_PENDING) return { ...cell, number };
    }
    return null;
  }
  // A tile with finer or newer numbers has come under the pointer, which stays where it is.
  repoint() {
    const cell = this.position && this.cellAt(this.position);
    const { pointed } = this;
    if (!cell || (pointed && (cell.level > pointed.level || (cell.level === pointed.level && cell.number === pointed.number)))) return;
    this.pointed = cell;
    this.onpoint(cell);
  }
  point(position, spoken = false) {
    this.position = position;
    this.pointed = position ? this.cellAt(position) : null;
    this.onpoint(this.pointed, spoken);
    this.draw();
  }
  spoken() {
    const { head } = this.source.info;
    const part = this.visible();
    return `${head}: queries ${numbered(part.rows[0])} to ${numbered(part.rows[1])}, keys ${numbered(part.columns[0])} to ${numbered(part.columns[1])}`;
  }
  visible() {
    const { geometry } = this;
    const range = (start, count, room) => [Math.floor(start), Math.min(count, Math.ceil(start + room / geometry.scale)) - 1];
    return { rows: range(geometry.y, geometry.rows, geometry.height), columns: range(geometry.x, geometry.columns, geometry.width) };
  }
  moved() {
    this.draw();
    this.onmove(this);
  }
  zoomAt(factor, [x, y]) {
    this.geometry.zoom(factor, x, y);
    this.moved();
  }
  whole() {
    this.geometry.fit();
    this.moved();
  }
  go(row, column, scale = Math.max(30, this.geometry.scale)) {
    this.geometry.centre(row, column, scale);
    this.target = { row, column };
    this.moved();
    this.settled().then(() => {
      if (this.target?.row === row && this.target.column === column) this.point({ row, column }, true);
    });
  }
  // When every tile that can be seen is here, or known not to come.
  async settled() {
    for (const place of this.shown()) this.tileAt(place);
    while (this.shown().some((place) => this.tileAt(place).state === "asked")) await new Promise((done) => setTimeout(done, 15));
  }
}
