// Figures of chapters 13 to 15 and of the closing one: a real model, SmolLM2.

const ROLE_WORDS = {
  "every VERB": "verbs", "every NOUN": "nouns", "every PRON": "pronouns", "every SCONJ": "particular words: because, that, if …",
  names: "names (entities)", dates: "dates", numbers: "numbers", induction: "what followed the last time", "same token": "the same word before", "previous token": "the word before",
};

const COUNT = { min: 1, max: 100_000, whole: true };

FIGURES.evidence = ({ fields, body, conclude, numbers }) => {
  const names = numbers.roles.map((one) => ROLE_WORDS[one.property] ?? one.property);
  const role = fields.choice("role", "heads that look at", names);
  const slot = slots();
  const [first] = numbers.roles;
  const hits = fields.number("hits", first.hits, "hits", { ...COUNT, min: 0 });
  const cases = fields.number("cases", first.cases, "cases", COUNT);
  const baseline = fields.number("baseline", first.baseline, "baseline", { min: 0, max: 1 });
  body.append(role.element, slot("grid"), slot("examples"), make("h4", {}, "Is it more than chance?"), row(make("label", { class: "field" }, "hits ", hits.element), make("label", { class: "field" }, "of cases ", cases.element), make("label", { class: "field" }, "baseline ", baseline.element)), slot("statistics"));
  let shown = role.value;
  return () => {
    const one = numbers.roles[names.indexOf(role.value)];
    if (shown !== role.value) {
      shown = role.value;
      for (const name of ["hits", "cases", "baseline"]) fields.byName.get(name).set(String(one[name]));
      return;
    }
    const on = new Set(one.heads);
    const cells = range(numbers.layers).flatMap((layer) => range(numbers.heads).map((head) => {
      const name = `L${layer}H${head}`;
      return make("span", { class: name === one.head ? "new" : on.has(name) ? "read" : "kept", title: name });
    }));
    slot.put("grid", make("div", { class: "row" }, make("div", { class: "matrix" }, make("p", { class: "matrix-title" }, `${numbers.layers} layers across, ${numbers.heads} heads down`), make("div", { class: "cells heads-map", role: "img", "aria-label": `${one.heads.length} heads: ${one.heads.join(", ")}`, style: `grid-template-rows:repeat(${numbers.heads}, 1fr)` }, ...cells)), note(`${one.heads.length} of ${numbers.layers * numbers.heads} heads: ${one.heads.slice(0, 6).join(", ")}${one.heads.length > 6 ? " …" : ""}. The strongest colour, ${one.head}, is the clearest.`)));
    slot.put("examples", ...one.examples.map((example) => markedSentence(example, one.head)));
    const [h, n, p] = [hits.value, cases.value, baseline.value];
    const bounded = Math.min(h, n);
    const [low, high] = wilson(bounded, n);
    const chance = binomialTail(bounded, n, p);
    slot.put("statistics", tableOf(["", ""], [{ cells: ["hits / cases", [bar(bounded / n), out("share", bounded / n, say(bounded / n, 3))]] }, { cells: ["95 % interval", [out("low", low, say(low, 3)), " to ", out("high", high, say(high, 3))]] }, { cells: ["a simple rule hits (baseline)", [bar(p, "pale"), out("base", p, say(p, 3))]] }, { cells: ["chance of so many hits by the baseline alone", out("chance", chance, chance < 0.001 && chance > 0 ? scientific(chance) : say(chance, 3))] }], { caption: "Statistics", kind: "facts" }));
    conclude(`${one.head} looks at ${role.value} in ${bounded} of ${n} cases (${say(low, 2)} to ${say(high, 2)}); a simple rule would in ${say(p, 2)}. ${low > p ? "That is more than chance." : "That could be chance."}`);
  };
};

