// Figures of chapters 8 to 12: dates, blocks, sampling, the cache, recurrence.

FIGURES.dates = ({ fields, body, data, conclude, numbers, ready }) => {
  const text = fields.text("text", "a date", data.dates[0], 26);
  const head = fields.choice("head", "head", ["mean of both", "C0H0", "C0H1"], "C0H1");
  const slot = slots();
  const examples = data.dates.map((date) => make("button", { type: "button", class: "pick", onclick: () => fields.byName.get("text").set(date) }, date));
  body.append(row(make("label", { class: "field" }, "Read this: ", text.element)), row(...examples, head.element), slot("written"), slot("map"), slot("steps"));
  let model = null;
  unpacked(numbers.numbers).then((flat) => {
    model = new Transformer(numbers, flat);
    fields.changed();
    ready();
  });
  return () => {
    if (!model) return;
    const read = text.value.slice(0, 40);
    if (!read) {
      for (const name of ["written", "map", "steps"]) slot.put(name);
      conclude("Type a date.");
      return;
    }
    const { text: written, steps, crossing } = model.write(read);
    const [first, second] = crossing[crossing.length - 1];
    const weights = { C0H0: first, C0H1: second }[head.value] ?? first.map((line, r) => line.map((one, c) => (one + second[r][c]) / 2));
    slot.put("written", make("p", { class: "written" }, make("span", { class: "quiet" }, "it writes "), make("b", {}, written)));
    const rows = steps.map((one) => (one.piece === "<eos>" ? "end" : one.piece));
    slot.put("map", make("div", { class: "alignment" }, matrixOf("cross", weights.map((line) => [...line]), { rows, columns: [...read].map((one) => (one === " " ? "␣" : one)), title: ["where the decoder looks in what was read: written down the side, read across the top"], tint: (r, c) => weights[r][c], decimals: 2 })));
    slot.put("steps", note("Sure of each letter: ", ...steps.map((one, i) => [rows[i], " ", out(`share-${i}`, one.share, say(one.share, 3)), i < steps.length - 1 ? " · " : ""]).flat()));
    const unknown = [...read].filter((one) => !model.ids.has(one));
    const place = Math.min(6, steps.length - 1);
    const looked = [...read][strongest(weights[place])];
    conclude(unknown.length ? `The model has never seen “${unknown[0]}”.` : `${numbers.parameters.toLocaleString("en")} parameters, run by this page. To write “${rows[place]}” in row ${place + 1} it looks most at “${looked}”.`);
  };
};

const PARTS = {
  attention: { name: "self-attention", count: ({ d }) => 4 * d * d, shape: ({ d, heads }) => `W_q, W_k, W_v: ${d} × ${d} each (${heads} heads of ${d / heads}), W_O: ${d} × ${d}` },
  crossing: { name: "cross-attention", count: ({ d }) => 4 * d * d, shape: ({ d, heads }) => `W_q (from the decoder), W_k, W_v (from the encoder): ${d} × ${d} each (${heads} heads), W_O: ${d} × ${d}` },
  forward: { name: "feed-forward", count: ({ d, hidden }) => 2 * d * hidden + hidden + d, shape: ({ d, hidden }) => `W₁: ${d} × ${hidden} and ${hidden} biases, W₂: ${hidden} × ${d} and ${d} biases` },
  norm: { name: "normalisation", count: ({ d }) => 2 * d, shape: ({ d }) => `${d} scales and ${d} shifts` },
};
const ENCODER = ["attention", "norm", "forward", "norm"];
const DECODER = ["attention", "norm", "crossing", "norm", "forward", "norm"];

