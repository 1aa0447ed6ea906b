// Numbers that the reader can change. Every field of a figure has a name; names and values are its
// state, which a link can carry.

const minus = (text) => text.replace(/^-/, "−");
const SUPERSCRIPTS = { "-": "⁻", "+": "" };
const power = (exponent) => `10${[...String(exponent)].map((one) => SUPERSCRIPTS[one] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[one]).join("")}`;
// A very small or very large number: 6.3·10⁻¹⁰¹.
function scientific(number, digits = 1) {
  const [front, exponent] = number.toExponential(digits).split("e");
  return `${minus(front)}·${power(exponent)}`;
}
// e to the power of a number, also where it is too large or too small for a float.
function sayPower(logarithm) {
  const value = Math.exp(logarithm);
  if (value >= 0.005 && value < 1e4) return say(value);
  const exponent = Math.floor(logarithm / Math.LN10);
  const front = (10 ** (logarithm / Math.LN10 - exponent)).toFixed(1);
  return front === "10.0" ? `1.0·${power(exponent + 1)}` : `${front}·${power(exponent)}`;
}
const LONG = { whole: 1e7, other: 1e5 }; // from here on a number is written with a power of ten
// A number for people: whole ones as they are, others with some decimals.
function say(number, decimals = 2) {
  if (Math.abs(number) === Infinity) return number < 0 ? "−∞" : "∞";
  if (Math.abs(number) >= (Number.isInteger(number) ? LONG.whole : LONG.other)) return scientific(number, 2);
  if (Number.isInteger(number)) return minus(String(number));
  const text = number.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : minus(text);
}
const sayWeight = (number) => say(number === 0 || number === 1 ? number : number, 3);
const sayVector = (numbers, decimals = 2) => `(${numbers.map((one) => say(one, decimals)).join("  ")})`;
const many = (number) => Math.round(number).toLocaleString("en");

// A shown number: the exact one is in data-value, for tests and for those who point at it.
function out(name, number, text = say(number), attributes = {}) {
  return make("span", { class: "number", "data-name": name, "data-value": String(number), title: String(number), ...attributes }, text);
}
const outVector = (name, numbers, decimals = 2) =>
  make("span", { class: "vector" }, ...numbers.map((one, i) => out(`${name}-${i}`, one, say(one, decimals))));

// What people type as a number: −1, 1.5, 1,5, 3/4. null if it is none.
function numberOf(text) {
  const plain = text.trim().replace(/[−–]/g, "-").replace(",", ".");
  const parts = plain.split("/");
  if (parts.length > 2 || parts.some((part) => !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part.trim()))) return null;
  const number = parts.length === 2 ? Number(parts[0]) / Number(parts[1]) : Number(parts[0]);
  return Number.isFinite(number) ? number : null;
}

const MOST = 1e9; // larger numbers teach nothing, and their products cannot be shown

class Fields {
  constructor(id, changed, refuse) {
    Object.assign(this, { id, changed, refuse, byName: new Map() });
  }

  add(name, control) {
    control.initial = control.get();
    this.byName.set(name, control);
    return control;
  }

