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

const all = (buffer, wanted) =>
  [...fields(buffer)].filter(([field]) => field === wanted).map(([, value]) => value);
const text = (buffer, wanted) => all(buffer, wanted).map(String).at(-1) ?? '';

// Field numbers of onnx.proto: ModelProto.graph = 7; GraphProto.node = 1, initializer = 5;
// NodeProto input = 1, output = 2, name = 3, op_type = 4, domain = 7.
export function readModel(bytes) {
  const graph = all(bytes, 7);
  if (graph.length !== 1) throw new Error(`${graph.length} graphs in one model`);
  return {
    nodes: all(graph[0], 1).map((node) => ({
      bytes: node,
      name: text(node, 3),
      op: text(node, 4),
      domain: text(node, 7),
      outputs: all(node, 2).map(String),
    })),
  };
}
