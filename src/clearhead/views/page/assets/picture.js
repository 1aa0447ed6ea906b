// A part of a page as SVG: what is on the screen now, as rectangles and texts, without any script or style.

// A colour as every program reads it: those that style sheets mix are "color(srgb 0.1 0.2 0.3)".
function plain(colour) {
  const mixed = colour.match(/^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)/);
  return mixed ? `rgb(${mixed.slice(1).map((part) => Math.round(255 * part)).join(", ")})` : colour.trim();
}

function svgOf(root) {
  const frame = root.getBoundingClientRect();
  const page = makeSvg("svg", { xmlns: SVG, width: frame.width.toFixed(0), height: frame.height.toFixed(0), viewBox: `0 0 ${frame.width.toFixed(1)} ${frame.height.toFixed(1)}` });
  const paint = (colour) => colour && !/^(transparent|rgba\(.*, 0\))$/.test(colour);
  const rectangle = (box, colour, radius = 0, rest = {}) => page.append(makeSvg("rect", { x: (box.left - frame.left).toFixed(1), y: (box.top - frame.top).toFixed(1), width: Math.max(0, box.width).toFixed(1), height: Math.max(0, box.height).toFixed(1), rx: radius, fill: plain(colour), ...rest }));
  const background = getComputedStyle(root.closest(".course, .clearhead, body") ?? root).backgroundColor;
  rectangle(frame, paint(getComputedStyle(root).backgroundColor) ? getComputedStyle(root).backgroundColor : background);
  const write = (text, box, style, anchor = "start") => {
    const x = anchor === "middle" ? box.left + box.width / 2 : box.left;
    const element = makeSvg("text", { x: (x - frame.left).toFixed(1), y: (box.top - frame.top + box.height * 0.5 + parseFloat(style.fontSize) * 0.35).toFixed(1), "font-family": style.fontFamily.replaceAll('"', "'"), "font-size": style.fontSize, "font-weight": style.fontWeight, fill: plain(style.color), "text-anchor": anchor });
    if (style.writingMode.startsWith("vertical")) upright(element, box);
    element.textContent = text;
    page.append(element);
  };
  // Names above a map: they are read from below.
  const upright = (element, box) => {
    const [x, y] = [box.left - frame.left + box.width * 0.7, box.bottom - frame.top].map((one) => one.toFixed(1));
    for (const [name, value] of Object.entries({ x, y, transform: `rotate(-90 ${x} ${y})` })) element.setAttribute(name, value);
  };
  // A drawing inside the page, with the colours that style sheets gave it.
  const drawing = (node, box) => {
    const copy = node.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [node, ...node.querySelectorAll("*")].forEach((one, i) => {
      const { fill, stroke } = getComputedStyle(one);
      for (const [name, colour] of Object.entries({ fill, stroke })) copies[i].setAttribute(name, plain(colour));
    });
    for (const [name, value] of Object.entries({ x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height })) copy.setAttribute(name, value.toFixed(1));
    page.append(copy);
  };
  const meter = (node, box) => {
    const colours = getComputedStyle(root);
    rectangle(box, colours.getPropertyValue("--empty"), 5);
    rectangle({ ...box.toJSON(), width: (box.width * node.value) / node.max }, colours.getPropertyValue(node.matches(".against") ? "--pin-0" : "--accent"), 5);
  };
  const has = (style, side) => parseFloat(style[`border${side}Width`]) > 0 && style[`border${side}Style`] !== "none" && paint(style[`border${side}Color`]);
  const borders = (box, style) => {
    const inner = { left: box.left + 0.5, top: box.top + 0.5, width: box.width - 1, height: box.height - 1 };
    if (["Top", "Right", "Bottom", "Left"].every((side) => has(style, side))) {
      rectangle(inner, "none", parseFloat(style.borderRadius) || 0, { stroke: plain(style.borderBottomColor) });
      return;
    }
    if (has(style, "Bottom")) rectangle({ left: box.left, top: box.bottom - 1, width: box.width, height: 1 }, style.borderBottomColor);
    if (has(style, "Left")) for (const side of [box.left, box.right - 1]) rectangle({ left: side, top: box.top, width: 1, height: box.height }, style.borderLeftColor);
  };
  // The heading that a cell of a narrow table bears: the style sheet writes it.
  const label = (node, box) => {
    const style = getComputedStyle(node, "::before");
    if (!node.dataset.label || style.display !== "block" || style.content === "none") return;
    const size = parseFloat(style.fontSize);
    write(node.dataset.label, { left: box.left, top: box.top, width: box.width, height: 1.45 * size }, style);
  };
  let seen = frame; // the part of the page that is not scrolled away
  const inside = (box) => box.right > seen.left && box.left < seen.right && box.bottom > seen.top && box.top < seen.bottom;
  const within = (box, act) => {
    const outer = seen;
    seen = { left: Math.max(outer.left, box.left), right: Math.min(outer.right, box.right), top: Math.max(outer.top, box.top), bottom: Math.min(outer.bottom, box.bottom) };
    act();
    seen = outer;
  };
  const walk = (node) => {
    if (node.parentElement.matches("details:not([open])") && node.tagName !== "SUMMARY") return;
    if (node.nodeType === Node.TEXT_NODE) return letters(node);
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0" || node.matches(".unseen, .tools, style, script")) return;
    const box = node.getBoundingClientRect();
    if (style.display !== "contents" && box.width > 0 && !inside(box)) return;
    if (paint(style.backgroundColor)) rectangle(box, style.backgroundColor, parseFloat(style.borderRadius) || 0);
    borders(box, style);
    label(node, box);
    if (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) rectangle(box, "none", 3, { stroke: plain(style.outlineColor), "stroke-width": style.outlineWidth });
    if (node.tagName === "svg") drawing(node, box);
    else if (node.tagName === "METER") meter(node, box);
    else if (node.tagName === "CANVAS") page.append(makeSvg("image", { href: node.toDataURL(), x: (box.left - frame.left).toFixed(1), y: (box.top - frame.top).toFixed(1), width: box.width.toFixed(1), height: box.height.toFixed(1), preserveAspectRatio: "none", style: "image-rendering:pixelated" }));
    else if (node.tagName === "INPUT" && node.type === "checkbox") write(node.checked ? "☑" : "☐", box, style);
    else if (node.tagName === "INPUT" && node.type === "text") write(node.value, box, style, "middle");
    else if (node.tagName === "INPUT") rectangle({ left: box.left, top: box.top + box.height / 2 - 1, width: box.width, height: 2 }, style.color);
    else if (style.overflowX !== "visible") within(box, () => node.childNodes.forEach(walk));
    else node.childNodes.forEach(walk);
  };
  const letters = (node) => {
    if (!node.textContent.trim()) return;
    const style = getComputedStyle(node.parentElement);
    const text = node.textContent;
    const part = document.createRange();
    let [start, top] = [0, null];
    const flush = (end) => {
      const line = text.slice(start, end).trim();
      const first = start + text.slice(start, end).indexOf(line); // behind the space before it
      part.setStart(node, first);
      part.setEnd(node, first + line.length);
      const box = part.getBoundingClientRect();
      if (line && box.width > 0 && inside(box)) write(line, box, style);
      start = end;
    };
    for (let i = 0; i < text.length; i++) {
      part.setStart(node, i);
      part.setEnd(node, i + 1);
      const box = part.getClientRects()[0];
      if (!box || box.width === 0) continue;
      if (top !== null && box.top > top + 4) flush(i);
      top = box.top;
    }
    flush(text.length);
  };
  root.childNodes.forEach(walk);
  return new XMLSerializer().serializeToString(page);
}

// The same as pixels, two for each of the page's.
async function pngOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

function download(name, content, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
