// A long text: the map of one head as deep zoom, and all heads as small maps.

class MapPanel {
  constructor(pane) {
    this.pane = pane;
    this.element = make("section", { class: "map-live", "aria-label": "The map of a long text", hidden: true });
  }

  close() {
    this.element.hidden = true;
    this.element.replaceChildren();
    this.zoom = null;
  }

  ask(head = null) {
    this.element.hidden = false;
    const fields = { ...this.pane.about, head };
    if (this.number !== undefined) this.pane.studio.connection.forget(this.number);
    this.number = this.pane.studio.connection.ask("map", fields, (message, bytes) => {
      if (message.kind === "mapped") this.show(message, bytes);
      else if (message.kind === "mapping") this.more(message);
      else this.pane.heard(message);
    });
  }

  show({ id, info, heads }, bytes) {
    const [rows, columns] = JSON.parse(new TextDecoder().decode(bytes));
    this.strongestFound = new Promise((resolve) => (this.found = resolve));
    const source = new ServedTiles(info, {
      tile: (...place) => this.tile(id, place),
      axis: async (which) => (which === "rows" ? rows : columns),
      strongest: () => this.strongestFound,
    });
    const again = this.zoom && this.zoom.source.info.rows === info.rows ? this.zoom.geometry : null;
    const { root } = this.pane.studio;
    this.zoom = new DeepZoom(source, { root, onpoint: (cell, spoken) => this.panel.point(cell, spoken), onmove: () => {}, onpaint: () => this.panel.tell() });
    if (again) this.zoom.geometry = again;
    this.panel = new ZoomPanel(this.zoom);
    const picker = make("select", { "aria-label": "Head of the map", onchange: () => this.ask(picker.value) }, ...heads.map((name) => make("option", { value: name }, name)));
    picker.value = info.head;
    this.small ??= new SmallMaps(root, (name) => this.ask(name));
    this.smallCard ??= make("section", { class: "card", "aria-label": "All heads of this text" }, make("h2", {}, "All heads of this text"), make("button", { class: "plain", onclick: (event) => this.askSmall(event.target) }, "Draw the small maps of all heads"), this.small.element);
    const close = make("button", { class: "plain", onclick: () => this.close() }, "Close the map");
    this.panel.controls.prepend(make("label", { class: "field" }, "Head ", picker));
    this.panel.controls.append(make("span", { class: "spacer" }), close);
    this.element.replaceChildren(
      make("h2", { class: "map-title" }, `Head ${info.head} over the whole text: ${info.rows.toLocaleString("en")} tokens`),
      make("p", { class: "quiet" }, "Rows are queries (tokens that look), columns are keys (tokens they look at). Wheel or + zooms in, down to single weights; drag moves."),
      this.panel.controls,
      make("div", { class: "zoom-columns" }, make("section", { class: "card zoom-card", "aria-label": "The map" }, this.panel.status, this.zoom.element, this.panel.legend), this.panel.element),
      this.smallCard,
    );
    this.zoom.resize();
    this.zoom.ready.then(() => (this.element.dataset.ready = "true"));
    this.pane.say(`${info.rows.toLocaleString("en")} tokens`);
  }

  // More of the map is counted: coarse tiles are asked for again.
  more({ counted, most, strongest }) {
    if (!this.zoom) return;
    Object.assign(this.zoom.source.info, { counted, most });
    if (counted < 1 || strongest) this.zoom.refresh();
    if (strongest) this.found(strongest);
  }

  tile(map, place) {
    return new Promise((resolve, reject) => {
      this.pane.studio.connection.ask("tile", { pane: this.pane.number, map, place }, (message, bytes) => {
        if (message.kind === "tile") resolve(bytes.slice().buffer);
        else reject(new Error(message.kind));
      });
    });
  }

  askSmall(button) {
    button.hidden = true;
    this.pane.studio.connection.ask("small_maps", { pane: this.pane.number }, (message, bytes) => {
      if (message.kind === "small") this.small.set({ ...message, numbers: new Float32Array(bytes.slice().buffer) });
      else this.pane.heard(message);
    });
  }
}
