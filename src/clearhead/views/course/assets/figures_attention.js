// Figures of chapters 1 to 7: one query, a batch, words, matrices, the table, the mask, many heads.
// A figure builds its fields once, and returns the function that computes everything from them.

const FIGURES = {};

// Places in a built table that are filled at every change, so that boxes keep the focus.
function slots() {
  const places = new Map();
  const slot = (name) => {
    if (!places.has(name)) places.set(name, make("span", { class: "slot" }));
    return places.get(name);
  };
  slot.put = (name, ...content) => slot(name).replaceChildren(...content.flat());
  return slot;
}

const strongest = (weights) => weights.indexOf(Math.max(...weights));
const range = (count) => Array.from({ length: count }, (_, i) => i);

FIGURES["one-query"] = ({ fields, body, data, conclude }) => {
  const query = fields.matrix("query", [data.query], (_, c) => `query, number ${c + 1}`);
  const keys = fields.matrix("keys", data.keys, (r, c) => `key ${r + 1}, number ${c + 1}`);
  const slot = slots();
  const rows = data.keys.map((_, r) => ({ cells: [`key ${r + 1}`, keys.row(r), slot(`work-${r}`), slot(`score-${r}`), slot(`power-${r}`), slot(`weight-${r}`), slot(`part-${r}`)] }));
  const table = tableOf(["", "key", "query · key", "score", "e^score", "softmax", "softmax · key"], rows, { caption: "Every key with its score and weight", kind: "steps", foot: { cells: ["sum", "", "", "", slot("powers"), slot("total"), slot("mix")] } });
  body.append(row(make("b", {}, "query"), query.row(0)), table);
  return () => {
    const q = query.values[0];
    const k = keys.values;
    const steps = attentionSteps([q], k, k, { scale: 1 });
    const powers = steps.scores[0].map(Math.exp);
    const largest = Math.max(...steps.scores[0]);
    const logOfSum = largest + Math.log(sumOf(steps.scores[0].map((one) => Math.exp(one - largest))));
    k.forEach((key, r) => {
      const signed = (one) => (one < 0 ? `(${say(one)})` : say(one));
      const work = key.map((one, i) => `${signed(q[i])}·${signed(one)}`).join(" + ");
      slot.put(`work-${r}`, make("span", { class: "work" }, work));
      slot.put(`score-${r}`, out(`scores-0-${r}`, steps.scores[0][r]));
      slot.put(`power-${r}`, out(`powers-${r}`, powers[r], sayPower(steps.scores[0][r])));
      slot.put(`weight-${r}`, ...weightCell(`weights-0-${r}`, steps.weights[0][r]));
      slot.put(`part-${r}`, outVector(`weighted-0-${r}`, steps.weighted[0][r]));
    });
    slot.put("powers", out("powers-sum", sumOf(powers), sayPower(logOfSum)));
    slot.put("total", out("total", sumOf(steps.weights[0])));
    slot.put("mix", outVector("output-0", steps.output[0]));
    const best = strongest(steps.weights[0]);
    conclude(`The query looks most at key ${best + 1}: ${sayWeight(steps.weights[0][best])} of its attention. The mix is ${sayVector(steps.output[0])}.`);
  };
};

FIGURES.batch = ({ fields, body, data, conclude }) => {
  const queries = fields.matrix("queries", data.queries, (r, c) => `query of row ${r + 1}, number ${c + 1}`);
  const keys = data.keys.map((one, b) => fields.matrix(`keys-${b}`, one, (r, c) => `row ${b + 1}, key ${r + 1}, number ${c + 1}`));
  const slot = slots();
  const cards = keys.map((one, b) => {
    const lines = data.keys[b].map((_, r) => ({ cells: [`key ${r + 1}`, one.row(r), slot(`weight-${b}-${r}`)] }));
    const table = tableOf(["", "key", "softmax"], lines, { caption: `Row ${b + 1} of the batch`, kind: "small" });
    return make("div", { class: "panel" }, make("h4", {}, `row ${b + 1}`), row(make("b", {}, "query"), queries.row(b)), table, row(make("b", {}, "mix"), slot(`mix-${b}`)));
  });
  const sizes = [data.keys.length, data.keys[0].length, data.queries[0].length];
  body.append(make("div", { class: "panels" }, ...cards), note("keys ", shape(...sizes), " and queries ", shape(sizes[0], sizes[2]), " give mixes ", shape(sizes[0], sizes[2]), ". No row looks into another row."));
  return () => {
    const mixes = keys.map((one, b) => {
      const { weights, output } = attentionSteps([queries.values[b]], one.values, one.values, { scale: 1 });
      weights[0].forEach((weight, r) => slot.put(`weight-${b}-${r}`, ...weightCell(`weights-${b}-${r}`, weight)));
      slot.put(`mix-${b}`, outVector(`output-${b}`, output[0]));
      return output[0];
    });
    conclude(`The ${mixes.length} mixes: ${mixes.map((mix) => sayVector(mix)).join(", ")}.`);
  };
};

