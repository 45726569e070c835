// Seeded inputs for a model, typed and shaped as the model declares them.
import { createHash } from 'node:crypto';
import * as ort from 'onnxruntime-node';

// mulberry32: small, and the same everywhere.
function random(seed) {
  let state = createHash('sha256').update(seed).digest().readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const half = (r) => (r() < 0.5 ? 0x8000 : 0) | (0x3000 + Math.floor(r() * 0x0c00)); // +-[0.125, 1)
const make = {
  float32: (n, r) => Float32Array.from({ length: n }, () => r() * 2 - 1),
  float64: (n, r) => Float64Array.from({ length: n }, () => r() * 2 - 1),
  float16: (n, r) => Uint16Array.from({ length: n }, () => half(r)),
  bool: (n, r) => Uint8Array.from({ length: n }, () => r() * 2),
  uint8: (n, r) => Uint8Array.from({ length: n }, () => r() * 256),
  int8: (n, r) => Int8Array.from({ length: n }, () => r() * 256 - 128),
  uint16: (n, r) => Uint16Array.from({ length: n }, () => r() * 100),
  int16: (n, r) => Int16Array.from({ length: n }, () => r() * 100),
  uint32: (n, r) => Uint32Array.from({ length: n }, () => r() * 100),
  int32: (n, r) => Int32Array.from({ length: n }, () => r() * 100),
  uint64: (n, r) => BigUint64Array.from({ length: n }, () => BigInt(Math.floor(r() * 100))),
  int64: (n, r) => BigInt64Array.from({ length: n }, () => BigInt(Math.floor(r() * 100))),
  string: (n, r) => Array.from({ length: n }, () => `s${Math.floor(r() * 100)}`),
};

// run: {dims: {symbol: size}, shapes: {input: [..]}, values: {input: [..]}}, all optional.
export function makeFeeds(inputs, run) {
  const feeds = {};
  for (const { name, isTensor, type, shape } of inputs) {
    if (!isTensor) throw new Error(`input ${name} is not a tensor`);
    const dims = run.shapes?.[name] ?? shape.map((dim) => {
      const size = typeof dim === 'number' && dim >= 0 ? dim : run.dims?.[dim];
      if (size === undefined) throw new Error(`no size for dimension ${dim} of input ${name}`);
      return size;
    });
    const count = dims.reduce((a, b) => a * b, 1);
    const given = run.values?.[name];
    const data = given ? make[type](given.length, () => 0) : make[type](count, random(name));
    given?.forEach((value, i) => {
      data[i] = typeof data[i] === 'bigint' ? BigInt(value) : value;
    });
    feeds[name] = new ort.Tensor(type, data, dims);
  }
  return feeds;
}
