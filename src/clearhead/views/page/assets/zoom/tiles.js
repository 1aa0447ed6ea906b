// Tiles of a map and where they come from: out of this file, or from a server. A source has
//   info: { rows, columns, levels, tile, pool, most, hidden, head, measure, shares? }
//   tile(level, row, column): the promise of { rows, columns, numbers }; null if there is none
//   axis("rows" or "columns"): the promise of an Axis
//   strongest(): the promise of [{ row, column, weight }], single weights, the largest first
//   hiddenMass(row): the promise of what a query gives to hidden columns; null if it is not known
// `most` holds the largest number of each level, outside hidden columns.

const [TILE_MASKED, TILE_PENDING] = [-1, -0.5]; // as in trace/zoom/pooling.py
const [UNITS_16, UNITS_32, FLOATS] = [0, 1, 2]; // as in page/tile_bytes.py

// The bytes of one tile; of a tile of sums the means, if `sizes` says how many weights a cell has.
function decodedTile(bytes, sizes = null) {
  const reader = new Reader(bytes);
  const [rows, columns, kind] = [reader.u32(), reader.u32(), reader.u32()];
  const count = rows * columns;
  if (kind === FLOATS) {
    const copied = reader.take(count * 4).slice();
    return { rows, columns, numbers: new Float32Array(copied.buffer) };
  }
  const units = kind === UNITS_16 ? reader.u16s(count) : reader.numbers(Uint32Array, count);
  const masked = kind === UNITS_16 ? 0xffff : 0xffffffff;
  const numbers = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    const size = sizes ? sizes(Math.floor(i / columns), i % columns) : 1;
    numbers[i] = units[i] === masked ? TILE_MASKED : units[i] / 10000 / size;
  }
  return { rows, columns, numbers };
}

// The text of rows or columns. `pieces` joined are the text; `names` are those of special tokens.
class Axis {
  constructor({ label, pieces, names }) {
    this.label = label;
    this.pieces = pieces;
    this.names = names;
    this.length = pieces.length;
  }
  name(place) {
    return this.names[place] ?? (this.pieces[place].trim() || "␣");
  }
  // Real text from one position on, on one line.
  text(from, to) {
    const parts = [];
    for (let place = Math.max(0, from); place < Math.min(this.length, to); place++) {
      parts.push(this.names[place] !== undefined && !this.pieces[place] ? this.names[place] : this.pieces[place]);
    }
    return parts.join("").replace(/\s+/g, " ");
  }
  // Positions at which a text occurs, regardless of case and of how it is cut into tokens.
  find(wanted) {
    const sought = wanted.trim().toLowerCase();
    if (!sought) return [];
    this.starts ??= this.whole();
    const found = [];
    let place = 0;
    for (let at = this.lower.indexOf(sought); at >= 0; at = this.lower.indexOf(sought, at + 1)) {
      while (place + 1 < this.length && this.starts[place + 1] <= at) place++;
      if (found[found.length - 1] !== place) found.push(place);
    }
    return found;
  }
  whole() {
    const starts = new Uint32Array(this.length);
    const parts = [];
    let at = 0;
    for (let place = 0; place < this.length; place++) {
      starts[place] = at;
      const piece = this.pieces[place].toLowerCase();
      parts.push(piece);
      at += piece.length;
    }
    this.lower = parts.join("");
    return starts;
  }
}

// Tiles in this file: those that fitted into it.
class EmbeddedTiles {
  constructor(root, info) {
    this.info = info;
    this.blocks = new Blocks(root);
    this.index = new Map();
    for (const [level, places] of info.tiles.entries()) {
      for (const [row, column, block, start, length] of places) this.index.set(`${level}/${row}/${column}`, { block, start, length });
      for (const [row, column] of info.masked[level]) this.index.set(`${level}/${row}/${column}`, { block: null });
    }
  }
  async tile(level, row, column) {
    const place = this.index.get(`${level}/${row}/${column}`);
    if (!place) return null;
    if (place.block === null) return this.blank(level, row, column);
    const packed = await this.blocks.raw(place.block);
    const bytes = await inflated(packed.subarray(place.start, place.start + place.length));
    return decodedTile(bytes, this.sizes(level, row, column));
  }
  // A tile in which no query sees a key.
  blank(level, row, column) {
    const extent = (count, tile) => Math.min(this.info.tile, Math.ceil(count / 2 ** level) - tile * this.info.tile);
    const [rows, columns] = [extent(this.info.rows, row), extent(this.info.columns, column)];
    return { rows, columns, numbers: new Float32Array(rows * columns).fill(TILE_MASKED) };
  }
  // How many weights a cell has, where the file holds sums and means are shown.
  sizes(level, row, column) {
    if (this.info.pool !== "mean" || level === 0) return null;
    const side = 2 ** level;
    const extent = (tile, cell, count) => Math.min(side, count - (tile * this.info.tile + cell) * side);
    return (r, c) => extent(row, r, this.info.rows) * extent(column, c, this.info.columns);
  }
  async axis(which) {
    return new Axis(await this.blocks.json(this.info.axes[which]));
  }
  async strongest() {
    return this.info.strongest;
  }
  // What a query gives to hidden columns.
  async hiddenMass(row) {
    const bytes = await this.blocks.raw("hidden-mass");
    return (bytes[row] + 256 * bytes[this.info.rows + row]) / 10000;
  }
}

// Tiles that are fetched: `ask` is { tile(level, row, column) → ArrayBuffer, axis(which), strongest() }.
class ServedTiles {
  constructor(info, ask) {
    this.info = info;
    this.ask = ask;
  }
  async tile(level, row, column) {
    const bytes = await this.ask.tile(level, row, column);
    return bytes ? decodedTile(new Uint8Array(bytes)) : null;
  }
  async axis(which) {
    return new Axis(await this.ask.axis(which));
  }
  async strongest() {
    return this.ask.strongest();
  }
  async hiddenMass(row) {
    return this.ask.hiddenMass ? this.ask.hiddenMass(row) : null;
  }
}