function markedSentence(example, head) {
  const parts = [];
  const marks = [{ span: example.query, query: true }, ...example.keys].sort((a, b) => a.span[0] - b.span[0]);
  let at = 0;
  const characters = [...example.text];
  for (const mark of marks) {
    if (mark.span[0] < at) continue;
    parts.push(characters.slice(at, mark.span[0]).join(""));
    const text = characters.slice(...mark.span).join("");
    parts.push(mark.query ? make("b", { class: "asking", title: "this word looks" }, text) : make("mark", { class: `tint-${Math.round(4 * mark.weight)}`, title: `weight ${mark.weight}` }, text, make("small", {}, say(mark.weight, 2))));
    [, at] = mark.span;
  }
  parts.push(characters.slice(at).join(""));
  return make("p", { class: "sentence example" }, make("span", { class: "quiet" }, `${head}: `), ...parts);
}

FIGURES.pronoun = ({ fields, body, conclude, numbers, ready }) => {
  const swap = fields.flag("swap", "swap kids and lions", false);
  const sharp = fields.number("factor", 1, "factor for all scores");
  const [first] = numbers.sentences;
  const bonus = fields.matrix("add", range(first.row + 1).map(() => [0]), (r) => `added to the score of word ${r + 1}`);
  const slot = slots();
  const rows = range(first.row + 1).map((r) => ({ cells: [slot(`word-${r}`), slot(`score-${r}`), bonus.row(r), slot(`weight-${r}`)] }));
  body.append(row(swap.element, make("label", { class: "field" }, "all scores × ", sharp.element)), slot("sentence"), tableOf([`they looks at`, "score/8", "you add", "softmax"], rows, { caption: "From they to every word before it", kind: "small" }), slot("heads"), slot("proof"));
  let vectors = null;
  Promise.all(numbers.sentences.map(async (one) => ({ query: Array.from(await unpacked(one.query)), keys: Array.from(await unpacked(one.keys)) }))).then((found) => {
    vectors = found;
    fields.changed();
    ready();
  });
  return () => {
    if (!vectors) return;
    const place = swap.value ? 1 : 0;
    const one = numbers.sentences[place];
    const { query, keys } = vectors[place];
    const key = range(one.row + 1).map((r) => keys.slice(r * one.width, (r + 1) * one.width));
    const scaled = key.map((k) => dot(query, k) * one.scale);
    const changed = scaled.map((score, r) => score * sharp.value + bonus.values[r][0]);
    const weights = softmax(changed);
    const most = Math.max(...weights.map((weight, r) => (r ? weight : 0)));
    slot.put("sentence", make("p", { class: "sentence" }, ...one.tokens.map((word, i) => (i === one.row ? make("b", { class: "asking" }, `${word} `) : i < one.row ? make("mark", { class: `tint-${Math.round((4 * weights[i]) / Math.max(most, weights[0] * (i === 0)))}` }, `${word} `) : `${word} `))));
    range(one.row + 1).forEach((r) => {
      slot.put(`word-${r}`, one.tokens[r]);
      slot.put(`score-${r}`, out(`scaled-${r}`, scaled[r]));
      slot.put(`weight-${r}`, ...weightCell(`weights-${r}`, weights[r]));
    });
    const maps = numbers.nouns.map((noun) => {
      const table = one.heads[noun];
      return make("div", { class: "matrix" }, make("p", { class: "matrix-title" }, `they → ${noun} in all ${table.length * table[0].length} heads`), make("div", { class: "cells heads-map", role: "img", "aria-label": `weights of they on ${noun}`, style: `grid-template-rows:repeat(${table[0].length}, 1fr)` }, ...table.flatMap((line, layer) => line.map((weight, head) => make("span", { class: `tint-${Math.round(4 * weight)}`, title: `L${layer}H${head}: ${weight}` })))));
    });
    slot.put("heads", row(...maps));
    slot.put("proof", note("Proof of the run: ", one.proof));
    const [a, b] = numbers.nouns.map((noun) => one.tokens.indexOf(noun));
    conclude(`${numbers.head}: they looks at ${numbers.nouns[0]} with ${sayWeight(weights[a])} and at ${numbers.nouns[1]} with ${sayWeight(weights[b])}.`);
  };
};