  // One number in a small box; arrow keys change it by 1, with Shift by 0.1. What is no such number
  // is not used, and the figure says so.
  number(name, value, label, { min = -MOST, max = MOST, whole = false } = {}) {
    let current = value;
    const wanted = `a ${whole ? "whole " : ""}number from ${minus(many(min))} to ${many(max)}`;
    const allowed = (text) => {
      const found = numberOf(text);
      return found === null || found < min || found > max || (whole && !Number.isInteger(found)) ? null : found;
    };
    const refused = (text) => {
      box.setAttribute("aria-invalid", String(text !== null));
      if (text === null) this.refuse("");
      else this.refuse(`${text.trim() ? `“${text.trim().slice(0, 20)}” is not used` : "The box is empty"}: wanted is ${wanted}. ${minus(String(current))} stays.`);
    };
    const shown = minus(String(Number(value.toFixed(4))));
    const box = make("input", { type: "text", inputmode: "decimal", class: "box", value: shown, "data-field": name, "aria-label": label, autocomplete: "off", size: 4 });
    const widen = () => box.classList.toggle("long", box.value.length > 4);
    widen();
    const read = () => {
      const found = allowed(box.value);
      widen();
      refused(found === null ? box.value : null);
      if (found === null) return;
      current = found;
      this.changed();
    };
    box.addEventListener("input", read);
    box.addEventListener("blur", () => {
      if (allowed(box.value) === null) box.value = minus(String(current));
      widen();
      box.setAttribute("aria-invalid", "false");
    });
    box.addEventListener("focus", () => box.select());
    box.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      box.value = minus(String(Math.round((current + step * (event.shiftKey ? 0.1 : 1)) * 1e6) / 1e6));
      read();
    });
    this.add(name, {
      get: () => String(current),
      set: (text) => {
        box.value = minus(text);
        read();
      },
    });
    return { element: box, get value() { return current; } };
  }

  // A matrix of boxes that the figure places itself: .boxes[row][column], .values.
  matrix(name, values, label = (row, column) => `${name}, row ${row + 1}, number ${column + 1}`) {
    const cells = values.map((row, r) => row.map((value, c) => this.number(`${name}-${r}-${c}`, value, label(r, c))));
    return {
      boxes: cells.map((row) => row.map((cell) => cell.element)),
      get values() { return cells.map((row) => row.map((cell) => cell.value)); },
      row: (r) => make("span", { class: "boxes" }, ...cells[r].map((cell) => cell.element)),
    };
  }

  slider(name, label, { min, max, step = 1, value, text = (one) => String(one), stops = null }) {
    const at = (place) => (stops ? stops[place] : Math.round(place / step) * step);
    const range = stops ? { min: 0, max: stops.length - 1, step: 1, value: stops.indexOf(value) } : { min, max, step, value };
    const input = make("input", { type: "range", ...range, "data-field": name });
    const output = make("output", { class: "number" });
    const current = () => Number(at(Number(input.value)).toFixed(6));
    const show = () => {
      output.textContent = text(current());
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      show();
      this.changed();
    });
    show();
    this.add(name, {
      get: () => String(current()),
      set: (given) => {
        const number = Number(given);
        input.value = stops ? Math.max(0, stops.indexOf(number)) : number;
        show();
        this.changed();
      },
    });
    return { element: make("label", { class: "slider" }, make("span", {}, label), input, output), get value() { return current(); }, set value(given) { input.value = stops ? stops.indexOf(given) : given; show(); } };
  }

  // Buttons of which one is on.
  choice(name, label, options, value = options[0]) {
    let current = value;
    const buttons = options.map((option) => make("button", { type: "button", class: "pick", "aria-pressed": String(option === value), "data-field": name, "data-option": option, onclick: () => control.set(option) }, option));
    const control = this.add(name, {
      get: () => current,
      set: (option) => {
        if (!options.includes(option)) return;
        current = option;
        for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.option === option));
        this.changed();
      },
    });
    return { element: make("span", { class: "picks", role: "group", "aria-label": label }, make("span", { class: "quiet" }, label), ...buttons), get value() { return current; }, set: control.set };
  }

  flag(name, label, value = false) {
    const box = make("input", { type: "checkbox", "data-field": name, onchange: () => this.changed() });
    box.checked = value;
    this.add(name, {
      get: () => (box.checked ? "1" : "0"),
      set: (text) => {
        box.checked = text === "1";
        this.changed();
      },
    });
    return { element: make("label", { class: "check" }, box, label), box, get value() { return box.checked; } };
  }

  text(name, label, value, size = 24, longest = 60) {
    const box = make("input", { type: "text", class: "words", value, size, maxlength: longest, "data-field": name, "aria-label": label, autocomplete: "off", oninput: () => this.changed() });
    this.add(name, {
      get: () => box.value,
      set: (text) => {
        box.value = text;
        this.changed();
      },
    });
    return { element: box, get value() { return box.value; } };
  }

  // What is chosen by clicking on a part of the figure itself.
  pointed(name, value, allowed) {
    let current = value;
    const control = this.add(name, {
      get: () => current,
      set: (given) => {
        if (!allowed(given)) return;
        current = given;
        this.changed();
      },
    });
    return { get value() { return current; }, set: control.set };
  }

  // What differs from the start, as the part of a link behind "?"; and the way back.
  get state() {
    const changed = [...this.byName].filter(([, control]) => control.get() !== control.initial);
    return new URLSearchParams(changed.map(([name, control]) => [name, control.get()])).toString();
  }
  set state(text) {
    for (const [name, value] of new URLSearchParams(text)) this.byName.get(name)?.set(value);
  }
  reset() {
    for (const control of this.byName.values()) if (control.get() !== control.initial) control.set(control.initial);
  }
}
