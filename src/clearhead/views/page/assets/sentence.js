// The text, word by word: arcs to the words that a word looks at, coloured by their weights.

const MOST_ARCS = 12;
const MOST_ALIGNED = 60; // words of a text whose alignment is drawn whole
const MOST_WORDS = 5000; // as elements of the page; of a longer text the part around the word

class Sentence {
  constructor(view) {
    this.view = view;
    this.element = make("div", { class: "sentence" });
    this.arcs = makeSvg("svg", { class: "arcs", "aria-hidden": "true" });
    this.lines = [];
    this.element.append(this.arcs);
    this.tinted = [];
    this.element.addEventListener("pointerleave", () => view.hover(null));
    new ResizeObserver(() => this.drawArcs()).observe(this.element);
  }

  // Lines are made anew only when the chosen head has other axes.
  setAxes(picture) {
    const cross = picture.rowAxis !== picture.columnAxis;
    const key = `${picture.place.rows},${picture.place.columns}`;
    if (this.key === key) return;
    this.key = key;
    for (const line of this.lines) line.element.remove();
    this.lines = cross
      ? [this.line(picture.columnAxis, false, true), this.line(picture.rowAxis, true, true)]
      : [this.line(picture.rowAxis, true, false)];
    this.columns = this.lines[0];
    this.rows = this.lines[this.lines.length - 1];
    this.element.append(...this.lines.map((line) => line.element));
    this.element.classList.toggle("two-lines", cross);
    this.element.classList.toggle("short", picture.rowCount <= 40);
  }

  line(axis, isQuery, titled) {
    const words = new Map();
    const text = make("div", { class: "words", dir: "auto", role: "group" });
    text.setAttribute("aria-label", isQuery ? "Queries: words that look" : "Keys: words that are looked at");
    const line = { axis, isQuery, words, text, from: 0, to: 0 };
    line.element = make(
      "div",
      { class: "line" },
      titled && !isQuery ? make("div", { class: "line-title" }, axis.label) : null,
      text,
      titled && isQuery ? make("div", { class: "line-title" }, axis.label) : null,
    );
    this.fill(line, 0);
    return line;
  }

  kind(axis, place, special) {
    const { written_from: from } = this.view.meta;
    const signs = /^[␣⏎⇥]+$/.test(axis.words[place]); // that stand for spaces and line ends
    const written = from !== null && axis.tokens[place][0] >= from;
    return ["word", special.has(place) && "special", signs && "signs", written && "by-model"].filter(Boolean).join(" ");
  }

  fill(line, around) {
    const { axis, words, text } = line;
    const count = axis.words.length;
    line.from = Math.max(0, Math.min(around - MOST_WORDS / 2, count - MOST_WORDS));
    line.to = Math.min(count, line.from + MOST_WORDS);
    words.clear();
    const special = new Set(axis.special);
    const parts = [];
    for (let i = line.from; i < line.to; i++) {
      const gap = axis.gaps[i];
      if (i > line.from && gap) parts.push(gap === 2 ? make("br") : " ");
      const word = make("span", { class: this.kind(axis, i, special) }, axis.words[i]);
      word.dataset.place = i;
      if (line.isQuery) {
        word.setAttribute("role", "button");
        word.tabIndex = -1;
      }
      words.set(i, word);
      parts.push(word);
    }
    if (line.from > 0) parts.unshift(make("span", { class: "cut" }, `${line.from} words before `));
    if (line.to < count) parts.push(make("span", { class: "cut" }, ` ${count - line.to} words after`));
    text.replaceChildren(...parts);
    if (!line.isQuery) return;
    const placeOf = (event) => event.target.closest?.(".word")?.dataset.place;
    text.onpointerover = (event) => {
      const place = placeOf(event);
      if (place !== undefined && event.pointerType !== "touch") this.view.hover(Number(place));
    };
    text.onclick = (event) => {
      const place = placeOf(event);
      if (place !== undefined) this.view.click(Number(place));
    };
  }

  // The word in the line above or below that is nearest to this one.
  neighbour(place, direction) {
    const here = this.rows.words.get(place)?.getBoundingClientRect();
    if (!here) return place;
    const middle = here.left + here.width / 2;
    let best = place;
    let least = Infinity;
    for (const [other, element] of this.rows.words) {
      if (direction < 0 ? other >= place : other <= place) continue;
      const box = element.getBoundingClientRect();
      const lines = ((box.top - here.top) * direction) / here.height;
      if (lines < 0.8) continue;
      const distance = Math.round(lines) * 10000 + Math.abs(box.left + box.width / 2 - middle);
      if (distance < least) [least, best] = [distance, other];
    }
    return best;
  }

  // Scrolls the text, and only the text, to a word.
  reveal(place) {
    const word = this.rows.words.get(place);
    if (!word || this.element.scrollHeight <= this.element.clientHeight) return;
    const [box, frame] = [word.getBoundingClientRect(), this.element.getBoundingClientRect()];
    const above = box.top - frame.top;
    if (above > 60 && above < frame.height - 60) return;
    this.element.scrollTop += above - frame.height / 2;
    this.drawArcs();
  }

