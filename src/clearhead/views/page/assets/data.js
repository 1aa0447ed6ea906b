// The reader of what page/blocks.py packed: one block for each layer, decoded on first use.

function bytesOfBase64(text) {
  if (typeof Uint8Array.fromBase64 === "function") return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Reads numbers whose bytes lie in planes: all low bytes first, then all high ones.
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }
  u32() {
    const part = this.take(4);
    return part[0] + part[1] * 256 + part[2] * 65536 + part[3] * 16777216;
  }
  // Numbers of any width, whose bytes lie in as many planes.
  numbers(Type, count) {
    const size = Type.BYTES_PER_ELEMENT;
    const bytes = new Uint8Array(count * size);
    for (let plane = 0; plane < size; plane++) {
      const part = this.take(count);
      for (let i = 0; i < count; i++) bytes[i * size + plane] = part[i];
    }
    return new Type(bytes.buffer);
  }
  u16s(count) {
    const low = this.take(count);
    const high = this.take(count);
    const numbers = new Uint16Array(count);
    for (let i = 0; i < count; i++) numbers[i] = low[i] + high[i] * 256;
    return numbers;
  }
}

const [WITH_HEADS, WIDE, EXACT] = [1, 2, 4]; // as in page/blocks.py

// Rows of (column, weight in ten-thousandths), only the strongest of each row; in order of columns.
class SparseRows {
  constructor(bytes) {
    const reader = new Reader(bytes);
    const rows = reader.u32();
    const entries = reader.u32();
    const flags = reader.u32();
    const counts = reader.u16s(rows);
    const units = (count) => (flags & WIDE ? reader.numbers(Uint32Array, count) : reader.u16s(count));
    this.incomplete = reader.take(rows);
    this.hidden = reader.u16s(rows);
    this.leftOut = units(rows);
    this.columns = reader.u16s(entries);
    this.exact = flags & EXACT ? reader.numbers(Float32Array, entries) : null;
    this.units = this.exact ? null : units(entries);
    this.heads = flags & WITH_HEADS ? reader.u16s(entries) : null;
    this.starts = new Uint32Array(rows + 1);
    for (let row = 0; row < rows; row++) {
      const start = this.starts[row];
      const end = start + counts[row];
      this.starts[row + 1] = end;
      for (let i = start + 1; i < end; i++) this.columns[i] += this.columns[i - 1];
    }
  }
}

class Blocks {
  constructor(root) {
    this.root = root;
    this.kept = new Map();
  }
  // The promise of a block's bytes.
  bytes(name) {
    const element = this.root.querySelector(`script[data-block="${name}"]`);
    const bytes = bytesOfBase64(element.textContent.trim());
    return element.dataset.packed === "deflate" ? inflated(bytes) : Promise.resolve(bytes);
  }
  remembered(name, make) {
    if (!this.kept.has(name)) this.kept.set(name, this.bytes(name).then(make));
    return this.kept.get(name);
  }
  rows(name) {
    return this.remembered(name, (bytes) => new SparseRows(bytes));
  }
  json(name) {
    return this.remembered(name, (bytes) => JSON.parse(new TextDecoder().decode(bytes)));
  }
  raw(name) {
    return this.remembered(name, (bytes) => bytes);
  }
}

// One head, one layer's heads as one, or all heads as one: rows of {column, weight, head}.
class Picture {
  constructor(meta, choice, pool) {
    this.meta = meta;
    this.choice = choice;
    this.pool = pool;
    this.cache = new Map();
    const place = choice.group === undefined ? meta.layers[choice.layer] : meta.groups[choice.group];
    this.place = place;
    this.rowAxis = meta.axes[place.rows];
    this.columnAxis = meta.axes[place.columns];
    this.rowCount = this.rowAxis.words.length;
    this.columnCount = this.columnAxis.words.length;
    this.single = choice.head !== undefined;
  }
  // The heads that are pooled here or were before: "max", "mean", "sum"; null for one head.
  get pooled() {
    return this.single ? this.place.pooled || null : this.pool;
  }
  get name() {
    if (this.single) return this.place.heads[this.choice.head];
    return `${this.pool} of ${this.place.name}`;
  }
  async load(blocks) {
    const pools = this.place.pools;
    this.data = await blocks.rows(this.single ? this.place.block : pools[this.pool === "max" ? "max" : "sum"]);
    return this;
  }
  // True if the mask lets the row see the column.
  visible(row, column) {
    const band = this.meta.bands[this.place.band];
    return !band || (column >= band.low[row] && column < band.high[row]);
  }
  get masked() {
    const band = this.meta.bands[this.place.band];
    return Boolean(band) && (band.low.some((low) => low > 0) || band.high.some((high) => high < this.columnCount));
  }
  row(row) {
    if (!this.cache.has(row)) {
      if (this.cache.size > 4096) this.cache.clear();
      this.cache.set(row, this.made(row));
    }
    return this.cache.get(row);
  }
  // The row in the block: of a head its own, of several heads as one the only one.
  place_of(row) {
    return this.single ? this.choice.head * this.rowCount + row : row;
  }
  made(row) {
    const { starts, columns, units, exact, heads } = this.data;
    const found = [];
    const by = this.pool === "mean" ? this.place.heads.length : 1;
    const place = this.place_of(row);
    for (let i = starts[place]; i < starts[place + 1]; i++) {
      const head = heads ? this.place.heads[heads[i]] : this.single ? this.name : null;
      const weight = exact ? shownNumber(exact[i] / by) : units[i] / 10000;
      found.push({ column: columns[i], weight, head });
    }
    return found;
  }
  weight(row, column) {
    const entry = this.row(row).find((one) => one.column === column);
    return entry ? entry.weight : 0;
  }
  // True if weights of the row are not in this file that would not be 0.0000.
  incomplete(row) {
    return this.data.incomplete[this.place_of(row)] > 0;
  }
  // The mass on hidden words: of a head its own, of several their mean.
  hiddenMass(row) {
    return this.data.hidden[this.place_of(row)] / 10000;
  }
  leftOut(row) {
    const by = this.pool === "mean" ? this.place.heads.length : 1;
    return this.data.leftOut[this.place_of(row)] / 10000 / by;
  }
}
