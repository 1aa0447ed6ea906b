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

// Rows of (column, weight in ten-thousandths), only the strongest of each row; in order of columns.
class SparseRows {
  constructor(bytes) {
    const reader = new Reader(bytes);
    const rows = reader.u32();
    const entries = reader.u32();
    const withHeads = reader.u32() === 1;
    const counts = reader.take(rows);
    this.hidden = reader.u16s(rows);
    this.leftOut = reader.u16s(rows);
    this.columns = reader.u16s(entries);
    this.units = reader.u16s(entries);
    this.heads = withHeads ? reader.u16s(entries) : null;
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
  get name() {
    if (this.single) return this.place.heads[this.choice.head];
    return `${this.pool} of ${this.place.name}`;
  }
  async load(blocks) {
    if (this.choice.group === undefined) this.data = await blocks.rows(this.place.block);
    else {
      this.data = await blocks.rows(this.place.block[this.pool === "max" ? "max" : "mean"]);
    }
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
  made(row) {
    if (this.single) return this.read(this.choice.head * this.rowCount + row, this.name);
    if (this.choice.group === undefined) return this.pooled(row);
    const found = this.read(row, null);
    if (this.pool === "sum") for (const entry of found) entry.weight *= this.place.count;
    return found;
  }
  read(place, head) {
    const { starts, columns, units, heads } = this.data;
    const found = [];
    for (let i = starts[place]; i < starts[place + 1]; i++) {
      const name = heads ? this.place.heads[heads[i]] : head;
      found.push({ column: columns[i], weight: units[i] / 10000, head: name });
    }
    return found;
  }
  pooled(row) {
    const best = new Map();
    this.place.heads.forEach((name, head) => {
      for (const entry of this.read(head * this.rowCount + row, name)) {
        const known = best.get(entry.column);
        if (!known) best.set(entry.column, { ...entry, sum: entry.weight });
        else {
          known.sum += entry.weight;
          if (entry.weight > known.weight) Object.assign(known, { weight: entry.weight, head: name });
        }
      }
    });
    const entries = [...best.values()].sort((a, b) => a.column - b.column);
    if (this.pool !== "max") {
      const by = this.pool === "mean" ? this.place.heads.length : 1;
      for (const entry of entries) entry.weight = entry.sum / by;
    }
    return entries;
  }
  weight(row, column) {
    const entry = this.row(row).find((one) => one.column === column);
    return entry ? entry.weight : 0;
  }
  // The mass on hidden words: of a head its own, of several their mean.
  hiddenMass(row) {
    return this.meanOf(this.data.hidden, row);
  }
  leftOut(row) {
    return this.meanOf(this.data.leftOut, row);
  }
  meanOf(units, row) {
    if (this.single) return units[this.choice.head * this.rowCount + row] / 10000;
    if (this.choice.group !== undefined) return units[row] / 10000;
    const heads = this.place.heads.length;
    let sum = 0;
    for (let head = 0; head < heads; head++) sum += units[head * this.rowCount + row];
    return sum / heads / 10000;
  }
}
