// Wheel, drag, pinch and keys of a deep zoom.

class ZoomInput {
  constructor(zoom) {
    this.zoom = zoom;
    this.pointers = new Map();
    const { canvas } = zoom;
    canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    canvas.addEventListener("pointermove", (event) => this.pulled(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.pointers.size || zoom.point(null));
    canvas.addEventListener("dblclick", (event) => zoom.zoomAt(2.5, this.place(event)));
    canvas.addEventListener("keydown", (event) => this.typed(event));
  }

  // Where an event is within the map.
  place(event) {
    const { canvas, edges } = this.zoom;
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left - edges.left, event.clientY - box.top - edges.top];
  }

  wheeled(event) {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
    this.zoom.zoomAt(Math.exp(-Math.max(-300, Math.min(300, pixels)) / 260), this.place(event));
    this.hovered(event);
  }

  pressed(event) {
    this.zoom.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.travelled = 0;
    this.hovered(event);
  }

  pulled(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.hovered(event);
      return;
    }
    const now = [event.clientX, event.clientY];
    if (this.pointers.size === 2) this.pinched(event.pointerId, before, now);
    else this.dragged(now[0] - before[0], now[1] - before[1]);
    this.pointers.set(event.pointerId, now);
  }

  // A trembling finger is no drag.
  dragged(across, down) {
    this.travelled += Math.abs(across) + Math.abs(down);
    if (this.travelled <= 3) return;
    this.zoom.geometry.pan(across, down);
    this.zoom.moved();
  }

  // Two fingers: what is between them grows with their distance, and moves with their middle.
  pinched(id, before, now) {
    const [, other] = [...this.pointers].find(([key]) => key !== id);
    const distance = ([x, y]) => Math.hypot(x - other[0], y - other[1]);
    const middle = ([x, y]) => this.place({ clientX: (x + other[0]) / 2, clientY: (y + other[1]) / 2 });
    const [from, to] = [middle(before), middle(now)];
    const { geometry } = this.zoom;
    geometry.zoom(distance(now) / Math.max(1, distance(before)), ...from);
    geometry.pan(to[0] - from[0], to[1] - from[1]);
    this.zoom.moved();
  }

  hovered(event) {
    this.zoom.point(this.zoom.geometry.at(...this.place(event)));
  }

  typed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    const actions = {
      ArrowLeft: () => this.step(0, -step),
      ArrowRight: () => this.step(0, step),
      ArrowUp: () => this.step(-step, 0),
      ArrowDown: () => this.step(step, 0),
      "+": () => this.zoomed(1.6),
      "=": () => this.zoomed(1.6),
      "-": () => this.zoomed(1 / 1.6),
      0: () => this.zoom.whole(),
      Home: () => this.zoom.whole(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  // Around what is pointed at, or else around the middle.
  zoomed(factor) {
    const { geometry, position } = this.zoom;
    const middle = [geometry.width / 2, geometry.height / 2];
    const at = position ? [(position.column + 0.5 - geometry.x) * geometry.scale, (position.row + 0.5 - geometry.y) * geometry.scale] : middle;
    this.zoom.zoomAt(factor, at);
    this.zoom.settled().then(() => position && this.zoom.point(position, true));
  }

  // The arrow keys move what is pointed at, by a cell; the map follows.
  step(down, across) {
    const { geometry, level } = this.zoom;
    const part = this.zoom.visible();
    const start = this.zoom.position ?? { row: (part.rows[0] + part.rows[1]) >> 1, column: (part.columns[0] + part.columns[1]) >> 1 };
    const kept = (place, count) => Math.max(0, Math.min(count - 1, place));
    const next = { row: kept(start.row + down * 2 ** level, geometry.rows), column: kept(start.column + across * 2 ** level, geometry.columns) };
    const outside = (place, [first, last]) => place < first || place > last;
    if (outside(next.row, part.rows) || outside(next.column, part.columns)) {
      geometry.centre(next.row, next.column);
      this.zoom.moved();
    }
    this.zoom.position = next;
    this.zoom.settled().then(() => this.zoom.position === next && this.zoom.point(next, true));
  }
}
