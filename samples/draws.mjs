// What random operators draw while stages train: the inputs that pipeline.json lists as training.masks. Numbers are
// drawn by counter (Philox 4x32-10, Salmon et al., SC 2011), as psplit/random.h draws them, bit for bit; normal ones
// to the last bits of a logarithm. docs/training.md has the formulas.

// Both halves of a product of 32 bits: [high, low].
function multiply(a, b) {
  const low = (a & 0xffff) * (b & 0xffff), middle = (a >>> 16) * (b & 0xffff) + (low >>> 16);
  const rest = (a & 0xffff) * (b >>> 16) + (middle % 65536);
  return [(a >>> 16) * (b >>> 16) + Math.floor(middle / 65536) + Math.floor(rest / 65536), Math.imul(a, b)];
}
export function philox([c0, c1, c2, c3], [k0, k1]) {
  for (let round = 0; round < 10; round++) {
    const [high0, low0] = multiply(0xd2511f53, c0), [high1, low1] = multiply(0xcd9e8d57, c2);
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1 >>> 0, (high0 ^ c3 ^ k1) >>> 0, low0 >>> 0];
    [k0, k1] = [(k0 + 0x9e3779b9) >>> 0, (k1 + 0xbb67ae85) >>> 0];
  }
  return [c0, c1, c2, c3];
}
// n words of 32 bits. seed: a BigInt of 64 bits.
export function words(seed, step, microBatch, number, n) {
  const [k0, k1] = philox([number, 0x10002, 0, 0], [Number(seed & 0xffffffffn), Number(seed >> 32n)]);
  const out = new Uint32Array(n);
  for (let i = 0; i < n; i += 4) out.set(philox([i / 4, 2, step, microBatch], [k0, k1]).slice(0, n - i), i);
  return out;
}
// The number that a standard normal variable is below with probability p (Wichura, AS 241, PPND7).
export function quantile(p) {
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179)
      / (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1);
  }
  const r = Math.sqrt(-Math.log(q < 0 ? p : 1 - p)) - 1.6; // at most 4.8 - 1.6
  return Math.sign(q) * (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777)
    / ((0.12021132975 * r + 0.73700164250) * r + 1);
}
const kinds = {
  keep: (drawn, { ratio }) => Uint8Array.from(drawn, (word) => word >= Math.floor(ratio * 2 ** 32)),
  uniform: (drawn) => Float32Array.from(drawn, (word) => (word >>> 8) / 2 ** 24),
  normal: (drawn) => Float32Array.from(drawn, (word) => quantile((word + 0.5) / 2 ** 32)),
};
// The masks of a micro-batch, by name. data: what is fed to the model, from which symbols have their sizes.
export function drawMasks({ inputs, training }, data, ort, seed, step, microBatch) {
  const symbols = Object.fromEntries(inputs.filter(({ name }) => data[name]).flatMap(({ name, shape }) =>
    (shape ?? []).map((size, axis) => [size, data[name].dims[axis]])));
  const product = (factors) => factors.reduce((all, factor) => all * (symbols[factor] ?? factor), 1);
  const sizeOf = (size) => (Array.isArray(size) ? size : [[size]]).reduce((sum, factors) => sum + product(factors), 0);
  return Object.fromEntries(training.masks.map((mask) => {
    const dims = mask.shape.map(sizeOf), drawn = words(BigInt(seed), step, microBatch, mask.number, product(dims));
    return [mask.tensor, new ort.Tensor(mask.dtype, kinds[mask.kind](drawn, mask), dims)];
  }));
}
