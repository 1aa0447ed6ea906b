// A small encoder-decoder (post-norm, ReLU, biases), run by the page in float64: the model `dates`.

class Transformer {
  constructor(meta, numbers) {
    this.meta = meta;
    this.parameters = {};
    let at = 0;
    for (const [name, shape] of Object.entries(meta.shapes)) {
      const size = shape.reduce((a, b) => a * b, 1);
      const flat = Array.from(numbers.subarray(at, at + size));
      at += size;
      this.parameters[name] = shape.length === 2 ? Array.from({ length: shape[0] }, (_, r) => flat.slice(r * shape[1], (r + 1) * shape[1])) : flat;
    }
    this.ids = new Map(meta.pieces.map((piece, id) => [piece, id]));
  }

  linear(states, name) {
    const [weight, bias] = [this.parameters[`${name}.weight`], this.parameters[`${name}.bias`]];
    return states.map((state) => weight.map((line, i) => dot(line, state) + bias[i]));
  }
  norm(states, name) {
    const [weight, bias] = [this.parameters[`${name}.weight`], this.parameters[`${name}.bias`]];
    return states.map((state) => layerNorm(state, this.meta.epsilon).result.map((one, i) => one * weight[i] + bias[i]));
  }
  embed(ids) {
    const { model, embedding_scale, halves } = this.meta;
    const place = (position) => sinusoid(position, model, halves).map(Math.fround); // the model keeps positions in float32
    return ids.map((id, position) => added(scaledBy(this.parameters.tokens[id], embedding_scale), place(position)));
  }
  // Returns the new states and each head's weights.
  attend(states, source, name, causal) {
    const { heads, model } = this.meta;
    const width = model / heads;
    const [query, key, value] = ["query", "key", "value"].map((part) => this.linear(part === "query" ? states : source, `${name}.${part}`));
    const own = (rows, head) => rows.map((one) => one.slice(head * width, (head + 1) * width));
    const visible = causal ? (r, c) => c <= r : () => true;
    const steps = Array.from({ length: heads }, (_, head) => attentionSteps(own(query, head), own(key, head), own(value, head), { visible }));
    const joined = states.map((_, r) => steps.flatMap((one) => one.output[r]));
    return { result: this.linear(joined, `${name}.output`), weights: steps.map((one) => one.weights) };
  }
  residual(states, addition, name) {
    return this.norm(states.map((state, r) => added(state, addition[r])), `${name}.after`);
  }
  feedForward(states, block) {
    const hidden = this.linear(states, `${block}.feed_forward.up`).map((state) => state.map((one) => Math.max(0, one)));
    return this.residual(states, this.linear(hidden, `${block}.feed_forward.down`), `${block}.feed_forward_residual`);
  }
  encode(ids) {
    let states = this.embed(ids);
    for (let layer = 0; layer < this.meta.encoder_layers; layer++) {
      const block = `encoder.blocks.${layer}`;
      states = this.residual(states, this.attend(states, states, `${block}.attention`, false).result, `${block}.attention_residual`);
      states = this.feedForward(states, block);
    }
    return states;
  }
  // The logits after the last id, and the weights of cross-attention: layer, head, query, key.
  decode(ids, source) {
    let states = this.embed(ids);
    const crossing = [];
    for (let layer = 0; layer < this.meta.layers; layer++) {
      const block = `decoder.blocks.${layer}`;
      states = this.residual(states, this.attend(states, states, `${block}.attention`, true).result, `${block}.attention_residual`);
      const crossed = this.attend(states, source, `${block}.cross_attention`, false);
      crossing.push(crossed.weights);
      states = this.residual(states, crossed.result, `${block}.cross_residual`);
      states = this.feedForward(states, block);
    }
    const last = states[states.length - 1];
    const logits = this.parameters.tokens.map((token, id) => dot(token, last) + this.parameters["head.bias"][id]);
    return { logits, crossing };
  }
  // Greedy decoding: the likeliest token again and again, until the end.
  write(text, most = 14) {
    const { start, eos, pieces } = this.meta;
    const read = [...text].map((one) => this.ids.get(one) ?? 3);
    const source = this.encode(read);
    const ids = [start];
    const steps = [];
    let crossing = [];
    while (ids.length <= most) {
      const found = this.decode(ids, source);
      crossing = found.crossing;
      const shares = softmax(found.logits);
      const best = shares.indexOf(Math.max(...shares));
      steps.push({ piece: pieces[best], share: shares[best] });
      if (best === eos) break;
      ids.push(best);
    }
    return { text: steps.filter((one) => one.piece !== pieces[eos]).map((one) => one.piece).join(""), steps, crossing, read };
  }
}
