// The map page: one deep zoom with its panel, from the tiles in this file.

class MapPage {
  constructor(root) {
    this.root = root;
    this.meta = JSON.parse(root.querySelector("script[data-meta]").textContent);
    this.source = new EmbeddedTiles(root, this.meta.tiles);
    this.zoom = new DeepZoom(this.source, {
      root,
      logarithmic: this.meta.aids.colour === "log",
      onpoint: (cell, spoken) => this.panel.point(cell, spoken),
      onmove: () => this.toAddress(),
      onpaint: () => this.panel.tell(),
    });
    this.panel = new ZoomPanel(this.zoom);
    this.alone = document.querySelectorAll(".clearhead").length === 1;
    this.build();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.zoom.recolour());
    this.zoom.ready.then(() => {
      this.fromAddress();
      root.dataset.ready = "true";
    });
  }

  build() {
    const { meta } = this;
    const log = make("input", { type: "checkbox", role: "switch" });
    log.checked = this.zoom.logarithmic;
    log.addEventListener("change", () => {
      this.zoom.logarithmic = log.checked;
      this.zoom.recolour();
      this.toAddress();
    });
    this.logBox = log;
    const toggle = make("label", { class: "switch" }, log, make("span", { class: "knob" }), "Log colours");
    this.panel.controls.append(make("span", { class: "spacer" }), toggle);
    const notes = meta.notes.map((note) => make("li", {}, note));
    const app = make(
      "main",
      { class: "app" },
      this.header(),
      make("section", { class: "top", "aria-label": "What is shown" }, this.headline(), make("p", { class: "reason" }, meta.reason)),
      this.panel.controls,
      make("div", { class: "zoom-columns" }, make("section", { class: "card zoom-card", "aria-label": "The map" }, this.panel.status, this.zoom.element, this.panel.legend), this.panel.element),
      make("footer", {}, make("ul", {}, ...notes)),
    );
    this.root.querySelector(".plain-text")?.remove();
    this.root.append(app);
  }

  header() {
    const theme = make("button", { class: "plain", type: "button", "aria-label": "Light or dark", onclick: () => this.nextTheme() }, "◐", make("span", { class: "wide" }, " Light or dark"));
    const save = (kind) => make("button", { class: "plain", type: "button", title: `Save what is shown as ${kind}`, onclick: () => this.save(kind) }, kind);
    const brand = make("span", { class: "brand" }, make("b", {}, "clearhead"), " one head, the whole text");
    if (this.meta.model) brand.append(make("span", { class: "model" }, ` · ${this.meta.model}`));
    return make("header", {}, brand, make("span", { class: "spacer" }), save("PNG"), save("SVG"), theme);
  }

  // The largest single weight, never the largest of several.
  headline() {
    const { strongest, head, measure } = this.meta.tiles;
    const title = make("h1", { class: "headline" });
    const best = strongest[0];
    if (!best) title.append(`${head}: nothing stands out in this text.`);
    else {
      const number = make("span", { class: "number" }, two(best.weight));
      const of = measure === "weight" ? "of its attention" : "of its weight·‖v‖";
      title.append(make("b", { class: "query", dir: "auto" }, shortened(best.query, 30)), " looks at ", make("b", { class: "source", dir: "auto" }, best.itself ? "itself" : shortened(best.key, 30)), ": ", number, this.meta.pooled ? `, the ${head}.` : ` ${of} in head ${head}.`);
    }
    return title;
  }

  save(kind) {
    const name = `${this.meta.tiles.head.replace(/[^A-Za-z0-9]+/g, "-")}-map.${kind.toLowerCase()}`;
    if (kind === "SVG") download(name, new Blob([zoomSvg(this.zoom)], { type: "image/svg+xml" }));
    else this.zoom.canvas.toBlob((blob) => download(name, blob));
  }

  nextTheme() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const now = this.root.dataset.theme || (dark ? "dark" : "light");
    this.root.dataset.theme = now === "dark" ? "light" : "dark";
    this.zoom.recolour();
  }

  // The address follows what is shown, so that it can be passed on: #row=…&column=…&scale=…&log=1.
  fromAddress() {
    if (!this.alone || !location.hash) return;
    const asked = new URLSearchParams(location.hash.slice(1));
    const [row, column, scale] = ["row", "column", "scale"].map((name) => Number(asked.get(name) ?? NaN));
    if (asked.has("log")) this.zoom.logarithmic = this.logBox.checked = asked.get("log") === "1";
    if ([row, column, scale].every(Number.isFinite)) this.zoom.geometry.centre(row, column, scale);
    this.zoom.recolour();
  }

  toAddress() {
    if (!this.alone) return;
    const { geometry } = this.zoom;
    const state = {
      row: Math.floor(geometry.y + geometry.height / geometry.scale / 2),
      column: Math.floor(geometry.x + geometry.width / geometry.scale / 2),
      scale: geometry.scale.toPrecision(4),
      log: Number(this.zoom.logarithmic),
    };
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      try {
        history.replaceState(null, "", geometry.isWhole && !state.log ? location.pathname : `#${new URLSearchParams(state)}`);
      } catch {
        this.alone = false; // a frame without an address of its own
      }
    }, 200);
  }
}

for (const root of document.querySelectorAll(".clearhead[data-map]:not([data-started])")) {
  root.dataset.started = "true";
  root.view = new MapPage(root);
}
