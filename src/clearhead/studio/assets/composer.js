// One side of the page: a text, a model, and the look at it, anew after every pause in typing.

const FIRST_TEXTS = { dates: "3rd of March 2021" }; // of models that do not read English
const PAUSE = 150; // milliseconds without a key
const SLOW = 1000; // milliseconds after which the page says what it waits for
const NO_TEXT = /[\0-\x08\x0e-\x1a\x1c-\x1f]/; // signs that no text has
const LONGEST_TEXT = 1000000; // characters
const LARGEST_TRACE = 1e9; // bytes
const PIECE = 399999; // of a trace; divisible by three, as base64 is

class Pane {
  constructor(studio, number, start) {
    Object.assign(this, { studio, number, kept: viewState(start), view: null, asked: null });
    this.model = start.model ?? "";
    this.field = make("textarea", { class: "text", rows: 2, spellcheck: "false", dir: "auto", "aria-label": number ? "Second text" : "Text", placeholder: "Type a text …", oninput: () => this.typed() });
    this.untouched = start.text === undefined; // nobody has chosen a text
    this.field.value = start.text ?? studio.firstText;
    this.models = new ModelPicker(this, number ? "Second model" : "Model");
    this.status = make("p", { class: "status quiet", role: "status" });
    this.stopButton = make("button", { class: "plain stop", hidden: true, onclick: () => this.stop() }, "Stop");
    this.bar = make("progress", { class: "bar-of-work", max: 1, hidden: true, "aria-label": "Progress" });
    this.role = make("p", { class: "role quiet" });
    this.writer = new Writer(this, start);
    this.why = new WhyPanel(this, start);
    this.map = new MapPanel(this, start);
    this.host = make("div", { class: "view-host" });
    const composer = make(
      "section",
      { class: "card composer", "aria-label": number ? "Second text and model" : "Text and model" },
      make("div", { class: "composer-line" }, this.models.element, make("span", { class: "spacer" }), this.status, this.bar, this.stopButton),
      this.field,
      this.writer.controls,
    );
    this.element = make("section", { class: "pane" }, composer, this.writer.element, this.why.element, this.map.element, this.role, this.host);
    this.listenForFiles(composer);
  }

  get text() {
    return this.field.value;
  }