const ORDERS = { "1 2 3": [0, 1, 2], "2 1 3": [1, 0, 2], "3 2 1": [2, 1, 0], "3 1 2": [2, 0, 1] };

FIGURES.positions = ({ fields, body, data, conclude }) => {
  const content = fields.matrix("c", data.embedding, (r, c) => `${data.words[r]}, number ${c + 1}`);
  const order = fields.choice("order", "order of the words", Object.keys(ORDERS));
  const positions = fields.flag("p", "add positions p", false);
  const slot = slots();
  const headings = ["word", "its vector c", "position p", "x = c + p", "what comes out", "before the shuffle", ""];
  const rows = data.words.map((word, r) => ({ cells: [word, content.row(r), slot(`p-${r}`), slot(`x-${r}`), slot(`out-${r}`), slot(`before-${r}`), slot(`same-${r}`)] }));
  body.append(row(order.element, positions.element), make("p", { class: "sentence" }, slot("sentence")), tableOf(headings, rows, { caption: "Words, positions and what attention gives them", kind: "steps" }));
  const outputs = (places, c) => {
    // places[i]: the word that stands at position i
    const x = places.map((word, position) => (positions.value ? added(c[word], sinusoid(position, c[word].length)) : c[word]));
    const { output } = attentionSteps(x, x, x);
    const byWord = [];
    places.forEach((word, position) => (byWord[word] = { p: positions.value ? sinusoid(position, c[word].length) : c[word].map(() => 0), x: x[position], output: output[position] }));
    return byWord;
  };
  return () => {
    const c = content.values;
    const before = outputs([0, 1, 2], c);
    const places = ORDERS[order.value];
    const now = outputs(places, c);
    slot.put("sentence", places.map((word) => data.words[word]).join(" "));
    let moved = 0;
    data.words.forEach((_, r) => {
      const difference = Math.max(...now[r].output.map((one, i) => Math.abs(one - before[r].output[i])));
      moved = Math.max(moved, difference);
      slot.put(`p-${r}`, outVector(`p-${r}`, now[r].p));
      slot.put(`x-${r}`, outVector(`x-${r}`, now[r].x));
      slot.put(`out-${r}`, outVector(`output-${r}`, now[r].output));
      slot.put(`before-${r}`, outVector(`before-${r}`, before[r].output));
      slot.put(`same-${r}`, make("span", { class: difference < 1e-9 ? "good" : "changed" }, difference < 1e-9 ? "the same" : "changed"));
    });
    conclude(order.value === "1 2 3" ? "Now shuffle the words." : moved < 1e-9 ? "The words were shuffled, and no word notices: each gets the same numbers as before." : "The words were shuffled, and the words notice: the numbers changed.");
  };
};

FIGURES.matrices = ({ fields, body, data, conclude }) => {
  const content = fields.matrix("c", data.embedding, (r, c) => `${data.words[r]}, number ${c + 1}`);
  const f = fields.choice("f", "f", Object.keys(FUNCTIONS));
  const names = ["query", "key", "value"];
  const matrices = Object.fromEntries(names.map((name) => [name, fields.matrix(name, data[name], (r, c) => `W of the ${name}, row ${r + 1}, column ${c + 1}`)]));
  const shown = fields.choice("show", "matrix", names);
  const slot = slots();
  const picked = fields.pointed("number", "0-0", (given) => /^[0-2]-[0-3]$/.test(given));
  const holders = Object.fromEntries(names.map((name) => [name, make("div", {}, matrixOf(`W-${name}`, matrices[name].boxes, { title: [`W of the ${name} `, shape(4, 4)] }))]));
  body.append(row(shown.element, f.element), row(matrixOf("c", content.boxes, { rows: data.words, title: ["c: one row for each word"] }), between("+"), slot("p"), between("="), slot("x")), row(slot("x2"), between("·"), ...names.map((name) => holders[name]), between("="), slot("result")), slot("work"));
  return () => {
    const c = content.values;
    const p = c.map((one, position) => sinusoid(position, one.length));
    const x = c.map((one, position) => added(one, p[position]));
    slot.put("p", matrixOf("p", p, { title: ["p: the position"] }));
    slot.put("x", matrixOf("x", x, { title: ["x = c + p"] }));
    const results = Object.fromEntries(names.map((name) => [name, product(x, matrices[name].values).map((line) => line.map(FUNCTIONS[f.value]))]));
    const name = shown.value;
    for (const one of names) holders[one].hidden = one !== name;
    const [r, column] = picked.value.split("-").map(Number);
    slot.put("x2", matrixOf("again", x, { title: ["x"], mark: (line) => line === r }));
    const letter = name[0];
    const pick = (line, place) => picked.set(`${line}-${place}`);
    slot.put("result", matrixOf(letter, results[name], { rows: data.words, title: [`${letter} = f(x·W)  (click a number)`], mark: (line, place) => line === r && place === column, onpick: pick }));
    const hidden = names.filter((one) => one !== name).map((one) => make("div", { hidden: true }, matrixOf(one[0], results[one], {})));
    const work = x[r].map((one, i) => `${say(one)}·${say(matrices[name].values[i][column])}`).join(" + ");
    slot.put("work", note(`${letter} of “${data.words[r]}”, number ${column + 1} = f(${work}) = `, make("b", {}, say(results[name][r][column]))), ...hidden);
    conclude(`Each word now has a query, a key and a value. The ${name} of “${data.words[0]}” is ${sayVector(results[name][0])}.`);
  };
};

