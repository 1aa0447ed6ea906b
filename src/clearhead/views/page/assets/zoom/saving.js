// What a deep zoom shows, as SVG: cells as rectangles while they are few, otherwise as an image; text is text.

const MOST_CELLS = 10000; // rectangles of one file

// Draws what ZoomEdges draws on a canvas.
class SvgPencil {
  constructor(context, width, height) {
    this.context = context; // measures text
    this.root = makeSvg("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` });
    Object.assign(this, { fillStyle: "#000", textAlign: "left", turned: "" });
  }
  set font(font) {
    this.context.font = font;
  }
  measureText(text) {
    return this.context.measureText(text);
  }
  save() {}
  restore() {
    this.turned = "";
  }
  translate(x, y) {
    this.turned = `translate(${x} ${y})`;
  }
  rotate(angle) {
    this.turned += ` rotate(${(angle * 180) / Math.PI})`;
  }
  fillRect(x, y, width, height) {
    this.root.append(makeSvg("rect", { x, y, width, height, fill: this.fillStyle }));
  }
  fillText(text, x, y) {
    const [, weight, size] = this.context.font.match(/^(?:(\d+) )?(\d+)px/) ?? [null, "", "12"];
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    const element = makeSvg("text", { x, y, fill: this.fillStyle, "text-anchor": anchor, "font-size": size, "font-family": "sans-serif", "font-weight": weight || "normal" });
    if (this.turned) element.setAttribute("transform", this.turned);
    element.textContent = text;
    this.root.append(element);
  }
}

function zoomSvg(zoom) {
  const { geometry, edges, canvas } = zoom;
  const [width, height] = [edges.left + geometry.width, edges.top + geometry.height];
  const pencil = new SvgPencil(document.createElement("canvas").getContext("2d"), width, height);
  pencil.fillStyle = getComputedStyle(zoom.root).getPropertyValue("--card").trim();
  pencil.fillRect(0, 0, width, height);
  const part = zoom.visible();
  const side = 2 ** zoom.level;
  const count = [part.rows, part.columns].map(([first, last]) => (last >> zoom.level) - (first >> zoom.level) + 1);
  if (count[0] * count[1] <= MOST_CELLS) svgCells(zoom, pencil, part, side);
  else pencil.root.append(makeSvg("image", { ...svgArea(zoom), href: cropped(canvas, svgArea(zoom)) }));
  edges.draw(pencil);
  return new XMLSerializer().serializeToString(pencil.root);
}

// Where the map itself is.
function svgArea({ geometry, edges }) {
  const width = Math.min(geometry.width, (geometry.columns - geometry.x) * geometry.scale);
  return { x: edges.left, y: edges.top, width, height: Math.min(geometry.height, (geometry.rows - geometry.y) * geometry.scale) };
}

function cropped(canvas, { x, y, width, height }) {
  const ratio = canvas.width / parseFloat(canvas.style.width);
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  copy.getContext("2d").drawImage(canvas, -x * ratio, -y * ratio);
  return copy.toDataURL();
}

// Cells that lie whole or in part within the map, cut at its edges; numbers where there is room.
function svgCells(zoom, pencil, part, side) {
  const { geometry } = zoom;
  const area = svgArea(zoom);
  const gap = geometry.scale * side >= 7 ? 1 : 0;
  for (let row = part.rows[0] >> zoom.level; row * side <= part.rows[1]; row++) {
    for (let column = part.columns[0] >> zoom.level; column * side <= part.columns[1]; column++) {
      const cell = zoom.cellAt({ row: Math.min(row * side, geometry.rows - 1), column: Math.min(column * side, geometry.columns - 1) });
      if (!cell) continue;
      const [x0, y0] = [area.x + (column * side - geometry.x) * geometry.scale, area.y + (row * side - geometry.y) * geometry.scale];
      const [x, y] = [Math.max(area.x, x0), Math.max(area.y, y0)];
      const right = Math.min(area.x + area.width, x0 + side * geometry.scale) - gap;
      const bottom = Math.min(area.y + area.height, y0 + side * geometry.scale) - gap;
      if (right <= x || bottom <= y) continue;
      const blank = cell.number < 0 || (side === 1 && zoom.source.info.hidden.includes(column));
      const strength = share(Math.max(0, cell.number), zoom.source.info.most[cell.level], zoom.logarithmic);
      pencil.fillStyle = blank ? `rgb(${zoom.colours().masked.join(",")})` : zoom.ramp.css(strength);
      pencil.fillRect(x, y, right - x, bottom - y);
      if (blank || side > 1 || geometry.scale < WRITTEN || cell.number < 0.005 || cell.level > 0) continue;
      pencil.fillStyle = zoom.ramp.inkOn(strength);
      pencil.textAlign = "center";
      pencil.font = "12px sans-serif";
      pencil.fillText(two(cell.number).replace(/^0/, ""), x0 + geometry.scale / 2, y0 + geometry.scale / 2 + 4);
    }
  }
}