  // As many lines as the text has, up to a quarter of the window; above a map only a few.
  fit() {
    const most = this.map.element.hidden ? Math.max(90, innerHeight / 4) : 90;
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, most)}px`;
  }

  setText(text) {
    this.field.value = text;
    this.untouched = false;
    this.kept = { pool: this.kept.pool, hiding: this.kept.hiding, logarithmic: this.kept.logarithmic };
    this.why.close();
    this.writer.clear();
    this.fit();
    this.look();
  }

  // A first text that the model can read.
  suggest() {
    if (this.untouched) this.field.value = FIRST_TEXTS[this.model] ?? this.studio.firstText;
    this.fit();
  }

  typed() {
    this.untouched = false;
    this.fit();
    this.typedAt = performance.now();
    this.writer.clear();
    this.why.close();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), PAUSE);
  }

  // A request that may take long: then the page says so, with a way to stop it.
  work(what, asked, fields, answer) {
    let shown = false;
    const timer = setTimeout(() => {
      shown = true;
      this.say(`${what} …`, true);
    }, SLOW);
    return this.studio.connection.ask(asked, fields, (message, bytes) => {
      clearTimeout(timer);
      if (shown && !["progress", "stopped", "error"].includes(message.kind)) this.say("");
      shown = shown && message.kind === "progress";
      answer(message, bytes);
    });
  }

  // Another model: the one that is shown stays until it is there, and stays if it does not come.
  setModel(name) {
    if (this.loading) this.studio.connection.ask("stop", { pane: this.number });
    this.loading = null;
    if (this.models.isLoaded(name)) {
      this.useModel(name);
      return;
    }
    this.models.picker.value = name;
    const number = this.studio.connection.ask("load", { model: name, pane: this.number }, (message) => {
      if (this.loading !== number) return;
      if (!["progress", "loading"].includes(message.kind)) {
        this.loading = null;
        this.models.picker.value = this.model;
      }
      if (message.kind === "loaded") this.studio.models(() => this.useModel(name));
      else this.heard(message);
    });
    this.loading = number;
  }

  useModel(name) {
    this.model = name;
    this.models.picker.value = name;
    this.suggest();
    this.studio.line.textContent = "";
    this.writer.clear();
    this.writer.allow();
    this.why.close();
    this.setRoles(null);
    this.look();
    this.askRoles(false);
  }

  // What every request about this text begins with.
  get about() {
    return { pane: this.number, model: this.model, text: this.text };
  }

  look(then = null) {
    clearTimeout(this.timer);
    this.map.forget();
    const trace = this.models.kind === "trace";
    this.field.disabled = trace;
    if (this.asked !== null) this.studio.connection.forget(this.asked);
    if (!trace && !this.text.trim()) {
      this.stale(true);
      this.say("Type a text to look at it.");
      return;
    }
    if (this.text.length > LONGEST_TEXT) {
      this.stale(true);
      this.fail({ text: `This text has ${this.text.length.toLocaleString("en")} characters; one of up to ${LONGEST_TEXT.toLocaleString("en")} can be opened.` });
      return;
    }
    this.asked = this.studio.connection.ask("look", { ...this.about, ids: this.writer.ids }, (message, bytes) => {
      if (message.kind === "look") this.show(message, bytes, then);
      else if (message.kind === "long") this.long(message);
      else {
        this.stale(message.kind !== "lost");
        this.heard(message);
      }
    });
  }

  // The picture is not that of the text above it (yet).
  stale(on) {
    this.host.classList.toggle("stale", on);
  }

  // The line broke: nothing that was asked for will come.
  cut() {
    this.loading = this.sending = null;
    this.models.picker.value = this.model;
    this.say("");
    this.writer.cut();
  }

  // Too long for all heads at once: the map of one head.
  long({ tokens }) {
    this.say(`${tokens.toLocaleString("en")} tokens: one head at a time`, true);
    this.view?.end();
    this.view?.root.remove();
    this.view = null;
    this.showRole();
    this.map.ask();
    this.fit();
  }

  // Progress, errors, and what else may come instead of an answer.
  heard(message) {
    if (message.kind === "progress") {
      const { done, total, what } = message;
      this.say(total > 1e6 ? `${what}: ${megabytes(done)} of ${megabytes(total)} …` : `${what} …`, true);
      this.bar.hidden = !(total > 1);
      if (total > 1) [this.bar.max, this.bar.value] = [total, done];
    } else if (message.kind === "loading") this.say(`loading ${message.model} …`, true);
    else if (message.kind === "stopped" && !this.stopButton.hidden) this.say("Stopped.");
    else if (message.kind === "error") this.fail(message);
  }

  say(text, busy = false) {
    this.status.textContent = text;
    this.status.classList.remove("bad");
    this.stopButton.hidden = !busy;
    if (!busy) this.bar.hidden = true;
  }

  fail({ text, hint }) {
    this.say(hint ? `${text}\n${hint}` : text);
    this.status.classList.add("bad");
    this.studio.models(() => (this.field.disabled = this.models.kind === "trace"));
  }

  stop() {
    this.sending = this.loading = null;
    this.models.picker.value = this.model;
    this.studio.connection.ask("stop", { pane: this.number });
    this.say("Stopped.");
  }

  show({ id, meta, blocks, seconds, computed }, bytes, then) {
    this.lookNumber = id;
    this.map.close();
    const fetch = (name) => this.block(id, name);
    const before = this.view;
    const root = make("div", { class: "view coming" });
    this.host.append(root);
    let first = true;
    const state = { ...this.kept };
    if (state.word !== undefined && state.word >= meta.axes[0].words.length) delete state.word;
    const changed = (view) => {
      if (first) {
        first = false;
        root.classList.remove("coming");
        before?.end();
        before?.root.remove();
        this.stale(false);
        this.fit();
        this.view = view;
        this.drawn(seconds, computed);
        then?.();
      } else this.keep(view);
      this.showRole();
      this.studio.changed(this);
    };
    const view = new View(root, { meta, blocks: new SentBlocks(partsOf(blocks, bytes), fetch), state, changed, asked: (position, rank) => this.why.ask(position, { rank }) });
    root.view = view;
    this.meta = meta;
    this.writer.restore(meta.generated);
    if (this.number === 0) this.studio.root.dataset.ready = "true";
    this.proof(id, view);
  }

  drawn(seconds, computed) {
    const run = computed === null ? "" : `, ${computed} token${computed === 1 ? "" : "s"} run`;
    const since = this.typedAt ? `${Math.round(performance.now() - this.typedAt)} ms after the last key` : `${Math.round(seconds * 1000)} ms`;
    this.say(`${since}${run}`);
    this.element.dataset.drawn = `${this.lookNumber}`;
    if (this.typedAt) this.studio.root.dataset.latency = `${Math.round(performance.now() - this.typedAt)}`;
    this.typedAt = null;
    this.studio.looked();
  }

  // What a reader chose stays chosen in the next look; what the salience chose may change.
  keep(view) {
    const { head, word, ...rest } = view.state();
    const { chosen } = view.meta;
    Object.assign(this.kept, rest);
    if (head !== chosen.head || this.kept.head) this.kept.head = head;
    if (word !== chosen.word || this.kept.word !== undefined) this.kept.word = word;
  }

  block(look, name) {
    return new Promise((resolve) => {
      this.studio.connection.ask("block", { pane: this.number, look, name }, (message, bytes) => {
        if (message.kind === "block") resolve(bytes);
        else if (message.kind === "gone" && this.lookNumber === look) this.look();
        else this.heard(message);
      });
    });
  }

  // The proof takes longer than the picture: it is asked for when the picture is there.
  async proof(look, view) {
    const bytes = await this.block(look, "proof");
    if (this.lookNumber !== look) return;
    const proof = JSON.parse(new TextDecoder().decode(bytes));
    const stamp = make("p", { class: proof.exact ? "stamp" : "stamp bad" }, make("b", {}, proof.exact ? "✓ Proved " : "✗ Not proved "), proof.text);
    view.app.querySelector("footer .caveat")?.after(stamp);
    if (this.status.textContent.endsWith("run")) this.say(`${this.status.textContent}, ${proof.exact ? "proved" : "not proved"}`);
  }

  askRoles(measure) {
    if (!["decoder", "encoder"].includes(this.models.kind)) return;
    const { model } = this;
    const fields = { model, measure, pane: this.number };
    const answer = (message) => {
      if (message.kind !== "roles") return measure ? this.heard(message) : null;
      if (this.model !== model) return;
      this.setRoles(message);
      if (measure) this.say("");
      this.showRole();
    };
    if (measure) this.work("measuring what each head does", "roles", fields, answer);
    else this.studio.connection.ask("roles", fields, answer);
  }

  setRoles(roles) {
    this.roles = roles;
    this.finder = this.roleFinder(roles?.heads ?? {});
  }

  // Heads by role: a choice shows the head for which that role is the strongest one, and else any.
  roleFinder(heads) {
    const found = new Map();
    for (const [name, roles] of Object.entries(heads)) {
      for (const [place, { role }] of roles.entries()) {
        if (!found.has(role)) found.set(role, []);
        found.get(role).push([place, name]);
      }
    }
    const first = (role) => found.get(role).reduce((best, one) => (one[0] < best[0] ? one : best))[1];
    const options = [...found.keys()].sort().map((role) => make("option", { value: role }, `${role} (${found.get(role).length})`));
    const picker = make("select", { "aria-label": "Find heads by role", onchange: () => picker.value && this.view.choose(this.view.headNamed(first(picker.value))) }, make("option", { value: "" }, "a role …"), ...options);
    return make("label", { class: "field role-finder", hidden: !found.size }, "Find a head for ", picker);
  }

  showRole() {
    this.role.hidden = !this.view;
    if (!this.view || !this.roles) return;
    const head = this.view.headName();
    const found = this.roles.heads[head];
    const finder = this.finder.querySelector("select");
    if (!found?.some(({ role }) => role === finder.value)) finder.value = "";
    const others = (role) => Object.entries(this.roles.heads).filter(([, roles]) => roles.some((one) => one.role === role)).map(([name]) => name);
    if (found) {
      const parts = found.slice(0, 3).flatMap(({ role, evidence }) => [make("b", {}, role), ` (${evidence}) `]);
      const alike = others(found[0].role).filter((name) => name !== head).slice(0, 6);
      const links = alike.map((name) => make("button", { class: "head-link", onclick: () => this.view.choose(this.view.headNamed(name)) }, name));
      this.role.replaceChildren(`Role of ${head}: `, ...parts, ...(links.length ? [" Others with it: ", ...links] : []), this.finder);
    } else if (this.roles.known) this.role.replaceChildren(`${head} has no role that the measurement could name. `, this.finder);
    else {
      const button = make("button", { class: "plain", onclick: () => this.askRoles(true) }, "Measure the roles of all heads");
      this.role.replaceChildren("What a head does in general is not known of this model yet. ", button);
    }
  }

  // A text file or a trace can be dropped on the text.
  listenForFiles(target) {
    const over = (on) => (event) => {
      event.preventDefault();
      target.classList.toggle("over", on);
    };
    target.addEventListener("dragover", over(true));
    target.addEventListener("dragleave", over(false));
    target.addEventListener("drop", (event) => {
      over(false)(event);
      const file = event.dataTransfer.files[0];
      if (file) this.open(file);
    });
  }

  async open(file) {
    if (/\.(trace|safetensors)$/i.test(file.name)) return this.openTrace(file);
    if (file.size > 4 * LONGEST_TEXT) return this.tooLong(file.name, file.size);
    const name = shortened(file.name, 40);
    const bytes = await file.arrayBuffer().catch(() => null);
    if (bytes === null) return this.fail({ text: `${name} cannot be read.`, hint: "A folder cannot be dropped here; texts and traces (.trace) can." });
    const text = decoded(new Uint8Array(bytes));
    if (text.length > LONGEST_TEXT) return this.tooLong(file.name, file.size);
    if (NO_TEXT.test(text)) return this.fail({ text: `${name} is no text.`, hint: "Texts and traces (.trace) can be dropped here." });
    if (!text.trim()) return this.fail({ text: `${name} is empty.` });
    if (this.models.kind === "trace") this.setModel(this.studio.firstModel);
    this.setText(text);
  }

  tooLong(name, size) {
    this.fail({ text: `${shortened(name, 40)} has ${megabytes(size)}; a text of up to ${LONGEST_TEXT.toLocaleString("en")} characters can be opened.` });
  }

  // A trace goes to the server in pieces, and is there as long as this page is open.
  openTrace(file) {
    if (file.size > LARGEST_TRACE) return this.fail({ text: `${shortened(file.name, 40)} has ${megabytes(file.size)}; a trace of up to ${megabytes(LARGEST_TRACE)} can be dropped here.`, hint: "clearhead studio run.trace opens one of any size." });
    this.sending = file;
    this.sendPiece(file, 0);
  }

  async sendPiece(file, first) {
    const data = await base64Of(file.slice(first, first + PIECE));
    if (this.sending !== file) return;
    this.studio.connection.ask("drop", { name: file.name, size: file.size, first, data }, (message) => {
      if (message.kind !== "dropped") return this.heard(message);
      if (message.model) {
        this.sending = null;
        this.studio.models(() => this.setModel(message.model));
      } else if (this.sending === file) {
        this.heard({ kind: "progress", done: message.come, total: file.size, what: `opening ${shortened(file.name, 40)}` });
        this.sendPiece(file, message.come);
      }
    });
  }
}

// A text in UTF-8 or, as a mark at its beginning says, UTF-16; what is neither is taken for Latin.
function decoded(bytes) {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

function base64Of(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
