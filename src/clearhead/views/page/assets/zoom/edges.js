// The edges of a map: real text with its positions. Names of single tokens as soon as there is room.

const NAMED = 12; // pixels a token from which on each has its name
const numbered = (place) => place.toLocaleString("en-US");

function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= least);
}

// Text cut to the room that there is.
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low).trimEnd()}…` : "";
}

class ZoomEdges {
  constructor(zoom) {
    this.zoom = zoom;
  }
  get left() {
    return this.zoom.narrow ? 88 : 172;
  }
  get top() {
    return this.zoom.narrow ? 62 : 84;
  }
  draw(context) {
    this.rows(context);
    this.columns(context);
    this.marks(context);
  }
  style(context, chosen, quiet = false) {
    const { ramp } = this.zoom;
    context.fillStyle = chosen ? ramp.accent : quiet ? ramp.quiet : ramp.ink;
    context.font = `${chosen ? "600 " : ""}${quiet ? 11 : 12}px ${ramp.font}`;
  }
  rows(context) {
    const { geometry, axes, pointed } = this.zoom;
    const { left, top } = this;
    if (!axes) return;
    const last = Math.min(geometry.rows, geometry.y + geometry.height / geometry.scale);
    const single = geometry.scale >= NAMED;
    const step = single ? Math.ceil(13 / geometry.scale) : roundStep(38 / geometry.scale);
    for (let row = Math.ceil(geometry.y / step) * step; row < last; row += step) {
      const y = top + (row - geometry.y) * geometry.scale;
      if (single) this.rowName(context, axes.rows, row, y + geometry.scale / 2 + 4, pointed?.row === row);
      else if (y + 26 < top + geometry.height) this.rowText(context, axes.rows, row, y);
    }
  }
  rowName(context, axis, row, y, chosen) {
    const { left } = this;
    const place = numbered(row);
    this.style(context, false, true);
    context.textAlign = "left";
    const used = this.zoom.narrow && row % 5 ? 0 : context.measureText(place).width + 8;
    if (used) context.fillText(place, 4, y);
    this.style(context, chosen);
    context.textAlign = "right";
    context.fillText(fitted(context, axis.name(row), left - used - 12), left - 7, y);
  }
  rowText(context, axis, row, y) {
    const { left } = this;
    const { ramp } = this.zoom;
    context.fillStyle = ramp.quiet;
    context.fillRect(left - 6, Math.round(y), 5, 1);
    this.style(context, false, true);
    context.textAlign = "right";
    context.fillText(numbered(row), left - 9, y + 9);
    this.style(context, false);
    context.fillText(fitted(context, axis.text(row, row + 24).trim(), left - 14), left - 9, y + 24);
  }
  columns(context) {
    const { geometry, axes, pointed } = this.zoom;
    const { left, top } = this;
    if (!axes) return;
    const last = Math.min(geometry.columns, geometry.x + geometry.width / geometry.scale);
    const single = geometry.scale >= NAMED;
    const room = this.zoom.narrow ? 84 : 100;
    const step = single ? Math.ceil(13 / geometry.scale) : roundStep(room / geometry.scale);
    for (let column = Math.ceil(geometry.x / step) * step; column < last; column += step) {
      const x = left + (column - geometry.x) * geometry.scale;
      if (single) this.columnName(context, axes.columns, column, x + geometry.scale / 2 + 3, pointed?.column === column);
      else this.columnText(context, axes.columns, column, x, Math.min(step * geometry.scale, left + geometry.width - x) - 8);
    }
  }
  columnName(context, axis, column, x, chosen) {
    const { top } = this;
    context.save();
    context.translate(x, top - 6);
    context.rotate(-0.9);
    context.textAlign = "left";
    this.style(context, chosen);
    const name = fitted(context, axis.name(column), (top - 24) / 0.78);
    context.fillText(name, 0, 0);
    const used = context.measureText(name).width + 5;
    this.style(context, false, true);
    if (used + context.measureText(numbered(column)).width < (top - 12) / 0.78) context.fillText(numbered(column), used, 0);
    context.restore();
  }
  columnText(context, axis, column, x, room) {
    const { top } = this;
    if (room < 24) return;
    context.fillStyle = this.zoom.ramp.quiet;
    context.fillRect(Math.round(x), top - 6, 1, 5);
    context.textAlign = "left";
    this.style(context, false, true);
    context.fillText(numbered(column), x, top - 26);
    this.style(context, false);
    context.fillText(fitted(context, axis.text(column, column + 24).trim(), room), x, top - 11);
  }
  // Places that were searched for, at both edges.
  marks(context) {
    const { geometry, found } = this.zoom;
    const { left, top } = this;
    context.fillStyle = this.zoom.ramp.accent;
    for (const row of found.rows) {
      const y = top + (row + 0.5 - geometry.y) * geometry.scale;
      if (y >= top && y <= top + geometry.height) context.fillRect(left - 5, y - 1, 5, 2);
    }
    for (const column of found.columns) {
      const x = left + (column + 0.5 - geometry.x) * geometry.scale;
      if (x >= left && x <= left + geometry.width) context.fillRect(x - 1, top - 5, 2, 5);
    }
  }
}
