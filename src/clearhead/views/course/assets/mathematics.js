// The mathematics of the course, in float64. Vectors are arrays of numbers, matrices arrays of rows.

const dot = (a, b) => a.reduce((sum, one, i) => sum + one * b[i], 0);
const added = (a, b) => a.map((one, i) => one + b[i]);
const scaledBy = (a, factor) => a.map((one) => one * factor);
const transposed = (matrix) => matrix[0].map((_, column) => matrix.map((row) => row[column]));
const product = (a, b) => {
  const columns = transposed(b);
  return a.map((row) => columns.map((column) => dot(row, column)));
};
const sumOf = (numbers) => numbers.reduce((a, b) => a + b, 0);

// Softmax: eˣ, divided by the sum of all. The largest is subtracted first, so that nothing overflows.
function softmax(scores) {
  const largest = Math.max(...scores);
  if (largest === -Infinity) return scores.map(() => 0);
  const powers = scores.map((one) => Math.exp(one - largest));
  const total = sumOf(powers);
  return powers.map((one) => one / total);
}

// attention_steps of the package: every column of the table. `visible(row, column)`: may attend.
function attentionSteps(query, key, value, { scale = 1 / Math.sqrt(key[0].length), visible = () => true } = {}) {
  const scores = query.map((q) => key.map((k) => dot(q, k)));
  const scaled = scores.map((row) => scaledBy(row, scale));
  const masked = scaled.map((row, r) => row.map((one, c) => (visible(r, c) ? one : -Infinity)));
  const weights = masked.map(softmax);
  const weighted = weights.map((row) => row.map((weight, c) => scaledBy(value[c], weight)));
  const output = weights.map((row) => value[0].map((_, i) => sumOf(row.map((weight, c) => weight * value[c][i]))));
  return { scores, scaled, masked, weights, weighted, output, scale };
}

// Positions as waves: sin and cos in turns (the paper), or all sines first (Marian).
function sinusoid(position, width, halves = false) {
  const angles = Array.from({ length: width / 2 }, (_, i) => position * Math.pow(10000, (-2 * i) / width));
  if (halves) return [...angles.map(Math.sin), ...angles.map(Math.cos)];
  return angles.flatMap((angle) => [Math.sin(angle), Math.cos(angle)]);
}

// Layer normalisation: mean 0, variance 1.
function layerNorm(x, epsilon = 1e-5) {
  const mean = sumOf(x) / x.length;
  const variance = sumOf(x.map((one) => (one - mean) ** 2)) / x.length;
  return { mean, variance, result: x.map((one) => (one - mean) / Math.sqrt(variance + epsilon)) };
}

const FUNCTIONS = {
  "f(x) = x": (x) => x,
  "f(x) = max(0, x)": (x) => Math.max(0, x),
  "f(x) = tanh x": Math.tanh,
};

// Small whole numbers −2 … 2 that look random and are the same everywhere: 16-bit congruences.
function madeMatrix(rows, columns, seed) {
  let state = (seed * 7919 + 17) % 65536;
  const next = () => {
    state = (state * 25173 + 13849) % 65536;
    return (Math.floor(state / 256) % 5) - 2;
  };
  return Array.from({ length: rows }, () => Array.from({ length: columns }, next));
}

// ln Γ(n + 1) for whole n as a sum of logarithms; Wilson's interval; the exact binomial tail.
const logFactorial = (n) => {
  let sum = 0;
  for (let i = 2; i <= n; i++) sum += Math.log(i);
  return sum;
};
const Z_95 = 1.959963984540054;
function wilson(hits, cases) {
  const share = hits / cases;
  const correction = (Z_95 * Z_95) / cases;
  const middle = (share + correction / 2) / (1 + correction);
  const half = (Z_95 / (1 + correction)) * Math.sqrt((share * (1 - share)) / cases + correction / (4 * cases));
  return [hits === 0 ? 0 : Math.max(0, middle - half), hits === cases ? 1 : Math.min(1, middle + half)];
}
function binomialTail(hits, cases, probability) {
  if (hits <= 0 || probability >= 1) return 1;
  if (probability <= 0) return 0;
  if (hits <= cases * probability) return 1 - summedTerms(hits - 1, cases, probability, -1); // the lower tail is shorter
  return Math.min(1, summedTerms(hits, cases, probability, 1));
}
// P(X = k), and all terms from there upwards (step 1) or downwards: each from the one before it.
function summedTerms(start, cases, probability, step) {
  const odds = probability / (1 - probability);
  let [term, total] = [1, 1];
  for (let k = start; step > 0 ? k < cases : k > 0; k += step) {
    term *= step > 0 ? ((cases - k) / (k + 1)) * odds : k / (cases - k + 1) / odds;
    total += term;
    if (term < total * 1e-17) break;
  }
  const ways = logFactorial(cases) - logFactorial(start) - logFactorial(cases - start);
  return Math.exp(ways + start * Math.log(probability) + (cases - start) * Math.log1p(-probability)) * total;
}