FIGURES.prediction = ({ fields, body, conclude, numbers }) => {
  const order = fields.choice("by", "sort by", ["part of the answer", "ablation", "weight"]);
  const listed = numbers.heads.slice(0, 24);
  const kept = listed.map((one) => fields.flag(`keep-${one.head}`, "", true));
  kept.forEach((flag, i) => flag.box.setAttribute("aria-label", `keep ${listed[i].head}`));
  const slot = slots();
  body.append(make("p", { class: "sentence" }, `${numbers.text} …`, make("b", {}, numbers.token), ` or ${numbers.instead.trim()}?`), order.element, slot("table"), slot("sum"));
  const signedBar = (value, most) => make("span", { class: `track ${value < 0 ? "against" : ""}`, "aria-hidden": "true" }, make("span", { style: `width:${((100 * Math.abs(value)) / most).toFixed(1)}%` }));
  const flagged = listed.map((_, i) => kept[i].element);
  return () => {
    const value = { "part of the answer": (one) => Math.abs(one.part), ablation: (one) => Math.abs(one.effect), weight: (one) => one.weight }[order.value];
    const places = range(listed.length).sort((a, b) => value(listed[b]) - value(listed[a])).slice(0, 10);
    const most = Math.max(...listed.map((one) => Math.max(Math.abs(one.part), Math.abs(one.effect))));
    const focused = document.activeElement;
    const rows = places.map((i) => {
      const one = listed[i];
      return { kind: kept[i].value ? false : "off", cells: [one.head, flagged[i], [one.source, " ", out(`weight-${one.head}`, one.weight, say(one.weight, 2))], [signedBar(one.part, most), out(`part-${one.head}`, one.part, say(one.part, 2))], [signedBar(one.effect, most), out(`effect-${one.head}`, one.effect, say(one.effect, 2))], out(`probability-${one.head}`, one.probability, `${Math.round(100 * one.probability)} %`)] };
    });
    slot.put("table", tableOf(["head", "keep", "looks most at (weight)", "its part of the sum", "measured: effect of removing it", "Paris without it"], rows, { caption: "Heads", kind: "many" }));
    if (body.contains(focused)) focused.focus();
    const without = listed.filter((_, i) => !kept[i].value);
    const left = numbers.total - sumOf(without.map((one) => one.part));
    slot.put("sum", make("p", { class: "formula" }, `logit of ${numbers.token.trim()} − logit of ${numbers.instead.trim()} = `, out("left", left, say(left, 3))), note(`All parts add up to ${say(numbers.total, 6)}; the model itself says ${say(numbers.measured, 6)}. ${without.length === 1 ? `Without ${without[0].head} the sum says ${say(left, 2)}; the real run without it says ${say(numbers.total - without[0].effect, 2)}.` : ""}`));
    conclude(without.length ? `Without ${without.map((one) => one.head).join(", ")} the sum is ${say(left, 2)} instead of ${say(numbers.total, 2)}.` : `Take away the tick of ${listed[0].head}.`);
  };
};

const tokenSign = (token) => token.trim() || (token.includes("\n") ? "⏎" : "␣");

