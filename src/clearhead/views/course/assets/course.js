// The course: chapters with their figures and exercises, links, full screen, progress.

const KEPT = "clearhead-course";

class Chapter {
  constructor(element, meta, course) {
    Object.assign(this, { element, meta, course, id: element.id });
    const exercise = element.querySelector(".exercise");
    if (exercise) this.exercise = new Exercise(exercise, meta.exercise, () => course.done(this.id));
    exercise?.querySelector(".set")?.addEventListener("click", () => {
      this.build();
      this.fields.reset();
      for (const [name, value] of Object.entries(meta.exercise.state)) this.fields.byName.get(name)?.set(String(value));
      this.figure.scrollIntoView({ block: "nearest" });
    });
    this.figure = element.querySelector("figure");
    this.body = this.figure.querySelector(".figure-body");
    this.told = this.figure.querySelector(".conclusion");
    const tools = { ".share": () => this.share(), ".svg": () => download(`${this.id}.svg`, svgOf(this.figure), "image/svg+xml"), ".full": () => this.full(), ".again": () => this.fields.reset() };
    for (const [name, act] of Object.entries(tools)) this.figure.querySelector(name).addEventListener("click", act);
  }

  build() {
    if (this.built) return;
    this.built = true;
    this.body.replaceChildren();
    this.fields = new Fields(this.id, () => this.show(), (text) => this.tell(text, true));
    const numbers = this.meta.numbers ? this.course.numbers(this.meta.numbers) : null;
    const mark = () => (this.figure.dataset.ready = "true");
    const { data } = this.meta;
    const waiting = this.meta.waits;
    this.update = FIGURES[this.meta.kind]({ fields: this.fields, body: this.body, data, numbers, ready: mark, conclude: (text) => this.conclude(text) });
    this.show();
    if (!waiting) mark();
  }
  show() {
    if (!this.update) return;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.update();
    if (focused) this.body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true }); // it was drawn anew
  }
  conclude(text) {
    if (this.said !== text) this.told.replaceChildren(...typeset(text));
    this.said = text;
  }
  tell(text, wrong = false) {
    const said = this.figure.querySelector(".said");
    said.textContent = text;
    said.classList.toggle("wrong", wrong);
  }
  get link() {
    const { state } = this.fields;
    return `#${this.id}${state ? `?${state}` : ""}`;
  }
  async share() {
    const url = new URL(this.link, location.href).href;
    history.replaceState(null, "", this.link);
    try {
      await navigator.clipboard.writeText(url);
      this.tell("The link is copied.");
    } catch {
      this.tell("The link is in the address bar.");
    }
  }
  full() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.figure.requestFullscreen?.();
  }
}

class Course {
  constructor(root) {
    this.root = root;
    this.kept = new Map();
    const metas = JSON.parse(root.querySelector("script[data-chapters]").textContent);
    this.chapters = [...root.querySelectorAll("section.chapter")].map((element) => new Chapter(element, metas[element.id], this));
    this.byId = new Map(this.chapters.map((one) => [one.id, one]));
    this.finished = new Set(this.remembered());
    this.mark();
    root.querySelector(".theme").addEventListener("click", () => this.theme());
    root.querySelector(".alone").addEventListener("click", (event) => this.alone(event.currentTarget));
    const near = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => this.byId.get(one.target.id).build()), { rootMargin: "600px" });
    const here = new IntersectionObserver((seen) => seen.filter((one) => one.isIntersecting).forEach((one) => this.current(one.target.id)), { rootMargin: "-30% 0px -60% 0px" });
    for (const one of this.chapters) {
      near.observe(one.element);
      here.observe(one.element);
    }
    addEventListener("hashchange", () => this.go());
    addEventListener("beforeprint", () => this.onPaper());
    addEventListener("afterprint", () => this.onScreen());
    addEventListener("keydown", (event) => this.key(event));
    this.go();
    root.dataset.ready = "true";
    this.buildWhenIdle([...this.chapters]);
  }
  onPaper() {
    this.onScreen();
    this.themeOnScreen = this.root.dataset.theme ?? "";
    this.root.dataset.theme = "light";
    this.chapters.forEach((one) => one.build());
  }
  onScreen() {
    if (this.themeOnScreen === undefined) return;
    if (this.themeOnScreen) this.root.dataset.theme = this.themeOnScreen;
    else delete this.root.dataset.theme;
    delete this.themeOnScreen;
  }
  // Some figures unpack their numbers, which printing does not wait for: they are there before it.
  buildWhenIdle([next, ...others]) {
    if (!next) {
      this.root.dataset.complete = "true";
      return;
    }
    const later = globalThis.requestIdleCallback ?? ((run) => setTimeout(run, 200));
    later(() => {
      next.build();
      this.buildWhenIdle(others);
    });
  }
  numbers(name) {
    if (!this.kept.has(name)) this.kept.set(name, JSON.parse(this.root.querySelector(`script[data-numbers="${name}"]`).textContent));
    return this.kept.get(name);
  }
  go() {
    const [id, ...rest] = location.hash.slice(1).split("?");
    const state = rest.join("?");
    const chapter = this.byId.get(id);
    if (!chapter) return;
    chapter.build();
    if (state) chapter.fields.state = state;
    this.current(id);
    chapter.element.scrollIntoView();
  }
  current(id) {
    this.at = id;
    for (const link of this.root.querySelectorAll("nav a[data-chapter]")) {
      if (link.dataset.chapter === id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const one of this.chapters) one.element.classList.toggle("shown", one.id === id);
  }
  alone(button) {
    const on = this.root.classList.toggle("one-by-one");
    button.setAttribute("aria-pressed", String(on));
    this.current(this.at ?? this.chapters[0].id);
    if (on) this.byId.get(this.at).element.scrollIntoView();
  }
  // n and p: the next chapter and the one before.
  key(event) {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { n: 1, p: -1 }[event.key];
    if (!step) return;
    const place = this.chapters.findIndex((one) => one.id === this.at);
    const next = this.chapters[Math.max(0, Math.min(this.chapters.length - 1, place + step))];
    location.hash = next.id;
  }
  theme() {
    const dark = this.root.dataset.theme ? this.root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.root.dataset.theme = dark ? "light" : "dark";
  }
  remembered() {
    try {
      return JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    } catch {
      return [];
    }
  }
  done(id) {
    this.finished.add(id);
    try {
      localStorage.setItem(KEPT, JSON.stringify([...this.finished]));
    } catch {
      // a page in a private window keeps nothing
    }
    this.mark();
  }
  mark() {
    for (const link of this.root.querySelectorAll("nav a[data-chapter]")) link.classList.toggle("done", this.finished.has(link.dataset.chapter));
    const count = this.chapters.filter((one) => this.finished.has(one.id)).length;
    this.root.querySelector(".progress").textContent = count ? `${count} of ${this.chapters.length} exercises solved` : "";
  }
}

new Course(document.querySelector(".course"));
