// What is shown, as the part of the address behind #: it can be passed on, kept, and opened again.

const LONGEST_IN_ADDRESS = 20000; // characters of a text: a chapter

function stateOf(pane) {
  const view = pane.view ? pane.view.state() : pane.kept;
  const state = { model: pane.model, text: pane.text.length <= LONGEST_IN_ADDRESS ? pane.text : undefined };
  if (pane.writer.ids.length) state.ids = pane.writer.ids.join(".");
  Object.assign(state, { head: view.head, word: view.word, pool: view.pool });
  if (view.hiding !== undefined) state.hide = Number(view.hiding);
  if (view.logarithmic !== undefined) state.log = Number(view.logarithmic);
  Object.assign(state, pane.writer.settingsState());
  if (pane.why.shown) Object.assign(state, pane.why.state());
  if (pane.map.zoom) Object.assign(state, pane.map.state());
  return state;
}

function writeAddress(panes) {
  const all = new URLSearchParams();
  panes.forEach((pane, number) => {
    const prefix = number ? "b." : "";
    for (const [name, value] of Object.entries(stateOf(pane))) {
      if (value !== undefined && value !== null && value !== "") all.set(prefix + name, value);
    }
  });
  history.replaceState(null, "", `#${all}`);
}

function readAddress() {
  const all = new URLSearchParams(location.hash.slice(1));
  const found = [{}, {}];
  for (const [name, value] of all) {
    const second = name.startsWith("b.");
    found[Number(second)][second ? name.slice(2) : name] = value;
  }
  return found.filter((one, number) => number === 0 || Object.keys(one).length);
}

const whole = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : undefined);

// What a view starts with; values of an address are as strangers wrote them.
function viewState({ head, word, pool, hide, log }) {
  const state = {};
  if (head !== undefined && /^[A-Za-z0-9]{1,12}$/.test(head)) state.head = head;
  if (whole(word) !== undefined) state.word = whole(word);
  if (["max", "mean", "sum"].includes(pool)) state.pool = pool;
  if (hide !== undefined) state.hiding = hide === "1";
  if (log !== undefined) state.logarithmic = log === "1";
  return state;
}
