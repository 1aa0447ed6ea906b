// All layers × heads, each a small map. One canvas for the pictures, a button for each head.

class GalleryPanel {
  constructor(view) {
    this.view = view;
    this.element = make("section", { class: "card gallery", "aria-label": "All heads" });
    const { gallery } = view.meta;
    if (!gallery) {
      this.element.hidden = true;
      return;
    }
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.grid = make("div", { class: "gallery-grid" });
    this.buttons = new Map();
    const most = Math.max(...gallery.names.map((names) => names.length));
    this.grid.style.setProperty("--heads", most);
    this.grid.style.setProperty("--thumb", `${Math.max(20, Math.min(40, Math.floor(400 / most) - 5))}px`);
    this.grid.append(make("span", { class: "gallery-layer" }));
    for (let head = 0; head < most; head++) this.grid.append(make("span", { class: "gallery-head" }, `H${head}`));
    gallery.names.forEach((names, layer) => {
      const title = names.length ? names[0].replace(/H\d+$/, "") : "";
      this.grid.append(make("span", { class: "gallery-layer" }, title));
      for (let head = 0; head < most; head++) this.grid.append(this.button(names[head], layer, head));
    });
    const words = make("p", { class: "quiet" }, gallery.remark);
    const frame = make("div", { class: "gallery-frame" }, this.canvas, this.grid);
    this.scroll = make("div", { class: "gallery-scroll" }, frame);
    this.element.append(make("h2", {}, "All heads"), words, this.scroll);
    new ResizeObserver(() => this.draw()).observe(this.grid);
  }

  button(name, layer, head) {
    if (name === undefined) return make("span", {});
    const { salience } = this.view.meta.gallery;
    const found = salience.includes(name);
    const button = make("button", {
      class: found ? "thumb salient" : "thumb",
      title: found ? `${name}: among the most salient heads` : name,
      "aria-label": `Head ${name}`,
      onclick: () => this.view.choose(this.view.headNamed(name), true),
    });
    button.dataset.layer = layer;
    button.dataset.head = head;
    this.buttons.set(name, button);
    return button;
  }

  show() {
    if (!this.buttons) return;
    for (const [name, button] of this.buttons) {
      button.classList.toggle("chosen", name === this.view.picture.name);
    }
    const chosen = this.buttons.get(this.view.picture.name);
    if (!chosen || chosen === this.chosen) return;
    this.chosen = chosen;
    const middle = chosen.offsetTop - this.scroll.clientHeight / 2;
    this.scroll.scrollTop = Math.max(0, middle);
  }

  async draw() {
    if (!this.buttons) return;
    const { gallery } = this.view.meta;
    const maps = await this.view.blocks.raw("gallery");
    const ramp = this.view.ramp;
    const frame = this.grid.getBoundingClientRect();
    if (!frame.width) return;
    const context = sharpCanvas(this.canvas, frame.width, frame.height);
    const small = document.createElement("canvas");
    [small.width, small.height] = [gallery.columns, gallery.rows];
    const pencil = small.getContext("2d");
    const image = pencil.createImageData(gallery.columns, gallery.rows);
    const palette = Array.from({ length: 256 }, (_, i) => ramp.at(i / 255));
    const cells = gallery.columns * gallery.rows;
    let at = 0;
    for (const names of gallery.names) {
      for (const name of names) {
        for (let i = 0; i < cells; i++) {
          const [red, green, blue] = palette[maps[at + i]];
          image.data.set([red, green, blue, 255], i * 4);
        }
        at += cells;
        pencil.putImageData(image, 0, 0);
        // Places inside the grid: resizing the canvas may have scrolled what is on the screen.
        const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = this.buttons.get(name);
        context.imageSmoothingEnabled = false;
        context.drawImage(small, offsetLeft, offsetTop, offsetWidth, offsetHeight);
      }
    }
  }
}
