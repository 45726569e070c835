// Just enough of the protobuf wire format to look at an ONNX file without an ONNX library, so that
// what the splitter wrote is read back by code that shares nothing with it.

// [field number, value] of one message; a value is a Buffer view, or a number for the other types.
export function* fields(buffer) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      if (at >= buffer.length) throw new Error('truncated varint');
      const byte = buffer[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < buffer.length) {
    const key = varint();
    const type = key % 8;
    const field = Math.floor(key / 8);
    if (type === 0) {
      yield [field, varint()];
      continue;
    }
    const length = { 1: 8, 2: -1, 5: 4 }[type];
    if (length === undefined) throw new Error(`wire type ${type}`);
    const n = length < 0 ? varint() : length;
    if (at + n > buffer.length) throw new Error('truncated field');
    yield [field, buffer.subarray(at, at + n)];
    at += n;
  }
}

// A message as text, whatever order its fields stand in; `known` fields are left out, those that `inner`
// has a function for go through it.
const show = (value) => (Buffer.isBuffer(value) ? value.toString('latin1') : value);
const canonical = (buffer, known = [], inner = {}) => [...fields(buffer)]
  .filter(([field]) => !known.includes(field))
  .sort(([a], [b]) => a - b)
  .map(([field, value]) => `${field}:${inner[field] ? `{${inner[field](value)}}` : show(value)}`)
  .join('\n');

const all = (buffer, wanted) =>
  [...fields(buffer)].filter(([field]) => field === wanted).map(([, value]) => value);
const text = (buffer, wanted) => all(buffer, wanted).map(String).at(-1) ?? '';

// A node, without where its tensors of no elements are stored: one that was external is not.
const tensorKey = (tensor) => canonical(tensor, all(tensor, 1).includes(0) ? [9, 13, 14] : []);
const graphKey = (graph) => canonical(graph, [], { 1: nodeKey, 5: tensorKey });
const attributeKey = (attribute) =>
  canonical(attribute, [], { 5: tensorKey, 10: tensorKey, 6: graphKey, 11: graphKey });
function nodeKey(node) {
  return canonical(node, [], { 5: attributeKey });
}

// What is declared of a value: a number, a symbol or neither for each dimension, and denotations.
function declaredType(value) {
  const [type] = all(value, 2);
  const [tensor] = type ? all(type, 1) : [];
  const [shape] = tensor ? all(tensor, 2) : [];
  return {
    denotation: type ? text(type, 6) : '',
    dims: shape && all(shape, 1).map((dim) =>
      ({ size: all(dim, 1).at(-1), symbol: text(dim, 2), denotation: text(dim, 3) })),
  };
}

const declaration = (value) =>
  ({ name: text(value, 1), key: canonical(value, [1]), type: declaredType(value) });

// What a stage must keep of its model. Field numbers of onnx.proto: ModelProto graph 7,
// opset_import 8, functions 25; GraphProto node 1, initializer 5, input 11, output 12,
// value_info 13, quantization_annotation 14, sparse_initializer 15; NodeProto name 3, op_type 4,
// attribute 5, domain 7; AttributeProto t 5, g 6, tensors 10, graphs 11; TensorProto dims 1, name 8, raw_data 9, external_data 13, data_location 14; FunctionProto
// domain 10; ValueInfoProto name 1.
export function readModel(bytes) {
  const graphs = all(bytes, 7);
  if (graphs.length !== 1) throw new Error(`${graphs.length} graphs in one model`);
  const [graph] = graphs;
  return {
    nodes: all(graph, 1).map((node) => ({
      key: nodeKey(node), name: text(node, 3), op: text(node, 4), domain: text(node, 7),
    })),
    weights: all(graph, 5).map((tensor) => ({
      name: text(tensor, 8),
      external: all(tensor, 14).at(-1) === 1,
      key: canonical(tensor),
      rest: canonical(tensor, [9, 13, 14]),
    })),
    inputs: all(graph, 11).map(declaration),
    outputs: all(graph, 12).map(declaration),
    infos: all(graph, 13).map(declaration),
    opsets: all(bytes, 8).map((opset) => canonical(opset)),
    functions: all(bytes, 25).map((body) => ({ key: canonical(body), domain: text(body, 10) })),
    rest: canonical(bytes, [7, 8, 25]),
    graphRest: canonical(graph, [1, 5, 11, 12, 13, 14, 15]),
  };
}
