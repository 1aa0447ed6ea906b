// The map as a file: PNG from its canvas, SVG with a rectangle and a number for each cell.

function download(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function savePicture(heatmap, kind) {
  const name = `${heatmap.picture.name.replace(/[^A-Za-z0-9]+/g, "-")}.${kind}`;
  if (kind === "svg") download(name, new Blob([mapSvg(heatmap)], { type: "image/svg+xml" }));
  else heatmap.canvas.toBlob((blob) => download(name, blob));
}

// The same cells, colours and names as on the canvas, at any size.
function mapSvg(heatmap) {
  const { picture, window: part, layout } = heatmap;
  const { ramp, logarithmic } = heatmap.view;
  const { cell, left, top, width, height } = layout;
  const hidden = heatmap.view.hiddenColumns(picture);
  const most = heatmap.strongest();
  const root = makeSvg("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif", "font-size": 12 });
  const text = (content, attributes) => {
    const element = makeSvg("text", attributes);
    element.textContent = content;
    root.append(element);
  };
  const paper = getComputedStyle(heatmap.view.root).backgroundColor;
  root.append(makeSvg("rect", { width, height, fill: paper }));
  for (let r = 0; r < part.rows; r++) {
    const row = part.row + r;
    const y = top + r * cell;
    const weights = new Map(picture.row(row).map((entry) => [entry.column, entry.weight]));
    text(shortened(picture.rowAxis.words[row], 14), { x: left - 7, y: y + cell / 2 + 4, "text-anchor": "end", fill: ramp.ink });
    for (let c = 0; c < part.columns; c++) {
      const column = part.column + c;
      const x = left + c * cell;
      const blank = hidden.has(column) || !picture.visible(row, column);
      const weight = blank ? 0 : weights.get(column) || 0;
      const strength = share(weight, most, logarithmic);
      const fill = blank ? `rgb(${ramp.masked.join(",")})` : ramp.css(strength);
      root.append(makeSvg("rect", { x, y, width: cell - 1, height: cell - 1, fill, "fill-opacity": blank ? 0.5 : 1 }));
      if (cell >= 30 && weight >= 0.005) {
        text(two(weight).replace(/^0/, ""), { x: x + (cell - 1) / 2, y: y + cell / 2 + 4, "text-anchor": "middle", fill: ramp.inkOn(strength) });
      }
    }
  }
  for (let c = 0; c < part.columns; c++) {
    const [x, y] = [left + c * cell + cell / 2 + 3, top - 6];
    text(shortened(picture.columnAxis.words[part.column + c], 14), { x, y, transform: `rotate(-52 ${x} ${y})`, fill: ramp.ink });
  }
  return new XMLSerializer().serializeToString(root);
}