  show() {
    const { view } = this;
    this.setAxes(view.picture);
    const shown = view.shown;
    if (shown < this.rows.from || shown >= this.rows.to) this.fill(this.rows, shown);
    for (const word of this.tinted) {
      word.classList.remove("current", "pinned", "strong", "lit", "hidden");
      word.removeAttribute("style");
      word.removeAttribute("aria-pressed");
      word.tabIndex = -1;
    }
    this.tinted = [];
    const touch = (line, place) => {
      const word = line.words.get(place);
      if (word) this.tinted.push(word);
      return word;
    };
    if (view.hiding) {
      for (const place of view.picture.place.hidden) {
        touch(this.columns, place)?.classList.add("hidden");
      }
    }
    const entries = view.entries(shown);
    const most = entries.length ? entries[0].weight : 0;
    for (const entry of entries) {
      const strength = share(entry.weight, Math.max(most, 0.05), view.logarithmic);
      if (strength < 0.03) continue;
      const word = touch(this.columns, entry.column);
      if (!word) continue;
      word.style.setProperty("--strength", `${Math.round(strength * 100)}%`);
      word.classList.add("lit");
      word.classList.toggle("strong", strength > 0.55);
    }
    for (const [place, colour] of view.pins) {
      const word = touch(this.rows, place);
      if (!word) continue;
      word.classList.add("pinned");
      word.style.setProperty("--pin", `var(--pin-${colour})`);
      word.setAttribute("aria-pressed", "true");
    }
    const current = touch(this.rows, shown);
    if (current) {
      current.classList.add("current");
      current.tabIndex = 0;
    }
    this.drawArcs();
  }

  drawArcs() {
    if (!this.rows || !this.view.picture || !this.element.isConnected) return;
    const box = this.element.getBoundingClientRect();
    this.arcs.setAttribute("width", this.element.clientWidth);
    this.arcs.setAttribute("height", this.element.scrollHeight);
    this.origin = { x: box.left, y: box.top - this.element.scrollTop };
    const drawn = this.lines.length === 2 ? this.alignment() : [];
    const pins = [...this.view.pins].filter(([place]) => place !== this.view.shown);
    for (const [place, colour] of pins) drawn.push(...this.arcsOf(place, `var(--pin-${colour})`, 5));
    drawn.push(...this.arcsOf(this.view.shown, "var(--accent)", MOST_ARCS, "arc"));
    this.arcs.replaceChildren(...drawn);
  }

  place(element) {
    const boxes = element.getClientRects();
    const box = boxes[0];
    return {
      x: box.left + box.width / 2 - this.origin.x,
      top: box.top - this.origin.y,
      bottom: box.bottom - this.origin.y,
    };
  }

  // Between two texts every word's strongest source, faintly: which word belongs to which.
  alignment() {
    const places = [...this.rows.words.keys()].filter((place) => place !== this.view.shown);
    if (places.length > MOST_ALIGNED) return [];
    return places.flatMap((place) => this.arcsOf(place, "var(--quiet)", 1, "arc aligned"));
  }

  arcsOf(row, colour, most, kind = "arc pin") {
    const numbered = kind === "arc";
    const from = this.rows.words.get(row);
    if (!from) return [];
    const start = this.place(from);
    const drawn = [];
    const entries = this.view.entries(row).slice(0, most);
    const strongest = entries.length ? entries[0].weight : 0;
    for (const [rank, entry] of entries.entries()) {
      if (entry.weight < Math.max(0.01, strongest * 0.04)) break;
      const word = this.columns.words.get(entry.column);
      if (!word) continue;
      const end = this.place(word);
      const strength = share(entry.weight, strongest, this.view.logarithmic);
      // An arc over several lines would cross their words: there the colour and the number tell it.
      const far = this.lines.length === 1 && Math.abs(start.top - end.top) > 2.5 * (start.bottom - start.top);
      if (word !== from && !far) {
        drawn.push(
          makeSvg("path", {
            d: this.path(start, end),
            stroke: colour,
            "stroke-width": (1 + 3.5 * strength).toFixed(2),
            "stroke-opacity": (0.25 + 0.7 * strength).toFixed(2),
            class: kind,
            "data-from": row,
            "data-to": entry.column,
          }),
        );
      }
      if (numbered && rank < 6) {
        const label = makeSvg("text", { x: end.x, y: end.bottom + 11, class: "value" });
        label.textContent = two(entry.weight);
        drawn.push(label);
      }
    }
    return drawn;
  }

  path(start, end) {
    if (this.lines.length === 2) {
      const [y0, y1] = [start.top - 2, end.bottom + 16];
      const bend = (y0 - y1) * 0.45;
      return `M${start.x},${y0}C${start.x},${y0 - bend} ${end.x},${y1 + bend} ${end.x},${y1}`;
    }
    const lines = Math.abs(start.top - end.top) > 8;
    if (lines) {
      const above = end.top < start.top;
      const [y0, y1] = above ? [start.top - 1, end.bottom + 1] : [start.bottom + 1, end.top - 1];
      const bend = (y1 - y0) * 0.5;
      return `M${start.x},${y0}C${start.x},${y0 + bend} ${end.x},${y1 - bend} ${end.x},${y1}`;
    }
    const [y0, y1] = [start.top - 2, end.top - 2];
    const wide = Math.abs(start.x - end.x);
    const rise = Math.min(18 + wide * 0.16, Math.max(18, Math.min(y0, y1) - 2), 74);
    const top = Math.min(y0, y1) - rise;
    return `M${start.x},${y0}C${start.x},${top} ${end.x},${top} ${end.x},${y1}`;
  }
}