FIGURES.blocks = ({ fields, body, data, conclude }) => {
  const x = fields.matrix("x", [data.x], (_, c) => `x, number ${c + 1}`);
  const layer = fields.matrix("layer", [data.layer], (_, c) => `what the layer adds, number ${c + 1}`);
  const kind = fields.choice("model", "model", ["base", "big", "your own"]);
  const sizes = {
    d: fields.slider("d", "width d", { stops: [64, 128, 256, 512, 768, 1024], value: 512, text: many }),
    hidden: fields.slider("hidden", "feed-forward width", { stops: [256, 512, 1024, 2048, 3072, 4096], value: 2048, text: many }),
    heads: fields.slider("heads", "heads", { stops: [1, 2, 4, 8, 16], value: 8 }),
    layers: fields.slider("layers", "layers N", { min: 1, max: 12, value: 6 }),
    vocab: fields.slider("vocab", "vocabulary", { stops: [1000, 8000, 16000, 37000, 50000], value: 37000, text: many }),
  };
  const slot = slots();
  const table = tableOf(["", ""], [{ cells: ["x", x.row(0)] }, { cells: ["the layer adds", layer.row(0)] }, { cells: ["residual: x + layer", slot("sum")] }, { cells: ["mean", slot("mean")] }, { cells: ["variance", slot("variance")] }, { cells: ["normalised", slot("norm")] }], { caption: "Residual and normalisation", kind: "facts" });
  body.append(make("h4", {}, "Around every layer: add, then normalise"), table, make("h4", {}, "The whole Transformer, to scale"), kind.element, make("div", { class: "sliders" }, ...Object.values(sizes).map((one) => one.element)), slot("drawing"), slot("part"));
  const chosen = fields.pointed("part", "decoder forward", (given) => given === "both embedding" || /^(encoder|decoder) (attention|forward|norm)$|^decoder crossing$/.test(given));
  return () => {
    const sum = added(x.values[0], layer.values[0]);
    const { mean, variance, result } = layerNorm(sum);
    slot.put("sum", outVector("sum", sum));
    slot.put("mean", out("mean", mean));
    slot.put("variance", out("variance", variance));
    slot.put("norm", outVector("norm", result));
    const own = kind.value === "your own";
    for (const one of Object.values(sizes)) one.element.hidden = !own;
    const preset = kind.value === "big" ? { d: 1024, hidden: 4096, heads: 16, layers: 6, vocab: 37000 } : { d: 512, hidden: 2048, heads: 8, layers: 6, vocab: 37000 };
    const size = own ? Object.fromEntries(Object.entries(sizes).map(([name, one]) => [name, one.value])) : preset;
    const count = (parts) => sumOf(parts.map((part) => PARTS[part].count(size)));
    const embedding = size.vocab * size.d;
    const total = embedding + size.layers * (count(ENCODER) + count(DECODER));
    const [place, name] = chosen.value.split(" ");
    slot.put("drawing", toScale(size, embedding, chosen));
    const part = PARTS[name];
    const detail = part ? `${part.name} of one ${place} layer: ${many(part.count(size))} parameters. ${part.shape(size)}.` : `embedding, shared with the output: ${many(size.vocab)} × ${size.d} = ${many(embedding)} parameters.`;
    slot.put("part", note(detail), make("p", { class: "formula" }, "all together ", out("total", total, many(total)), " parameters"));
    conclude(`${size.layers} encoder and ${size.layers} decoder layers: ${many(total)} parameters, ${Math.round((100 * embedding) / total)} % of them in the embedding.`);
  };
};

// Two stacks whose heights are parameter counts, and the embedding below; each part a button.
function toScale(size, embedding, chosen) {
  const stacks = { encoder: ENCODER, decoder: DECODER };
  const count = (part) => PARTS[part].count(size);
  const tall = size.layers * sumOf(DECODER.map(count));
  const height = 540;
  const unit = height / (tall + embedding / 2);
  const box = (place, part, pixels, title, shown) => {
    const on = chosen.value === `${place} ${part}`;
    const choose = () => chosen.set(`${place} ${part}`);
    return make("button", { type: "button", class: `brick ${part}`, "aria-pressed": String(on), title, "aria-label": title, style: `height:${Math.max(1, pixels).toFixed(1)}px`, "data-key": title, onclick: choose }, pixels > 10 ? shown : "");
  };
  const stack = (place) =>
    make(
      "div",
      { class: "stack", role: "group", "aria-label": place },
      make("p", { class: "quiet" }, `${place}: ${many(size.layers * sumOf(stacks[place].map(count)))}`),
      ...range(size.layers).map((layer) => make("div", { class: "brick-layer" }, ...[...stacks[place]].reverse().map((part) => box(place, part, unit * count(part), `${place} layer ${size.layers - layer}, ${PARTS[part].name}: ${many(count(part))} parameters`, PARTS[part].name)))),
    );
  return make("div", { class: "to-scale" }, make("div", { class: "stacks" }, stack("encoder"), stack("decoder")), box("both", "embedding", (unit * embedding) / 2, `embedding: ${many(embedding)} parameters`, "embedding"));
}