FIGURES["step-table"] = ({ fields, body, data, conclude }) => {
  const names = data.words.map((word, r) => fields.text(`word-${r}`, `word ${r + 1}`, word, 9, 16));
  const content = fields.matrix("c", data.embedding, (r, c) => `word ${r + 1}, number ${c + 1}`);
  const asked = fields.choice("query", "where does this word look?", ["word 1", "word 2", "word 3", "all"]);
  const slot = slots();
  body.append(make("div", { class: "panels" }, ...names.map((name, r) => make("div", { class: "panel" }, name.element, content.row(r)))), row(asked.element), slot("tables"));
  const table = (r, words, q, k, v, steps) => {
    const rows = words.map((word, c) => ({
      kind: c === strongest(steps.weights[r]) ? "best" : false,
      cells: [word, c === r ? outVector(`q-${r}`, q[r]) : "", outVector(`k-${r}-${c}`, k[c]), outVector(`v-${r}-${c}`, v[c]), out(`scores-${r}-${c}`, steps.scores[r][c]), out(`scaled-${r}-${c}`, steps.scaled[r][c]), weightCell(`weights-${r}-${c}`, steps.weights[r][c]), outVector(`weighted-${r}-${c}`, steps.weighted[r][c])],
    }));
    const headings = ["Word", "q", "k", "v", "score", "score/√4", "softmax", "softmax · v"];
    return make("div", {}, make("h4", {}, `where “${words[r]}” looks`), tableOf(headings, rows, { caption: `The step table of ${words[r]}`, kind: "steps", foot: { cells: ["sum", "", "", "", "", "", out(`total-${r}`, sumOf(steps.weights[r])), outVector(`output-${r}`, steps.output[r])] } }));
  };
  return () => {
    const words = names.map((name, r) => name.value || `word ${r + 1}`);
    const x = content.values.map((one, position) => added(one, sinusoid(position, one.length)));
    const [q, k, v] = ["query", "key", "value"].map((name) => product(x, data[name]));
    const steps = attentionSteps(q, k, v);
    const place = ["word 1", "word 2", "word 3"].indexOf(asked.value);
    slot.put("tables", ...range(3).map((r) => {
      const one = table(r, words, q, k, v, steps);
      one.hidden = place >= 0 && r !== place;
      return one;
    }));
    const r = Math.max(0, place);
    const best = strongest(steps.weights[r]);
    conclude(`“${words[r]}” looks most at “${words[best]}”: ${sayWeight(steps.weights[r][best])}. Its new vector is ${sayVector(steps.output[r])}.`);
  };
};

FIGURES.mask = ({ fields, body, data, conclude }) => {
  const content = fields.matrix("x", data.x, (r, c) => `${data.words[r]}, number ${c + 1}`);
  const masked = fields.flag("mask", "no looking ahead", true);
  const step = fields.slider("step", "words read so far", { min: 1, max: data.words.length, value: data.words.length, text: (one) => (one === data.words.length ? "all, in parallel" : `step ${one}`) });
  const slot = slots();
  body.append(row(masked.element, step.element), row(matrixOf("x", content.boxes, { rows: data.words, title: ["x = q = k = v"] })), row(slot("scaled"), between("+"), slot("mask"), between("→"), slot("weights")), slot("outputs"));
  return () => {
    const x = content.values;
    const visible = (r, c) => !masked.value || c <= r;
    const all = attentionSteps(x, x, x, { visible });
    const some = x.slice(0, step.value);
    const now = attentionSteps(some, some, some, { visible });
    const words = data.words.slice(0, step.value);
    slot.put("scaled", matrixOf("scaled", now.scaled, { rows: words, columns: words, title: ["scores/√2"] }));
    slot.put("mask", matrixOf("mask", now.scaled.map((line, r) => line.map((_, c) => (visible(r, c) ? 0 : -Infinity))), { title: ["mask"] }));
    slot.put("weights", matrixOf("weights", now.weights, { rows: words, columns: words, title: ["softmax of each row"], tint: (r, c) => now.weights[r][c], decimals: 3 }));
    const difference = Math.max(...now.output.flatMap((line, r) => line.map((one, i) => Math.abs(one - all.output[r][i]))));
    const rows = words.map((word, r) => ({ cells: [word, outVector(`output-${r}`, now.output[r]), outVector(`all-${r}`, all.output[r])] }));
    slot.put("outputs", tableOf(["word", `output after ${step.value} word${step.value > 1 ? "s" : ""}`, "output with all words at once"], rows, { caption: "Outputs", kind: "small" }));
    conclude(difference < 1e-12 ? `After ${step.value} of ${x.length} words each row has the very same numbers as with all words at once. So all rows can be computed in parallel.` : `The rows differ by up to ${say(difference, 3)}: without the mask, early words have looked at later ones.`);
  };
};

