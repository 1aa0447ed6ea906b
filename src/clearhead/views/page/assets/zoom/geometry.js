// What is shown of a map, and where: numbers only. A position is a token; `scale` is pixels a token.

const LARGEST = 44; // pixels of a single weight, at most

class ZoomGeometry {
  constructor(rows, columns) {
    Object.assign(this, { rows, columns, width: 1, height: 1, scale: 1, x: 0, y: 0 });
  }
  get whole() {
    return Math.min(LARGEST, this.width / this.columns, this.height / this.rows);
  }
  get isWhole() {
    return this.scale <= this.whole * 1.0001;
  }
  // The room in pixels. A map that was whole stays whole.
  resize(width, height) {
    const whole = this.isWhole || this.width === 1;
    [this.width, this.height] = [Math.max(40, width), Math.max(40, height)];
    if (whole) this.scale = this.whole;
    this.clamp();
  }
  fit() {
    this.scale = this.whole;
    this.clamp();
  }
  clamp() {
    this.scale = Math.min(LARGEST, Math.max(this.whole, this.scale));
    const kept = (start, count, room) => Math.max(0, Math.min(count - room / this.scale, start));
    this.x = kept(this.x, this.columns, this.width);
    this.y = kept(this.y, this.rows, this.height);
  }
  // Larger or smaller, with what is under a point of the map staying there.
  zoom(factor, px, py) {
    const [column, row] = [this.x + px / this.scale, this.y + py / this.scale];
    this.scale = Math.min(LARGEST, Math.max(this.whole, this.scale * factor));
    this.x = column - px / this.scale;
    this.y = row - py / this.scale;
    this.clamp();
  }
  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.clamp();
  }
  // A place in the middle, at least so large.
  centre(row, column, scale = this.scale) {
    this.scale = Math.min(LARGEST, Math.max(this.whole, scale));
    this.x = column + 0.5 - this.width / this.scale / 2;
    this.y = row + 0.5 - this.height / this.scale / 2;
    this.clamp();
  }
  // Cells are at least one point of the screen, so that none is skipped.
  level(levels, ratio) {
    return Math.max(0, Math.min(levels - 1, Math.ceil(-Math.log2(this.scale * ratio) - 1e-9)));
  }
  at(px, py) {
    const [column, row] = [Math.floor(this.x + px / this.scale), Math.floor(this.y + py / this.scale)];
    if (px < 0 || py < 0 || px >= this.width || py >= this.height || row >= this.rows || column >= this.columns) return null;
    return { row, column };
  }
}