const SHOWN_TOKENS = 10;
FIGURES.sampling = ({ fields, body, conclude, numbers, ready }) => {
  const logits = fields.matrix("logit", numbers.first.map((one) => [one]), (r) => `logit of ${numbers.tokens[r]}`);
  const temperature = fields.slider("temperature", "temperature", { min: 0.1, max: 3, step: 0.1, value: 1, text: (one) => one.toFixed(1) });
  const topK = fields.slider("k", "top-k", { stops: [1, 2, 3, 5, 10, 50, 200, 0], value: 0, text: (one) => (one ? String(one) : "off") });
  const topP = fields.slider("p", "top-p", { min: 0.05, max: 1, step: 0.05, value: 1, text: (one) => (one === 1 ? "off" : one.toFixed(2)) });
  const seed = fields.slider("seed", "draw", { min: 1, max: 99, value: 1, text: (one) => `no. ${one}` });
  const again = make("button", { type: "button", class: "pick", onclick: () => fields.byName.get("seed").set(String((seed.value % 99) + 1)) }, "draw again");
  const slot = slots();
  const rows = range(SHOWN_TOKENS).map((r) => ({ cells: [make("span", { class: "token" }, numbers.tokens[r]), logits.row(r), slot(`share-${r}`)] }));
  rows.push({ cells: ["all others", make("span", { class: "quiet" }, `${many(numbers.vocab - SHOWN_TOKENS)} tokens`), slot("share-rest")] });
  body.append(make("p", { class: "sentence" }, `${numbers.text} …`), make("div", { class: "sliders" }, temperature.element, topK.element, topP.element, seed.element), row(again, slot("drawn")), tableOf(["next token", "logit", "probability"], rows, { caption: "The likeliest next tokens", kind: "small" }));
  let all = null;
  unpacked(numbers.logits).then((found) => {
    all = Float64Array.from(found);
    fields.changed();
    ready();
  });
  return () => {
    if (!all) return;
    const now = all.slice();
    numbers.ids.slice(0, SHOWN_TOKENS).forEach((id, r) => {
      if (fields.byName.get(`logit-${r}-0`).get() !== fields.byName.get(`logit-${r}-0`).initial) now[id] = logits.values[r][0];
    });
    const order = [...now.keys()].sort((a, b) => now[b] - now[a] || a - b);
    const row_ = { logits: order.map((id) => now[id]), places: order, after: -Infinity, rests: new Map([[1, 0]]), whole: true };
    const { shares } = sampledExactly(row_.logits, { temperature: temperature.value, topK: topK.value || null, topP: topP.value });
    const shareOf = new Float64Array(all.length);
    order.forEach((id, place) => (shareOf[id] = shares[place]));
    let shown = 0;
    numbers.ids.slice(0, SHOWN_TOKENS).forEach((id, r) => {
      shown += shareOf[id];
      slot.put(`share-${r}`, ...weightCell(`share-${r}`, shareOf[id]));
    });
    slot.put("share-rest", ...weightCell("share-rest", Math.max(0, 1 - shown)));
    const uniform = madeUniform(seed.value);
    const place = drawn({ places: order }, { shares, rest: 0 }, uniform);
    const name = numbers.ids.indexOf(order[place]);
    const word = name >= 0 ? numbers.tokens[name] : `the token of rank ${place + 1}`;
    slot.put("drawn", make("span", { "data-name": "drawn", "data-value": String(order[place]) }, "drawn: ", make("b", { class: "token" }, word)));
    const kept = shares.filter((one) => one > 0).length;
    conclude(`${many(kept)} of ${many(all.length)} tokens can be drawn. The likeliest has ${say(Math.max(...shares), 3)}.`);
  };
};
// A number from 0 to 1 for each draw, the same in every browser.
const madeUniform = (seed) => ((seed * 48271 * 16807) % 2147483647) / 2147483647;
// Temperature, top-k, top-p over all logits, the largest first, in float64.
function sampledExactly(logits, { temperature, topK, topP }) {
  let shares = softmax64(logits.map((one) => one / temperature));
  if (topK) shares = shares.map((one, i) => (i < topK ? one : 0));
  const total = sumOf(shares);
  shares = shares.map((one) => one / total);
  if (topP < 1) {
    let before = 0;
    shares = shares.map((one) => {
      const kept = before < topP ? one : 0;
      before += one;
      return kept;
    });
    const left = sumOf(shares);
    shares = shares.map((one) => one / left);
  }
  return { shares };
}
function softmax64(numbers) {
  const powers = numbers.map((one) => Math.exp(one - numbers[0]));
  const total = sumOf(powers);
  return powers.map((one) => one / total);
}

