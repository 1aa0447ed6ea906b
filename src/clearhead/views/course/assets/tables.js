// Tables, matrices and bars of the figures.

// W_O, Z_f and e^score as people write them: what stands behind _ is lowered, behind ^ raised.
const typeset = (part) => (typeof part !== "string" ? [part] : part.split(/([WZ]_\w|e\^\w+)/).filter(Boolean).map((one) => (/^[WZ]_/.test(one) ? make("span", {}, one[0], make("sub", {}, one.slice(2))) : /^e\^/.test(one) ? make("span", {}, "e", make("sup", {}, one.slice(2))) : one)));
const numbered = (letter, number) => letter + [...String(number)].map((one) => "₀₁₂₃₄₅₆₇₈₉"[one]).join("");

// The same in an attribute, where no part can be raised.
const plainHeading = (text) => text.replace("^score", "ˢᶜᵒʳᵉ");

// A table with a heading; at narrow widths each row becomes a card, so cells bear their heading.
function tableOf(headings, rows, { caption, foot = null, kind = "" } = {}) {
  const cell = (content, column, tag = "td") => make(tag, column === 0 ? { scope: "row" } : { "data-label": plainHeading(headings[column]) }, ...[content].flat().flatMap(typeset));
  const line = (row) => make("tr", { class: row.kind ?? false }, ...row.cells.map((content, column) => cell(content, column, column === 0 ? "th" : "td")));
  return make(
    "table",
    { class: `grid ${kind}` },
    make("caption", { class: "unseen" }, caption),
    make("thead", {}, make("tr", {}, ...headings.map((heading) => make("th", { scope: "col" }, ...typeset(heading))))),
    make("tbody", {}, ...rows.map(line)),
    foot && make("tfoot", {}, line(foot)),
  );
}

const bar = (share, kind = "") => make("span", { class: `track ${kind}`, "aria-hidden": "true" }, make("span", { style: `width:${(100 * Math.max(0, Math.min(1, share))).toFixed(2)}%` }));
const weightCell = (name, weight) => [make("span", { class: "weight" }, bar(weight), out(name, weight, sayWeight(weight)))];

// A matrix with its brackets, as a table of numbers or boxes; `tint(row, column)`: 0 … 1.
function matrixOf(name, cells, { rows = null, columns = null, title, tint = null, mark = null, decimals = 2, onpick = null } = {}) {
  const content = (one, r, c) => (one instanceof Node ? one : out(`${name}-${r}-${c}`, one, say(one, decimals)));
  const shade = (r, c) => (tint ? Math.round(4 * Math.min(1, Math.max(0, tint(r, c)))) : null);
  const line = (row, r) =>
    make(
      "tr",
      {},
      rows && make("th", { scope: "row" }, rows[r]),
      ...row.map((one, c) => {
        const shown = content(one, r, c);
        const inside = onpick ? make("button", { type: "button", class: "cell", "data-key": `${name}-${r}-${c}`, "aria-pressed": String(Boolean(mark?.(r, c))), onclick: () => onpick(r, c) }, shown) : shown;
        return make("td", { class: [tint && `tint-${shade(r, c)}`, mark?.(r, c) && "marked", one === -Infinity && "never"].filter(Boolean).join(" ") || false }, inside);
      }),
    );
  const head = columns && make("thead", {}, make("tr", {}, rows && make("td"), ...columns.map((one) => make("th", { scope: "col" }, one))));
  return make("div", { class: "matrix" }, title && make("p", { class: "matrix-title" }, ...[title].flat().flatMap(typeset)), make("div", { class: "brackets" }, make("table", {}, make("caption", { class: "unseen" }, [title ?? name].flat().map((one) => one.textContent ?? one).join("")), head, make("tbody", {}, ...cells.map(line)))));
}

const between = (sign) => make("span", { class: "sign", "aria-hidden": "true" }, sign);
const shape = (...sizes) => make("code", { class: "shape" }, `(${sizes.join(", ")})`);
const row = (...children) => make("div", { class: "row" }, ...children);
const note = (...children) => make("p", { class: "note" }, ...children.flatMap(typeset));

// A strip of cells for a long vector: blue is plus, orange is minus.
function strip(numbers, { height = 18, label, most = null, wrap = 0 }) {
  const canvas = make("canvas", { class: "strip", role: "img", "aria-label": label });
  const columns = wrap || numbers.length;
  const lines = Math.ceil(numbers.length / columns);
  canvas.width = columns;
  canvas.height = lines;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, lines);
  const largest = most ?? Math.max(...numbers.map(Math.abs), 1e-30);
  numbers.forEach((one, i) => {
    const colour = one < 0 ? [200, 90, 30] : [58, 85, 200];
    image.data.set([...colour, Math.round(255 * Math.min(1, Math.sqrt(Math.abs(one) / largest)))], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

async function unpacked(text) {
  const bytes = await inflated(bytesOfBase64(text));
  return new Reader(bytes).numbers(Float32Array, bytes.length / 4);
}
