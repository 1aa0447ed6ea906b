// Small things that every component uses. Text only ever enters the page as text, never as markup.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (name === "class") element.className = value;
    else if (name === "style") element.style.cssText = value; // as an attribute, a strict policy forbids it
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A slider that sets one of `settings`; `value` and `text` say what its position means.
function makeSlider(settings, [name, label, range, value, text], changed) {
  const output = make("output", { class: "number" });
  const input = make("input", { type: "range", ...range, "data-setting": name });
  const set = () => {
    settings[name] = value(Number(input.value));
    output.textContent = text(settings[name]);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    set();
    changed();
  });
  set();
  const reset = () => {
    input.value = range.value;
    set();
  };
  return { reset, element: make("label", { class: "slider" }, make("span", {}, label), input, output) };
}

const SVG = "http://www.w3.org/2000/svg";
function makeSvg(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Four decimals, halves to the even one, as numpy rounds.
function shownNumber(number) {
  const units = number * 10000;
  const below = Math.floor(units);
  const half = units - below === 0.5;
  return (half ? below + (below % 2) : Math.round(units)) / 10000;
}
// Two decimals of a shown number; halves go up, as in pictures.py.
function two(number) {
  const hundredths = Math.floor((Math.round(number * 10000) + 50) / 100);
  return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, "0")}`;
}
const four = (number) => number.toFixed(4);
const likely = (share) => (share >= 0.0001 || share === 0 ? four(share) : share.toExponential(1));
const signed = (number) => number.toFixed(2).replace(/^-(?=0\.00$)/, "").replace("-", "−");
const quoted = (word) => `“${word}”`;

// Two ramps, from the page's own colours: nothing → accent → the strongest contrast.
class Ramp {
  constructor(root) {
    const style = getComputedStyle(root);
    this.stops = ["--ramp-0", "--ramp-1", "--ramp-2", "--ramp-3"].map((name) =>
      Ramp.rgb(style.getPropertyValue(name)),
    );
    this.masked = Ramp.rgb(style.getPropertyValue("--masked"));
    this.ink = style.getPropertyValue("--ink").trim();
    this.quiet = style.getPropertyValue("--quiet").trim();
    this.accent = style.getPropertyValue("--accent").trim();
    this.font = style.fontFamily;
  }
  static rgb(text) {
    const hex = text.trim().slice(1);
    return [0, 2, 4].map((place) => parseInt(hex.slice(place, place + 2), 16));
  }
  at(share) {
    const last = this.stops.length - 1;
    const place = Math.min(Math.max(share, 0), 1) * last;
    const below = Math.min(Math.floor(place), last - 1);
    const part = place - below;
    const [from, to] = [this.stops[below], this.stops[below + 1]];
    return from.map((value, i) => Math.round(value + (to[i] - value) * part));
  }
  css(share) {
    return `rgb(${this.at(share).join(",")})`;
  }
  // Black or white, whichever is easier to read on the ramp's colour.
  inkOn(share) {
    const [red, green, blue] = this.at(share);
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#14161c" : "#ffffff";
  }
}

const LOG_DECADES = 4; // as in pictures.py

// How strong a weight is drawn: 0 … 1.
function share(weight, most, logarithmic) {
  if (weight <= 0) return 0;
  if (logarithmic) return Math.max(0, Math.log10(weight / Math.max(most, 1e-4)) / LOG_DECADES + 1);
  return most > 0 ? weight / most : 0;
}

function sharpCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

function shortened(text, most) {
  const characters = [...text];
  return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : text;
}
