// Writing small ONNX models, and tensors of numbers that are the same in every run.

function varint(value) {
  const out = [];
  let n = BigInt.asUintN(64, BigInt(value));
  for (; n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return Buffer.from([...out, Number(n)]);
}
const int = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const block = (field, data) => {
  const bytes = Buffer.from(data);
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
};
const all = (...parts) => Buffer.concat(parts.flat(Infinity));

export const types = {
  float32: [1, Float32Array], float64: [11, Float64Array], int64: [7, BigInt64Array],
  float16: [10, Uint16Array], int32: [6, Int32Array], bool: [9, Uint8Array], uint8: [2, Uint8Array],
};

const product = (dims) => dims.reduce((a, b) => a * b, 1);

// A tensor { type, dims, data }: `data` a flat list of numbers.
export function tensor(type, dims, data) {
  const View = types[type][1];
  const list = type === 'int64' ? Array.from(data, (x) => BigInt(x)) : Array.from(data);
  if (list.length !== product(dims)) throw new Error(`${list.length} numbers for [${dims}]`);
  return { type, dims, data: View.from(list) };
}

const tensorProto = (name, { type, dims, data }) =>
  all(dims.map((dim) => int(1, dim)), int(2, types[type][0]), name ? block(8, name) : [],
    block(9, Buffer.from(data.buffer, data.byteOffset, data.byteLength)));

// An attribute by the kind of its value: 1n is an int, 1 a float, 'a' a string, lists of these, the
// bytes of a graph, a tensor.
function attribute(name, value) {
  const head = block(1, name);
  const float = (field, x) => all(varint(field * 8 + 5), Buffer.from(Float32Array.of(x).buffer));
  if (typeof value === 'bigint') return all(head, int(3, value), int(20, 2));
  if (typeof value === 'number') return all(head, float(2, value), int(20, 1));
  if (typeof value === 'string') return all(head, block(4, value), int(20, 3));
  if (Buffer.isBuffer(value)) return all(head, block(6, value), int(20, 5));
  if (!Array.isArray(value)) return all(head, block(5, tensorProto('', value)), int(20, 4));
  if (typeof value[0] === 'number') return all(head, value.map((x) => float(7, x)), int(20, 6));
  return all(head, value.map((x) => int(8, x)), int(20, 7));
}

export const node = (op, inputs, outputs, attrs = {}, domain = '') =>
  all(inputs.map((name) => block(1, name)), outputs.map((name) => block(2, name)),
    block(3, `n_${outputs.join('_')}`), block(4, op),
    Object.entries(attrs).map(([name, value]) => block(5, attribute(name, value))),
    domain ? block(7, domain) : []);

// dims: numbers, names, or null for a tensor of unknown rank.
export const value = (name, type, dims) => all(block(1, name), block(2, block(1, all(
  int(1, types[type][0]), dims === null ? [] : block(2, all(dims.map((dim) =>
    block(1, typeof dim === 'number' ? int(1, dim) : block(2, dim)))))))));

// nodes, inputs and outputs as made above; initializers { name: tensor }.
export const graph = ({ nodes, inputs = [], outputs, initializers = {} }) => all(nodes.map((each) => block(1, each)), block(2, 'net'),
    Object.entries(initializers).map(([name, each]) => block(5, tensorProto(name, each))),
    inputs.map((each) => block(11, each)), outputs.map((each) => block(12, each)));

export const model = ({ opset = 17, domains = [], functions = [], ...parts }) =>
  all(int(1, opset > 20 ? 10 : 8), block(7, graph(parts)), block(8, int(2, opset)),
    domains.map((domain) => block(8, all(block(1, domain), int(2, 1)))),
    functions.map((each) => block(25, each)));

// A function of domain "local" that hands on `op` of its input.
export const localFunction = (name, op) => all(block(1, name), block(4, 'a'), block(5, 'b'),
  block(7, node(op, ['a'], ['b'])), block(9, int(2, 17)), block(10, 'local'));

// Numbers in (0, 1), the same in every run.
export function random(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
}
// Gives a function that makes tensors of the dimensions it gets, of numbers around 0 that `next` draws.
export const drawnTensors = (next, scale = () => 1) => (...dims) => tensor('float32', dims, Array.from({ length: product(dims) }, () => scale(dims) * (next() - 0.5)));
export { product };