// What step t of generation computes and reads, in one layer; d: width of the states.
function cacheCosts(tokens, d, cached) {
  const rows = cached ? 1 : tokens; // whose q, k, v are computed
  return { projected: rows, multiplications: 4 * rows * d * d + 2 * (cached ? tokens : tokens * tokens) * d, read: cached ? 2 * (tokens - 1) * d : 0 };
}
FIGURES.cache = ({ fields, body, data, conclude }) => {
  const prompt = fields.slider("prompt", "words of the prompt", { min: 1, max: 6, value: 3 });
  const written = fields.slider("written", "words written after it", { min: 1, max: 8, value: 5 });
  const step = fields.slider("step", "step", { min: 1, max: 8, value: 3 });
  const d = fields.slider("d", "width d", { stops: [4, 64, 256, 576, 1024, 4096], value: 576, text: many });
  const slot = slots();
  body.append(make("div", { class: "sliders" }, prompt.element, written.element, step.element, d.element), slot("words"), slot("maps"), slot("totals"));
  return () => {
    const now = Math.min(step.value, written.value);
    const length = prompt.value + now - 1; // tokens that have been read when this one is computed
    const words = data.words.slice(0, prompt.value + written.value);
    slot.put("words", make("p", { class: "sentence" }, ...words.map((word, i) => make("span", { class: i < length ? "past" : i === length ? "now" : "future" }, `${word} `))));
    const cell = (r, c, cached) => {
      if (c > r) return "masked";
      if (!cached) return "new";
      return r === length - 1 ? (c === length - 1 ? "new" : "read") : "kept";
    };
    const map = (cached, title) => make("div", { class: "matrix" }, make("p", { class: "matrix-title" }, title), make("div", { class: "cells", role: "img", "aria-label": title, style: `grid-template-columns:repeat(${length}, 1fr);width:${length * 20}px` }, ...range(length).flatMap((r) => range(length).map((c) => make("span", { class: cell(r, c, cached) })))));
    slot.put("maps", row(map(false, "without: every score again"), map(true, "with the cache: one row")), make("p", { class: "legend quiet" }, make("span", { class: "key new" }), "computed now ", make("span", { class: "key read" }), "computed now from a key that the cache holds ", make("span", { class: "key kept" }), "not needed again"));
    const sums = [false, true].map((cached) => {
      const steps = range(written.value).map((i) => (cached && i === 0 ? cacheCosts(prompt.value, d.value, false) : cacheCosts(prompt.value + i, d.value, cached)));
      return { now: steps[now - 1], all: { projected: sumOf(steps.map((one) => one.projected)), multiplications: sumOf(steps.map((one) => one.multiplications)), read: sumOf(steps.map((one) => one.read)) } };
    });
    const line = (name, kind, what) => ({ cells: [name, ...sums.map((one, i) => out(`${kind}-${what}-${i}`, one[kind][what], many(one[kind][what])))] });
    const rows = [line("this step: words through W_q, W_k, W_v", "now", "projected"), line("this step: multiplications", "now", "multiplications"), line("this step: numbers read from the cache", "now", "read"), line("all steps: words through W_q, W_k, W_v", "all", "projected"), line("all steps: multiplications", "all", "multiplications"), line("all steps: numbers read from the cache", "all", "read")];
    slot.put("totals", tableOf(["one layer", "without", "with the cache"], rows, { caption: "What is computed and read", kind: "small" }));
    const times = sums[0].all.multiplications / sums[1].all.multiplications;
    conclude(`To write ${written.value} word${written.value > 1 ? "s" : ""} after ${prompt.value}, ${say(times, 1)} times as many multiplications are needed without the cache as with it. The cache must remember ${many(2 * length * d.value)} numbers a layer at this step.`);
  };
};