FIGURES["token-way"] = ({ fields, body, conclude, numbers, ready }) => {
  const count = numbers.layers.length;
  const layer = fields.slider("layer", "layer", { min: 0, max: count - 1, value: 23, text: (one) => `L${one}` });
  const head = fields.slider("head", "head", { min: 0, max: numbers.heads - 1, value: 4, text: (one) => `H${one}` });
  const slot = slots();
  body.append(make("p", { class: "sentence" }, `${numbers.text} …`), make("div", { class: "sliders" }, layer.element, head.element), slot("lens"), slot("way"), note("Proof of the run: ", numbers.proof));
  let parts = null;
  const { heads, kv_heads, key_dim, value_dim, model, hidden, tokens } = numbers;
  const sizes = [heads * key_dim, kv_heads * tokens.length * key_dim, kv_heads * tokens.length * value_dim, model, hidden, model];
  const cut = (flat) => {
    let at = 0;
    return sizes.map((size) => Array.from(flat.subarray(at, (at += size))));
  };
  Promise.all([unpacked(numbers.embedding), ...numbers.layers.map((one) => unpacked(one.numbers))]).then(([embedding, ...layers]) => {
    let state = Array.from(embedding);
    parts = layers.map((flat) => {
      const [q, k, v, attention, inner, forward] = cut(flat);
      const middle = added(state, attention);
      const found = { state, q, k, v, attention, middle, inner, forward };
      state = added(middle, forward);
      return found;
    });
    parts.final = state;
    fields.changed();
    ready();
  });
  return () => {
    if (!parts) return;
    const [l, h] = [layer.value, head.value];
    const one = parts[l];
    const group = Math.floor(h / numbers.group);
    const rows = (flat, width) => range(tokens.length).map((t) => flat.slice((group * tokens.length + t) * width, (group * tokens.length + t + 1) * width));
    const q = one.q.slice(h * key_dim, (h + 1) * key_dim);
    const steps = attentionSteps([q], rows(one.k, key_dim), rows(one.v, value_dim), { scale: numbers.scale });
    const after = l + 1 < count ? parts[l + 1].state : parts.final;
    const length = (x) => Math.sqrt(dot(x, x));
    const card = (title, ...content) => make("div", { class: "stage" }, make("h4", {}, ...typeset(title)), ...content);
    const best = (list) => list.slice(0, 5).map(([token, share]) => `${tokenSign(token)} ${Math.round(100 * share)} %`).join(" · ");
    slot.put("lens", make("div", { class: "lens", role: "group", "aria-label": "what the model would say after each layer" }, ...numbers.layers.map((each, i) => make("button", { type: "button", class: `tint-${Math.round(4 * each.top[0][1])}`, "aria-pressed": String(i === l), title: `after layer ${i}: ${best(each.top)}`, "data-key": `layer ${i}`, onclick: () => fields.byName.get("layer").set(String(i)) }, make("small", {}, `L${i}`), tokenSign(each.top[0][0])))));
    slot.put(
      "way",
      card(`1. The state of “${tokens.at(-1)}” comes in: ${model} numbers${l === 0 ? " (the embedding)" : ""}`, strip(one.state, { label: "state", height: 22 }), note("length ", out("state", length(one.state)))),
      card(`2. W_q, W_k, W_v make q, k, v of ${key_dim} numbers for head L${l}H${h}`, ...[["q", q], ["k", rows(one.k, key_dim).at(-1)], ["v", rows(one.v, value_dim).at(-1)]].map(([name, vector]) => make("div", { class: "named-strip" }, make("b", {}, name), strip(vector, { label: name, height: 14 })))),
      card("3. Scores, softmax: where it looks", tableOf(["token", "q·k", "q·k/8", "softmax"], tokens.map((token, t) => ({ cells: [token, out(`scores-${t}`, steps.scores[0][t]), out(`scaled-${t}`, steps.scaled[0][t]), weightCell(`weights-${t}`, steps.weights[0][t])] })), { caption: "Scores", kind: "small" })),
      card(`4. The mix of the values is ${numbered("Z", h)}; all ${heads} side by side, times W_O, are added to the state`, strip(steps.output[0], { label: "Z", height: 14 }), strip(one.attention, { label: "what attention adds", height: 22 }), note("Attention adds a vector of length ", out("attention", length(one.attention)))),
      card(`5. Feed-forward: ${hidden} numbers inside, ${model} come out and are added`, strip(one.inner, { label: "inner numbers", height: 22 }), strip(one.forward, { label: "what feed-forward adds", height: 22 }), note("Feed-forward adds a vector of length ", out("forward", length(one.forward)))),
      card(l + 1 < count ? `6. The state goes on to layer ${l + 1}` : "6. The last state is compared with every token of the vocabulary", strip(after, { label: "state after", height: 22 }), note("If the model had to answer here: ", make("b", {}, best(numbers.layers[l].top)))),
    );
    const most = strongest(steps.weights[0]);
    conclude(`In L${l}H${h} “${tokens.at(-1)}” looks most at “${tokens[most]}”: ${sayWeight(steps.weights[0][most])}. After layer ${l} the likeliest next token is “${tokenSign(numbers.layers[l].top[0][0])}”.`);
  };
};
