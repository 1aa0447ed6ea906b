// Pages that can be read without any script. It adds what a file cannot do alone: pictures of what
// is on the screen, and an address that holds what is chosen (#head=L16H5).

class StaticPage {
  constructor(root) {
    this.root = root;
    this.choices = [...root.querySelectorAll("input[data-choice]")];
    for (const tools of root.querySelectorAll(".tools")) tools.hidden = false;
    for (const button of root.querySelectorAll("[data-save]")) button.addEventListener("click", () => this.save(button.dataset.save));
    for (const choice of this.choices) choice.addEventListener("change", () => this.keep());
    addEventListener("hashchange", () => this.restore());
    this.restore();
  }
  keep() {
    const state = this.choices.filter((one) => one.checked).map((one) => [one.dataset.choice, one.value]);
    try {
      history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    } catch {
      // a frame without an address of its own
    }
  }
  restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const one of this.choices) if (state.get(one.dataset.choice) === one.value) one.checked = true;
  }
  get svg() {
    const drawn = this.root.querySelector(".picture > svg");
    return drawn ? new XMLSerializer().serializeToString(drawn) : svgOf(this.root.querySelector("main") ?? this.root);
  }
  async save(kind) {
    const name = document.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60).replace(/^-|-$/g, "") || "clearhead";
    if (kind === "svg") download(`${name}.svg`, this.svg, "image/svg+xml");
    else download(`${name}.png`, await pngOf(this.svg), "image/png");
  }
}

for (const root of document.querySelectorAll("[data-static]:not([data-ready])")) {
  new StaticPage(root);
  root.dataset.ready = "true";
}