FIGURES.recurrence = ({ fields, body, data, conclude, numbers }) => {
  const x = fields.matrix("x", [data.x], (_, c) => `input ${c + 1}`);
  const w = fields.number("w", data.w, "weight of the input");
  const u = fields.number("u", data.u, "weight of the state before");
  const slot = slots();
  const heading = range(data.x.length).map((i) => `step ${i + 1}`);
  const table = tableOf(["", ...heading], [{ cells: ["input x", ...x.boxes[0]] }, { cells: ["state h", ...heading.map((_, i) => slot(`h-${i}`))] }, { cells: ["how much x₁ still moves h", ...heading.map((_, i) => slot(`g-${i}`))] }], { caption: "A recurrent network step by step", kind: "steps" });
  body.append(row(make("span", {}, "h = tanh("), w.element, make("span", {}, "· x + "), u.element, make("span", {}, "· h before)")), table, make("h4", {}, "Measured here"), slot("measured"));
  const time = (s) => (s < 1e-3 ? `${(s * 1e6).toFixed(0)} µs` : s < 1 ? `${(s * 1e3).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(2)} s`);
  const better = (pair) => (pair.attention < pair.recurrence ? ["good", ""] : ["", "good"]);
  const measured = numbers.rows.map((one) => {
    const [a, b] = better(one.training);
    const [c, e] = better(one.generation);
    return { cells: [many(one.tokens), make("span", { class: a }, time(one.training.attention)), make("span", { class: b }, time(one.training.recurrence)), make("span", { class: c }, time(one.generation.attention)), make("span", { class: e }, time(one.generation.recurrence)), `${many(one.kept.attention)} : ${many(one.kept.recurrence)}`] };
  });
  const percent_ = (shares) => shares.map((one) => `${Math.round(100 * one)} %`).join(", ");
  slot.put("measured", tableOf(["tokens", "training: attention", "training: recurrence", "next token: attention", "next token: recurrence", "numbers kept"], measured, { caption: "Measured times", kind: "many" }), tableOf(["remember the first symbol over", "attention", "recurrence"], numbers.recall.map((one) => ({ cells: [`${one.tokens} tokens`, percent_(one.attention), percent_(one.recurrence)] })), { caption: "Recall", kind: "small" }), note(`One layer of width ${numbers.width}; benchmarks/recurrence.py on ${numbers.machine}. Green is the quicker one. Recall: three runs each, 16 symbols, so guessing gives 6 %.`));
  return () => {
    const values = x.values[0];
    let [h, gradient] = [0, 1];
    values.forEach((one, i) => {
      h = Math.tanh(w.value * one + u.value * h);
      gradient = i === 0 ? w.value * (1 - h * h) : gradient * u.value * (1 - h * h);
      slot.put(`h-${i}`, out(`h-${i}`, h, say(h, 3)));
      slot.put(`g-${i}`, out(`g-${i}`, gradient, Math.abs(gradient) < 0.001 && gradient !== 0 ? scientific(gradient, 0) : say(gradient, 3)));
    });
    conclude(`Step ${values.length} has to wait for ${values.length - 1} steps before it. Of the first input ${say(gradient, 4)} is left.`);
  };
};
