// Sampling as generate does it (generation/settings.py): temperature, top-k, top-p, min-p, in this
// order, with the numbers of float32 where it has them. Pure functions of what the file holds.

const OFF = { temperature: 1, topK: null, topP: 1, minP: 0 };

// The logits of all positions: the likeliest of each, and the rest as one number.
class Logits {
  constructor(bytes, meta, tokens) {
    const { positions, kept, temperatures } = meta;
    const reader = new Reader(bytes);
    Object.assign(this, { meta, tokens, positions, kept });
    this.logits = reader.numbers(Float32Array, positions * kept);
    this.places = reader.numbers(Uint32Array, positions * kept);
    this.after = reader.numbers(Float32Array, positions);
    this.cameTokens = reader.numbers(Uint32Array, positions);
    this.cameLogits = reader.numbers(Float32Array, positions);
    this.ranks = reader.numbers(Uint32Array, positions);
    this.rests = reader.numbers(Float64Array, positions * temperatures.length);
  }

  // What the file holds of one position.
  at(position) {
    const { kept, meta } = this;
    const { temperatures } = meta;
    const row = (numbers) => numbers.subarray(position * kept, (position + 1) * kept);
    const rests = new Map(temperatures.map((one, place) => [one, this.rests[position * temperatures.length + place]]));
    const whole = kept === meta.vocab;
    return { logits: row(this.logits), places: row(this.places), after: this.after[position], rests, whole };
  }

  // The token that came: its name, probability, rank and surprise in bits; null where none did.
  came(position) {
    const place = this.cameTokens[position];
    if (place === 0xffffffff) return null;
    const { logits, rests } = this.at(position);
    const log = this.cameLogits[position] - logits[0] - Math.log(total(logits, rests.get(1)));
    return { place, name: this.tokens[place], probability: Math.exp(log), rank: this.ranks[position], bits: Math.max(0, -log / Math.LN2) };
  }
}

const float = Math.fround;
const total = (logits, rest) => logits.reduce((sum, one) => sum + Math.exp(one - logits[0]), 0) + rest;

// Logits at a temperature: shifted by the largest, then divided, each time rounded to float32.
const tempered = (logit, largest, temperature) => (temperature === 1 ? logit : float(float(logit - largest) / float(temperature)));

// The distribution that is sampled from: the shares of the likeliest tokens (0: filtered out), and
// of the rest. `unknown` says what this file cannot tell; the shares are then the model's own.
function sampled(row, { temperature, topK, topP, minP }) {
  const count = row.logits.length;
  if (temperature === 0) return { shares: Float64Array.from(row.logits, (_, i) => (i ? 0 : 1)), rest: 0, unknown: "" };
  const own = () => shared(row.logits, new Array(count).fill(true), row.rests.get(1));
  const refused = (unknown) => ({ ...own(), unknown });
  const logits = Float64Array.from(row.logits, (one) => tempered(one, row.logits[0], temperature));
  const after = tempered(row.after, row.logits[0], temperature);
  const alive = new Array(count).fill(true);
  let rest = row.whole ? 0 : row.rests.get(temperature) ?? NaN; // NaN: not known
  let reason = noSum(temperature);
  let others = !row.whole; // tokens that are not in the file
  const cut = (threshold) => logits.forEach((one, i) => (alive[i] &&= one >= threshold));
  const without = () => ([rest, others] = [0, false]);
  if (topK !== null && (topK < count || others)) {
    const threshold = logits[Math.min(topK, count) - 1];
    if (topK > count || (others && after >= threshold)) return refused(`Top-k ${topK} keeps tokens that this file does not hold.`);
    cut(threshold);
    without();
  }
  if (topP < 1) {
    if (Number.isNaN(rest)) return refused(reason);
    const { shares } = shared(logits, alive, rest);
    let reached = 0;
    let nucleus = 0;
    for (let i = 0; i < count && alive[i]; i++) {
      reached += shares[i];
      if (reached - shares[i] < topP) nucleus = i + 1;
    }
    if (others && reached < topP) {
      rest = NaN; // some of the others stay; min-p may still take them
      reason = `Top-p ${topP} keeps more tokens than this file holds: its ${count} sum to ${four(reached)} only.`;
    } else {
      alive.fill(false, Math.max(nucleus, 1));
      without();
    }
  }
  if (minP > 0) {
    const threshold = float(logits[0] + float(Math.log(minP)));
    if (others && after >= threshold) return refused(`Min-p ${minP} keeps tokens that this file does not hold.`);
    cut(threshold);
    without();
  }
  if (Number.isNaN(rest)) return refused(reason);
  return { ...shared(logits, alive, rest), unknown: "" };
}

const noSum = (temperature) => `This file does not hold what all other tokens sum to at temperature ${temperature}: choose a top-k.`;

function shared(logits, alive, rest) {
  const masses = Float64Array.from(logits, (one, i) => (alive[i] ? Math.exp(one - logits[0]) : 0));
  const sum = masses.reduce((a, b) => a + b, 0) + rest;
  return { shares: masses.map((mass) => mass / sum), rest: rest / sum };
}

// The token at which the cumulative sum passes a uniform number: in the order of the vocabulary, as
// generate draws; tokens that are not in the file come last. Returns its rank here, or -1 for those.
function drawn(row, { shares, rest }, uniform) {
  const order = [...shares.keys()].sort((a, b) => row.places[a] - row.places[b]);
  let end = 0;
  const ends = order.map((i) => (end += shares[i]));
  const point = uniform * (end + rest);
  const found = ends.findIndex((one) => one > point);
  return found < 0 ? (rest > 0 ? -1 : order[ends.findIndex((one) => one === end)]) : order[found];
}
