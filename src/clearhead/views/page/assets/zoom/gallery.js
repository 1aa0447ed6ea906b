// All heads as small maps of the same text. They come one by one, and again as more of them is counted.

class SmallMaps {
  constructor(root, onchoose) {
    this.ramp = new Ramp(root);
    this.root = root;
    this.onchoose = onchoose;
    this.maps = new Map();
    this.element = make("div", { class: "zoom-gallery", role: "list" });
  }
  // A head's map: numbers row by row (−1: masked, −0.5: not yet), and the share of the queries so far.
  set({ head, rows, columns, numbers, counted }) {
    let one = this.maps.get(head);
    if (!one) {
      const canvas = make("canvas", {});
      const label = make("span", { class: "number" }, head);
      const button = make("button", { class: "plain", type: "button", onclick: () => this.onchoose(head) }, canvas, label);
      one = { canvas, button };
      this.maps.set(head, one);
      this.element.append(make("div", { role: "listitem" }, button));
    }
    Object.assign(one, { rows, columns, numbers });
    const share = counted >= 1 ? "every query" : `${Math.max(1, Math.round(counted * 100))} % of the queries so far`;
    one.button.title = `${head}: ${share}`;
    one.button.setAttribute("aria-label", `${head}, ${share}`);
    one.button.classList.toggle("rough", counted < 1);
    this.draw(one);
  }
  choose(head) {
    for (const [name, one] of this.maps) one.button.classList.toggle("chosen", name === head);
  }
  draw({ canvas, rows, columns, numbers }) {
    [canvas.width, canvas.height] = [columns, rows];
    const pencil = canvas.getContext("2d");
    const pixels = pencil.createImageData(columns, rows);
    const most = numbers.reduce((one, other) => Math.max(one, other), 1e-9);
    for (let i = 0; i < numbers.length; i++) {
      const colour = numbers[i] < 0 ? this.ramp.masked : this.ramp.at(Math.sqrt(numbers[i] / most));
      pixels.data.set([...colour, numbers[i] === TILE_PENDING ? 0 : 255], i * 4);
    }
    pencil.putImageData(pixels, 0, 0);
  }
  recolour() {
    this.ramp = new Ramp(this.root);
    for (const one of this.maps.values()) this.draw(one);
  }
}
