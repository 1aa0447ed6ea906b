// The models that the server offers. What one takes is told before it is fetched or loaded.

const UNITS = [[1e9, "billion"], [1e6, "million"], [1e3, "thousand"]];

function shortCount(count) {
  const [by, name] = UNITS.find(([one]) => count >= one) ?? [1, ""];
  return `${Number((count / by).toPrecision(3))}${name ? ` ${name}` : ""}`;
}
const megabytes = (bytes) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.max(1, Math.round(bytes / 1e6))} MB`);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

class ModelPicker {
  constructor(pane, name) {
    this.pane = pane;
    this.picker = make("select", { "aria-label": name, onchange: () => this.choose(this.picker.value) });
    this.element = make("label", { class: "field model-field" }, "Model ", this.picker);
    this.models = new Map();
  }

  fill(models) {
    this.models = new Map(models.map((one) => [one.name, one]));
    const names = models.map((one) => make("option", { value: one.name }, `${shortened(one.name, 28)}${one.here ? "" : " (to fetch)"}`));
    this.picker.replaceChildren(...names);
    this.picker.value = this.pane.model;
  }

  get kind() {
    return this.models.get(this.pane.model)?.kind;
  }

  isLoaded(name) {
    return this.models.get(name)?.loaded ?? false;
  }

  choose(name) {
    const model = this.models.get(name);
    if (!model || model.loaded) this.pane.setModel(name);
    else this.question(model);
  }

  // An address may name a model that has to be fetched: the first one stands there until somebody agrees.
  begin(first) {
    const model = this.models.get(this.pane.model);
    if (!model || model.here || model.name === first) return;
    this.picker.value = this.pane.model = first;
    this.question(model);
  }

  // Asks before anything is fetched or takes memory.
  question(model) {
    const facts = [
      model.kind && `a${/^[aeiou]/.test(model.kind) ? "n" : ""} ${model.kind}`,
      model.parameters && `${shortCount(model.parameters)} parameters`,
      model.size && `${megabytes(model.size)} of files, and about as much memory`,
    ].filter(Boolean);
    const fetched = model.here ? "It is on this machine." : `It is fetched first: ${megabytes(model.download || model.size)}, once.`;
    const dialog = make("dialog", { class: "card question", "aria-label": `Load ${model.name}?` });
    const answer = (yes) => () => {
      dialog.close();
      dialog.remove();
      if (yes) this.pane.setModel(model.name);
      else this.picker.value = this.pane.model;
    };
    dialog.addEventListener("cancel", answer(false));
    dialog.append(
      make("h2", {}, `Load ${model.name}?`),
      make("p", {}, capital(facts.join(", ")), ". ", fetched),
      model.what ? make("p", { class: "quiet" }, model.what) : "",
      model.terms ? make("p", { class: "quiet" }, model.terms) : "",
      make("p", { class: "buttons" }, make("button", { class: "main", onclick: answer(true) }, model.here ? "Load" : "Fetch and load"), make("button", { class: "plain", onclick: answer(false) }, "Cancel")),
    );
    this.pane.studio.root.append(dialog);
    dialog.showModal();
  }
}
