// What is shown, to take along: as a file, as an address, as the Python that gives the same.

const FILES = [["html", "Page"], ["svg", "SVG"], ["png", "PNG"], ["csv", "CSV"], ["json", "JSON"]];
const inPython = (text) => JSON.stringify(text);

function pythonOf(pane) {
  const view = pane.view?.state() ?? {};
  const lines = ["import clearhead as ch", "", `loaded = ch.load(${inPython(pane.model)})`];
  const text = inPython(pane.text);
  lines.push(`look = ch.look(loaded, ${text}, word=${view.word ?? 0}${view.head && !view.head.startsWith("all") ? `, head=${inPython(view.head)}` : ""})`, "look");
  const { ids, settings, seed } = pane.writer;
  if (ids.length) {
    const options = [`max_tokens=${ids.length}`, `temperature=${settings.temperature}`, settings.topK && `top_k=${settings.topK}`, settings.topP < 1 && `top_p=${settings.topP}`, `seed=${seed}`].filter(Boolean);
    lines.push("", `for event in ch.generate(loaded, ${text}, ${options.join(", ")}):`, '    print(event.text, end="")');
  }
  if (pane.why.shown) {
    const { token, position, found, off } = pane.why;
    const ids_ = pane.meta?.tokens?.ids.slice(0, position + 1) ?? [];
    lines.push("", `ids = ${JSON.stringify(ids_)}  # the text up to there`, `why = ch.why(loaded, ids, ${token})  # ${found.token.name}`, "why");
    const changes = [...off.values()].map(({ head, source }) => `ch.ablate(loaded, ${inPython(head)}${source === undefined ? "" : `, source=${source}, query=${position}`})`);
    if (changes.length) lines.push("", `with ${changes.join(", ")}:`, "    print(ch.why(loaded, ids, effects=False).token)  # what it says now");
  }
  return lines.join("\n");
}

class Taking {
  constructor(studio) {
    this.studio = studio;
    const files = FILES.map(([format, name]) => make("button", { class: "plain", onclick: () => this.save(format) }, name));
    this.code = make("pre", { class: "python", tabindex: 0 });
    const copy = make("button", { class: "plain", onclick: () => navigator.clipboard.writeText(this.code.textContent) }, "Copy");
    const link = make("button", { class: "plain", onclick: () => this.copyAddress(link) }, "Copy the address of this state");
    this.panel = make("div", { class: "card taking", hidden: true, role: "dialog", "aria-label": "Take it along" },
      make("h2", {}, "Take it along"),
      make("p", {}, "Save what is shown: ", ...files),
      make("p", {}, link, make("span", { class: "quiet" }, " It holds the text, the head, what was written and what is switched off; it works while this studio runs.")),
      make("h3", {}, "As Python ", copy), this.code);
    this.button = make("button", { class: "plain", "aria-expanded": "false", onclick: () => this.toggle() }, "⇩", make("span", { class: "wide" }, " Take it along"));
  }

  toggle(open = this.panel.hidden) {
    this.panel.hidden = !open;
    this.button.setAttribute("aria-expanded", `${open}`);
    if (open) this.code.textContent = pythonOf(this.studio.panes[0]);
  }

  async copyAddress(link) {
    await navigator.clipboard.writeText(location.href);
    link.textContent = "Copied";
  }

  // Of the explanation, if one is open; otherwise of the look.
  save(format) {
    const pane = this.studio.panes[0];
    const { head, word } = pane.view?.state() ?? {};
    const what = pane.why.shown ? "why" : "look";
    pane.studio.connection.ask("save", { pane: 0, what, format, head: head ?? null, word: word ?? null }, (message, bytes) => {
      if (message.kind === "file") download(message.name, new Blob([bytes], { type: message.type }));
      else pane.heard(message);
    });
  }
}
