// A long text: the map of one head as deep zoom, and all heads as small maps.

class MapPanel {
  constructor(pane, { head, at } = {}) {
    this.pane = pane;
    this.start = { head: /^[A-Z]\d+H\d+$/.test(head ?? "") ? head : null, at: (at ?? "").split("_").map(Number) };
    this.element = make("section", { class: "map-live", "aria-label": "The map of a long text", hidden: true });
  }

  close() {
    this.forget();
    this.element.hidden = true;
    this.element.replaceChildren();
    this.zoom = this.smallCard = this.small = null;
  }

  // What was asked about an older text is of no use.
  forget() {
    for (const number of [this.number, this.smallNumber]) this.pane.studio.connection?.forget(number);
  }

  // The head, and the part of its map that is shown: its middle, and pixels for each token.
  state() {
    const { geometry, source } = this.zoom;
    const middle = [geometry.y + geometry.height / geometry.scale / 2, geometry.x + geometry.width / geometry.scale / 2];
    const at = geometry.isWhole ? undefined : [...middle.map((one) => Math.floor(one)), Number(geometry.scale.toPrecision(3))].join("_");
    return { head: source.info.head, at, word: undefined };
  }

  ask(head = null) {
    this.element.hidden = false;
    const { start } = this;
    const fields = { ...this.pane.about, head: head ?? start.head };
    start.head = null;
    if (this.number !== undefined) this.pane.studio.connection.forget(this.number);
    this.number = this.pane.studio.connection.ask("map", fields, (message, bytes) => {
      if (message.kind === "mapped") this.show(message, bytes);
      else if (message.kind === "mapping") this.more(message);
      else this.pane.heard(message);
    });
  }

  show({ id, info, heads, missed }, bytes) {
    const [rows, columns] = JSON.parse(new TextDecoder().decode(bytes));
    this.strongestFound = new Promise((resolve) => (this.found = resolve));
    const source = new ServedTiles(info, {
      tile: (...place) => this.tile(id, place),
      axis: async (which) => (which === "rows" ? rows : columns),
      strongest: () => this.strongestFound,
    });
    const again = this.zoom && this.zoom.source.info.rows === info.rows ? this.zoom.geometry : null;
    const { root } = this.pane.studio;
    this.zoom = new DeepZoom(source, { root, onpoint: (cell, spoken) => this.panel.point(cell, spoken), onmove: () => this.pane.studio.changed(this.pane), onpaint: () => this.panel.tell() });
    if (again) this.zoom.geometry = again;
    this.panel = new ZoomPanel(this.zoom);
    this.panel.list.addEventListener("click", () => this.zoom.element.scrollIntoView({ block: "nearest", behavior: "smooth" }));
    const picker = make("select", { "aria-label": "Head of the map", onchange: () => this.ask(picker.value) }, ...heads.map((name) => make("option", { value: name }, name)));
    picker.value = info.head;
    this.small ??= new SmallMaps(root, (name) => this.ask(name));
    this.smallButton ??= make("button", { class: "plain", onclick: () => this.askSmall() }, "Draw the small maps of all heads");
    this.smallCard ??= make("section", { class: "card", "aria-label": "All heads of this text" }, make("h2", {}, "All heads of this text"), this.smallButton, this.small.element);
    this.heads = heads.length;
    const close = make("button", { class: "plain", onclick: () => this.close() }, "Close the map");
    this.panel.controls.prepend(make("label", { class: "field" }, "Head ", picker));
    this.panel.controls.append(make("span", { class: "spacer" }), close);
    this.element.replaceChildren(
      make("h2", { class: "map-title" }, `Head ${info.head} over the whole text: ${info.rows.toLocaleString("en")} tokens`),
      make("p", { class: "quiet" }, "Rows are queries (tokens that look), columns are keys (tokens they look at). Wheel or + zooms in, down to single weights; drag moves."),
      missed ? make("p", { class: "caveat" }, missed) : "",
      this.panel.controls,
      make("div", { class: "zoom-columns" }, make("section", { class: "card zoom-card", "aria-label": "The map" }, this.panel.status, this.zoom.element, this.panel.legend), this.panel.element),
      this.smallCard,
    );
    this.zoom.resize();
    this.zoom.ready.then(() => (this.element.dataset.ready = "true"));
    this.begin();
    this.counting(info.counted);
    this.pane.studio.changed(this.pane);
  }

  // The part that an address asks for.
  begin() {
    const [row, column, scale] = this.start.at;
    this.start.at = [];
    if (row >= 0 && column >= 0 && scale > 0) this.zoom.ready.then(() => this.zoom.go(row, column, scale));
  }

  counting(counted) {
    const { rows } = this.zoom.source.info;
    if (counted < 1) this.pane.heard({ kind: "progress", done: Math.floor(counted * 100), total: 100, what: "counting the map" });
    else this.pane.say(`${rows.toLocaleString("en")} tokens`);
  }

  // More of the map is counted: coarse tiles are asked for again.
  more({ counted, most, strongest }) {
    if (!this.zoom) return;
    Object.assign(this.zoom.source.info, { counted, most });
    if (counted < 1 || strongest) this.zoom.refresh();
    if (strongest) this.found(strongest);
    this.counting(strongest ? 1 : counted);
  }

  tile(map, place) {
    return new Promise((resolve, reject) => {
      this.pane.studio.connection.ask("tile", { pane: this.pane.number, map, place }, (message, bytes) => {
        if (message.kind === "tile") resolve(bytes.slice().buffer);
        else reject(new Error(message.kind));
      });
    });
  }

  askSmall() {
    const counted = new Map();
    this.smallButton.hidden = true;
    this.smallNumber = this.pane.studio.connection.ask("small_maps", { pane: this.pane.number }, (message, bytes) => {
      if (message.kind === "small") {
        this.small.set({ ...message, numbers: new Float32Array(bytes.slice().buffer) });
        counted.set(message.head, message.counted);
        const done = [...counted.values()].reduce((sum, one) => sum + one, 0);
        this.pane.heard({ kind: "progress", done, total: this.heads, what: "drawing the small maps" });
      } else if (message.kind === "small maps") this.counting(1);
      else {
        this.smallButton.hidden = false;
        this.pane.heard(message);
      }
    });
  }
}
