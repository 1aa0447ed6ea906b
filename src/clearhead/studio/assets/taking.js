// What is shown, to take along: as a file, as an address, as the Python that gives the same.

const FILES = [["html", "Page"], ["svg", "SVG"], ["png", "PNG"], ["csv", "CSV"], ["json", "JSON"]];
const inPython = (text) => JSON.stringify(text);

// The lines for one side; names of the second have a 2 behind them.
function pythonOf(pane, model, number = "") {
  const view = pane.view?.state() ?? {};
  const text = inPython(pane.text);
  const head = view.head && !view.head.startsWith("all") ? `, head=${inPython(view.head)}` : "";
  if (model?.kind === "trace") return [`seen${number} = ch.open_trace(${inPython(model.source ?? model.name)})`, `look${number} = ch.look(seen${number}, word=${view.word ?? 0}${head})`, `look${number}`];
  const loaded = `loaded${number}`;
  const lines = [`${loaded} = ch.load(${inPython(model?.source ?? pane.model)})`, `look${number} = ch.look(${loaded}, ${text}, word=${view.word ?? 0}${head})`, `look${number}`];
  return [...lines, ...pythonOfWriting(pane.writer, loaded, text), ...pythonOfWhy(pane.why, loaded)];
}

// Another way, or settings that changed meanwhile, come from no seed: then it is the tokens.
function pythonOfWriting({ ids, settings, seed, plain, running }, loaded, text) {
  if (!ids.length) return [];
  if (!plain || running) return ["", `written = ${JSON.stringify(ids)}  # with other ways taken, or settings changed`, `print(${loaded}.tokenizer.decode(written))`];
  const options = [`max_tokens=${ids.length}`, `temperature=${settings.temperature}`, `top_k=${settings.topK ?? "None"}`, `top_p=${settings.topP < 1 ? settings.topP : "None"}`, `seed=${seed}`];
  return ["", `for event in ch.generate(${loaded}, ${text}, ${options.join(", ")}):`, '    print(event.text, end="")'];
}

function pythonOfWhy(why, loaded) {
  if (!why.shown) return [];
  const { text, source, position } = why.found.python;
  const more = `${position === undefined ? "" : `, position=${position}`}${source === undefined ? "" : `, source=${inPython(source)}`}`;
  const lines = ["", `text = ${JSON.stringify(text)}  # up to there`, `why = ch.why(${loaded}, text, ${why.token}${more})  # ${inPython(why.found.token.name)}`, "why"];
  const changes = [...why.off.values()].map(({ head, source: from }) => `ch.ablate(${loaded}, ${inPython(head)}${from === undefined ? "" : `, source=${from}, query=${why.position}`})`);
  if (changes.length) lines.push("", `with ${changes.join(", ")}:`, `    print(ch.why(${loaded}, text, effects=False${more}).token)  # what it says now`);
  return lines;
}

// Of two heads of the same text, or of all heads.
function pythonOfDifference([one, other]) {
  const alike = one.model === other.model && one.text === other.text && one.view && other.view;
  const head = (pane, name) => `${name}.head(${inPython(pane.view.headName().replace(/^all\d+$/, "all"))})`;
  return alike ? `ch.diff(${head(one, "look")}, ${head(other, "look2")})` : "ch.diff(look, look2)";
}

function pythonOfStudio({ panes }) {
  const [first, second] = panes.map((pane, place) => pythonOf(pane, pane.models.models.get(pane.model), place ? "2" : ""));
  const both = second ? ["", ...second, "", pythonOfDifference(panes)] : [];
  return ["import clearhead as ch", "", ...first, ...both].join("\n");
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
    if (open) this.code.textContent = pythonOfStudio(this.studio);
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
    pane.work("writing the file", "save", { pane: 0, what, format, head: head ?? null, word: word ?? null }, (message, bytes) => {
      if (message.kind === "file") download(message.name, new Blob([bytes], { type: message.type }));
      else pane.heard(message);
    });
  }
}