FIGURES["many-heads"] = ({ fields, body, data, conclude }) => {
  const size = (name, label, max, value) => fields.slider(name, label, { min: 1, max, value });
  const d = 4;
  const x = fields.matrix("x", data.x, (r, c) => `${data.words[r]}, number ${c + 1}`);
  const heads = size("T", "heads T", 8, 8);
  const m = size("m", "key width m", 4, 3);
  const l = size("l", "value width l", 4, 2);
  const shown = fields.slider("head", "look into head", { min: 0, max: 7, value: 0 });
  const counts = {
    d: fields.slider("big-d", "d", { stops: [4, 64, 128, 256, 512, 768, 1024, 4096], value: 512, text: many }),
    T: fields.slider("big-T", "T", { stops: [1, 2, 4, 8, 12, 16, 32], value: 8 }),
    m: fields.slider("big-m", "m", { stops: [2, 16, 32, 64, 96, 128], value: 64 }),
    l: fields.slider("big-l", "l", { stops: [2, 16, 32, 64, 96, 128], value: 64 }),
  };
  const slot = slots();
  body.append(row(matrixOf("x", x.boxes, { rows: data.words, title: ["x"] }), make("div", { class: "sliders" }, heads.element, m.element, l.element, shown.element)), slot("heads"), make("h4", {}, "How many numbers are learned"), make("div", { class: "sliders" }, ...Object.values(counts).map((one) => one.element)), slot("count"));
  return () => {
    const states = x.values;
    const [T, keyWidth, valueWidth] = [heads.value, m.value, l.value];
    const steps = range(T).map((t) => {
      const [q, k, v] = [keyWidth, keyWidth, valueWidth].map((width, part) => product(states, madeMatrix(d, width, 10 * t + part)));
      return attentionSteps(q, k, v);
    });
    const joined = states.map((_, r) => steps.flatMap((one) => one.output[r]));
    const wide = T * valueWidth;
    const matrix = madeMatrix(wide, d, 99);
    const final = product(joined, matrix);
    const t = Math.min(shown.value, T - 1);
    const heading = range(T).flatMap((one) => range(valueWidth).map((_, i) => (i === 0 ? numbered("Z", one) : "")));
    slot.put("heads", row(matrixOf("Z", joined, { rows: data.words, columns: heading, title: [`Z₀ … ${numbered("Z", T - 1)} side by side `, shape(3, wide)], mark: (_, c) => Math.floor(c / valueWidth) === t })), row(between("·"), matrixOf("WO", matrix, { title: ["W_O ", shape(wide, d)] }), between("="), make("div", { class: "column" }, matrixOf("final", final, { rows: data.words, title: ["Z_f ", shape(3, d)] }), matrixOf("weights", steps[t].weights, { rows: data.words, columns: data.words, title: [`where each word looks in head ${t}`], tint: (r, c) => steps[t].weights[r][c], decimals: 3 }))));
    const [bigD, bigT, bigM, bigL] = ["d", "T", "m", "l"].map((name) => counts[name].value);
    const inputs = bigD * (2 * bigM + bigL) * bigT;
    const outputs = bigT * bigL * bigD;
    slot.put("count", make("p", { class: "formula" }, `d·(2m + l)·T + T·l·d = ${many(bigD)}·(2·${bigM} + ${bigL})·${bigT} + ${bigT}·${bigL}·${many(bigD)} = `, out("count", inputs + outputs, many(inputs + outputs))), note(`${many(inputs)} in W_q, W_k and W_v of all heads, ${many(outputs)} in W_O.`));
    conclude(`${T} heads of ${valueWidth} numbers side by side are ${wide} numbers a word; W_O makes ${d} of them again.`);
  };
};
