// Small models, one for each thing that real files hold and that breaks naive tools.
//
// Written field by field (numbers of onnx.proto), so that a model can also hold what no ONNX
// library would write. `node fixtures.mjs NAME FILE` writes one, to look at it.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// --- a protobuf writer ---

function varint(value) {
  const out = [];
  let n = BigInt(value);
  for (; n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return Buffer.from([...out, Number(n)]);
}
const int = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const block = (field, data) => {
  const bytes = Buffer.from(data);
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
};
const blocks = (field, list) => Buffer.concat(list.map((data) => block(field, data)));
const all = (...parts) => Buffer.concat(parts.flat());

// --- ONNX messages ---

const FLOAT = 1, UINT8 = 2, INT8 = 3, INT64 = 7, STRING = 8, BOOL = 9, FLOAT16 = 10, DOUBLE = 11;
const BFLOAT16 = 16, FLOAT8E4M3FN = 17, FLOAT8E5M2 = 19, INT4 = 22;

const attr = {
  int: (name, i) => all(block(1, name), int(3, i), int(20, 2)),
  ints: (name, list) => all(block(1, name), list.map((i) => int(8, i)), int(20, 7)),
  graph: (name, graph) => all(block(1, name), block(6, graph), int(20, 5)),
};

const float = (name, f) => all(block(1, name), varint(2 * 8 + 5),
  Buffer.from(Float32Array.of(f).buffer), int(20, 1));

const node = (op, inputs, outputs, attrs = [],
  { domain, name = `n_${outputs.join('_')}`, extra = [] } = {}) =>
  all(blocks(1, inputs), blocks(2, outputs), name ? block(3, name) : [], block(4, op),
    blocks(5, attrs), domain ? block(7, domain) : [], extra);

// A dimension is a number, a symbol, null for neither, or [one of these, its denotation].
const dimension = (dim) => {
  if (Array.isArray(dim)) return all(dimension(dim[0]), block(3, dim[1]));
  return dim === null ? all() : typeof dim === 'number' ? int(1, dim) : block(2, dim);
};
const tensorType = (type, dims) =>
  block(1, all(int(1, type), block(2, blocks(1, dims.map(dimension)))));
const value = (name, type = FLOAT, dims = ['n', 8], denotation = undefined) =>
  all(block(1, name), block(2, all(tensorType(type, dims), denotation ? block(6, denotation) : [])));

const tensor = (name, dims, type, data) =>
  all(dims.map((dim) => int(1, dim)), int(2, type), block(8, name), block(9, data));

const bytesOf = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

// A fixed 8 x 8 matrix per name, with entries around 0.3.
function weightData(name, n = 8) {
  let state = [...name].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) | 0, 7);
  return bytesOf(Float32Array.from({ length: n * n }, () => {
    state = (Math.imul(state, 1103515245) + 12345) | 0;
    return ((state >>> 8) / 2 ** 24 - 0.5);
  }));
}
const weight = (name) => tensor(name, [8, 8], FLOAT, weightData(name));
const scalar = (name, type, array) => tensor(name, [], type, bytesOf(array));

const graph = ({
  nodes, inputs = [value('x')], outputs = [value('y')], weights = [], extra = [],
}) => all(blocks(1, nodes), block(2, 'fixture'), blocks(5, weights), extra, blocks(11, inputs),
    blocks(12, outputs));

const opset = (domain, version) => all(domain ? block(1, domain) : [], int(2, version));

const model = (parts, { ir = 8, opsets = [opset('', 17)], functions = [], extra = [] } = {}) =>
  all(int(1, ir), block(2, 'fixtures.mjs'), block(7, graph(parts)), blocks(8, opsets), extra,
    blocks(25, functions));

// from -> (MatMul, Tanh) * count -> to, with the weights that it takes.
function layers(from, to, count, prefix = to, named = true) {
  const nodes = [];
  const weights = [];
  let last = from;
  for (let i = 0; i < count; i++) {
    const w = `${prefix}.w${i}`;
    const out = i === count - 1 ? to : `${prefix}.t${i}`;
    weights.push(weight(w));
    const options = named ? {} : { name: '' };
    nodes.push(node('MatMul', [last, w], [`${prefix}.m${i}`], [], options));
    nodes.push(node('Tanh', [`${prefix}.m${i}`], [out], [], options));
    last = out;
  }
  return { nodes, weights };
}

const x = { shapes: { x: [3, 8] } };

// A --devices file of four CPUs with links between these pairs and no others.
const devices = (links) => JSON.stringify({
  devices: [0, 1, 2, 3].map((i) => ({ name: `d${i}`, preset: 'cpu' })),
  topology: { same_host: { bytes_per_second: 0 } },
  links: links.map(([from, to]) => (
    { from: `d${from}`, to: `d${to}`, bytes_per_second: 1e9, latency_ns: 1000 })),
});

// The same with links between all, and a limit of memory each.
const devicesWith = (memory) => JSON.stringify({
  devices: memory.map((n, i) => ({ name: `d${i}`, preset: 'cpu', memory_bytes: n })),
});

// Token ids -> embedding -> `before` layers -> logits by the same table -> `after` nodes.
function language(before, after = 0, transposed = false) {
  const { nodes, weights } = before ? layers('e', 'h', before) : { nodes: [], weights: [] };
  const hidden = before ? 'h' : 'e';
  const head = transposed
    ? [node('Transpose', ['emb'], ['emb_t']), node('MatMul', [hidden, 'emb_t'], ['logits'])]
    : [node('Gemm', [hidden, 'emb'], ['logits'], [attr.int('transB', 1)])];
  const names = [...Array(after).keys()].map((i) => (i + 1 === after ? 'y' : `s${i}`));
  return model({
    nodes: [node('Gather', ['emb', 'ids'], ['e']), ...nodes, ...head,
      ...names.map((to, i) => node('Softmax', [names[i - 1] ?? 'logits'], [to]))],
    weights: [...weights, tensor('emb', [64, 8], FLOAT,
      all(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((each) => weightData(each))))],
    inputs: [value('ids', INT64, ['n'])], outputs: [value(after ? 'y' : 'logits', FLOAT, ['n', 64])],
  });
}
const tokens = { shapes: { ids: [5] }, values: { ids: [3, 60, 0, 17, 17] } };

// One If around everything; the condition is an input, or a constant of this name.
function oneIf(constant, name) {
  const branch = (name) => {
    const { nodes, weights } = layers('x', name, 3);
    return graph({ nodes, weights, inputs: [], outputs: [value(name)] });
  };
  return model({
    nodes: [node('If', [constant ?? 'flag'], ['y'], [attr.graph('then_branch', branch('p')),
      attr.graph('else_branch', branch('q'))], { name })],
    weights: constant ? [tensor(constant, [], BOOL, Buffer.from([1]))] : [],
    inputs: [value('x'), ...(constant ? [] : [value('flag', BOOL, [])])],
  });
}

// One If around almost everything, whose then_branch has outputs of these names; those of the If are
// y, k, v and w.
function merged(names = ['y', 'k', 'own', 'w']) {
  const then = layers('s', 'y', 3, 'then');
  const other = layers('s', 'e.y', 3);
  const types = (list) => list.map((name) => value(name, FLOAT, name === 'w' ? [8, 8] : ['rows', 8]));
  const yes = graph({
    nodes: [...then.nodes, node('Neg', ['s'], ['k']), node('Exp', ['s'], ['own'])],
    weights: [...then.weights, weight('w')],
    inputs: [], outputs: types(names), extra: [block(13, value('k', FLOAT, ['inside', 8]))],
  });
  const no = graph({
    nodes: [...other.nodes, node('Cos', ['s'], ['e.k']), node('Sin', ['s'], ['e.v']),
      node('MatMul', ['e.w0', 'e.w1'], ['e.w'])],
    weights: [...other.weights, weight('e.w0'), weight('e.w1')],
    inputs: [], outputs: types(['e.y', 'e.k', 'e.v', 'e.w']),
  });
  return model({
    nodes: [node('Sin', ['x'], ['s']), node('If', ['flag'], ['y', 'k', 'v', 'w'],
      [attr.graph('then_branch', yes), attr.graph('else_branch', no)], { name: 'merged::if' }),
    node('Tanh', ['k'], ['z'])],
    inputs: [value('x'), value('flag', BOOL, [])],
    outputs: [value('y'), value('z'), value('v'), value('w', FLOAT, [8, 8])],
    extra: [block(13, value('k', FLOAT, ['outside', 8]))],
  });
}

// x -> h, `first` -> a, a + `second` -> b, b + h -> y.
function skipping(first, second) {
  const parts = [layers('x', 'h', 2), layers(first, 'a', 2), layers('b0', 'b', 2)];
  return model({
    nodes: [...parts.flatMap(({ nodes }) => nodes), node('Add', ['a', second], ['b0']),
      node('Add', ['b', 'h'], ['y'])],
    weights: parts.flatMap(({ weights }) => weights),
  });
}

// --- the models: build() gives the bytes, files() what lies beside them ---

export const fixtures = {
  unsorted: {
    why: 'nodes stand after their consumers',
    build() {
      const { nodes, weights } = layers('x', 'y', 6);
      return model({ nodes: nodes.reverse(), weights });
    },
  },

  unnamed: {
    why: 'no node has a name',
    build: () => model(layers('x', 'y', 6, 'y', false)),
  },

  names: {
    why: 'names with spaces, braces, quotes, dots, slashes and letters beyond ASCII',
    build: () => model(layers('x', 'y', 6, 'a b{c}/../"d"\\%s:e,f-g;h ü→')),
  },

  inner_outputs: {
    why: 'outputs of the model are consumed inside it',
    build: () => model({
      ...layers('x', 'y', 6), outputs: [value('y.t0'), value('y'), value('y.t3')],
    }),
  },

  fan_out: {
    why: 'one tensor is wanted by every stage, and the input by the last one',
    build() {
      const { nodes, weights } = layers('x', 'h', 2);
      let last = 'h';
      for (let i = 0; i < 5; i++) {
        nodes.push(node('MatMul', [last, 'h.w0'], [`p${i}`]),
          node('Add', [`p${i}`, 'h'], [`q${i}`]));
        last = `q${i}`;
      }
      nodes.push(node('Add', [last, 'x'], ['y']));
      return model({ nodes, weights });
    },
  },

  two_inputs: {
    why: 'a second input, which only the last stage reads',
    build() {
      const { nodes, weights } = layers('x', 'h', 6);
      nodes.push(node('Add', ['h', 'late'], ['y']));
      return model({ nodes, weights, inputs: [value('x'), value('late')] });
    },
    runs: [{ shapes: { x: [3, 8], late: [3, 8] } }],
  },
  if_captures: {
    why: 'bodies take outer values, outer weights and an input that nothing else uses',
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8], z: [3, 8] }, values: { flag: [flag] } })),
    build() {
      const before = layers('x', 'h', 3);
      const after = layers('i', 'y', 3);
      // Both branches use the same names inside.
      const yes = graph({
        nodes: [node('MatMul', ['h.t0', 'captured'], ['b']), node('Add', ['b', 'h'], ['o'])],
        inputs: [], outputs: [value('o')],
      });
      const no = graph({
        nodes: [node('Mul', ['z', 'h.t1'], ['b']), node('Tanh', ['b'], ['o'])],
        inputs: [], outputs: [value('o')],
      });
      const branch = node('If', ['flag'], ['i'],
        [attr.graph('then_branch', yes), attr.graph('else_branch', no)]);
      return model({
        nodes: [...before.nodes, branch, ...after.nodes],
        weights: [...before.weights, ...after.weights, weight('captured')],
        inputs: [value('x'), value('z'), value('flag', BOOL, [])],
      });
    },
  },

  loop: {
    why: 'a Loop whose body has a state, a captured weight and a captured value',
    build() {
      const before = layers('x', 'h', 3);
      const after = layers('l', 'y', 3);
      const body = graph({
        nodes: [
          node('Identity', ['go'], ['go_on']),
          node('MatMul', ['state', 'captured'], ['m']),
          node('Add', ['m', 'h.t0'], ['a']),
          node('Tanh', ['a'], ['next']),
        ],
        inputs: [value('i', INT64, []), value('go', BOOL, []), value('state')],
        outputs: [value('go_on', BOOL, []), value('next')],
      });
      return model({
        nodes: [...before.nodes,
          node('Loop', ['trips', '', 'h'], ['l'], [attr.graph('body', body)]), ...after.nodes],
        weights: [...before.weights, ...after.weights, weight('captured'),
          scalar('trips', INT64, new BigInt64Array([3n]))],
      });
    },
  },

  scan: {
    why: 'a Scan over rows',
    build() {
      const before = layers('x', 'h', 3);
      const after = layers('s', 'y', 3);
      const body = graph({
        nodes: [
          node('Add', ['sum', 'row'], ['sum_out']),
          node('Identity', ['sum_out'], ['row_out']),
        ],
        inputs: [value('sum', FLOAT, [8]), value('row', FLOAT, [8])],
        outputs: [value('sum_out', FLOAT, [8]), value('row_out', FLOAT, [8])],
      });
      return model({
        nodes: [...before.nodes,
          node('Scan', ['zero', 'h'], ['total', 's'],
            [attr.graph('body', body), attr.int('num_scan_inputs', 1)]),
          ...after.nodes],
        weights: [...before.weights, ...after.weights,
          tensor('zero', [8], FLOAT, Buffer.alloc(32))],
        outputs: [value('y'), value('total', FLOAT, [8])],
      });
    },
  },

  functions: {
    why: 'model-local functions that call each other, from several places',
    build() {
      const called = (name, body) => all(block(1, name), blocks(4, ['X', 'W']), blocks(5, ['Y']),
        blocks(7, body), blocks(9, [opset('', 17), opset('local', 1)]), block(10, 'local'));
      const local = { domain: 'local' };
      const layer = called('Layer',
        [node('MatMul', ['X', 'W'], ['M']), node('Tanh', ['M'], ['Y'])]);
      const twice = called('Twice', [node('Layer', ['X', 'W'], ['L'], [], local),
        node('Layer', ['L', 'W'], ['Y'], [], local)]);
      const names = ['a', 'b', 'c', 'd', 'e', 'y'];
      return model({
        nodes: names.map((to, i) => node(i % 2 ? 'Twice' : 'Layer', [names[i - 1] ?? 'x', `w${i}`],
          [to], [], { domain: 'local', name: `call_${to}` })),
        weights: names.map((_, i) => weight(`w${i}`)),
      }, { opsets: [opset('', 17), opset('local', 1)], functions: [layer, twice] });
    },
  },

  ir3: {
    why: 'IR 3: initializers are listed as inputs too',
    build() {
      const { nodes, weights } = layers('x', 'y', 6);
      const listed = weights.map((_, i) => value(`y.w${i}`, FLOAT, [8, 8]));
      return model({ nodes, weights, inputs: [value('x'), ...listed] },
        { ir: 3, opsets: [opset('', 8)] });
    },
  },

  defaults: {
    why: 'inputs with a default: initializers that are listed as inputs, since IR 4',
    build() {
      const { nodes, weights } = layers('x', 'y', 6);
      return model({
        nodes, weights,
        inputs: [value('y.w4', FLOAT, [8, 8]), value('x'), value('y.w1', FLOAT, [8, 8])],
      });
    },
  },

  optional: {
    why: 'inputs and outputs that are left out',
    runs: [{ shapes: { x: [3, 2, 8] } }],
    build() {
      const wide = (name, dims) => {
        const length = dims.reduce((a, b) => a * b);
        return tensor(name, dims, FLOAT,
          bytesOf(Float32Array.from({ length }, (_, i) => Math.sin(i))));
      };
      return model({
        nodes: [
          node('Clip', ['x', '', 'most'], ['c']),
          node('LSTM', ['c', 'W', 'R', '', '', 'h0'], ['', 'h'], [attr.int('hidden_size', 8)]),
          node('Tanh', ['h'], ['t']),
          node('Dropout', ['t'], ['d', '']),
          node('Clip', ['d', 'least'], ['e']),
          node('MatMul', ['e', 'w'], ['y']),
        ],
        inputs: [value('x', FLOAT, ['t', 2, 8])],
        outputs: [value('y', FLOAT, [1, 2, 8])],
        weights: [wide('W', [1, 32, 8]), wide('R', [1, 32, 8]), wide('h0', [1, 2, 8]), weight('w'),
          scalar('most', FLOAT, new Float32Array([0.6])),
          scalar('least', FLOAT, new Float32Array([-0.4]))],
      });
    },
  },

  external: {
    why: 'weights in a file beside the model, at offsets',
    files: () => ({ 'weights.bin': all([0, 1, 2, 3, 4, 5].map((i) => weightData(`y.w${i}`))) }),
    build() {
      const { nodes, weights } = layers('x', 'y', 6);
      const entry = (key, text) => all(block(1, key), block(2, text));
      return model({
        nodes,
        weights: weights.map((_, i) => all(int(1, 8), int(1, 8), int(2, FLOAT), block(8, `y.w${i}`),
          blocks(13, [entry('location', 'weights.bin'), entry('offset', `${256 * i}`),
            entry('length', '256')]), int(14, 1))),
      });
    },
  },

  external_empty: {
    why: 'tensors without elements are stored outside: a weight, a Constant, one of a body',
    files: () => ({ 'weights.bin': weightData('w') }),
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8] }, values: { flag: [flag] } })),
    build() {
      const entry = (key, text) => all(block(1, key), block(2, text));
      const outside = (name, dims, type, file, offset, bytes) => all(dims.map((dim) => int(1, dim)),
        int(2, type), block(8, name), blocks(13, [entry('location', file), entry('offset', `${offset}`),
          entry('length', `${bytes}`)]), int(14, 1));
      const { nodes, weights } = layers('x', 'h', 2);
      const branch = (op) => graph({
        nodes: [node('Concat', ['r', 'none'], ['c'], [attr.int('axis', 0)]), node(op, ['c'], ['i'])],
        weights: [outside('none', [0, 8], FLOAT, 'weights.bin', 0, 0)], inputs: [], outputs: [value('i')],
      });
      return model({
        nodes: [...nodes, node('MatMul', ['h', 'w'], ['m']),
          node('Resize', ['m', 'roi', 'scales'], ['r']),
          node('Constant', [], ['nothing'], [all(block(1, 'value'),
            block(5, outside('', [0, 8], FLOAT, 'weights.bin', 0, 0)), int(20, 4))]),
          node('If', ['flag'], ['t'], [attr.graph('then_branch', branch('Sin')),
            attr.graph('else_branch', branch('Cos'))]),
          node('Concat', ['t', 'nothing'], ['y'], [attr.int('axis', 0)])],
        weights: [...weights, outside('w', [8, 8], FLOAT, 'weights.bin', 0, 256),
          outside('roi', [0], FLOAT, 'weights.bin', 0, 0),
          tensor('scales', [2], FLOAT, bytesOf(Float32Array.of(1, 1)))],
        inputs: [value('x'), value('flag', BOOL, [])],
      }, { opsets: [opset('', 13)] });
    },
  },

  several_outputs: {
    why: 'nodes with several outputs that go to different stages',
    build() {
      const { nodes, weights } = layers('x', 'h', 2);
      const low = layers('low8', 'u', 2);
      const high = layers('high8', 'v', 2);
      return model({
        nodes: [...nodes,
          node('Split', ['h'], ['low', 'high'], [attr.int('axis', 1)]),
          node('Concat', ['low', 'low'], ['low8'], [attr.int('axis', 1)]), ...low.nodes,
          node('TopK', ['h', 'four'], ['top', 'at'], [attr.int('axis', 1)]),
          node('Concat', ['high', 'top'], ['high8'], [attr.int('axis', 1)]), ...high.nodes,
          node('Add', ['u', 'v'], ['y'])],
        weights: [...weights, ...low.weights, ...high.weights,
          tensor('four', [1], INT64, bytesOf(new BigInt64Array([4n])))],
        outputs: [value('y'), value('at', INT64, ['n', 4])],
      });
    },
  },

  dtypes: {
    why: 'tensors of many types cross',
    build() {
      const nodes = [];
      let last = 'x';
      for (const [name, type] of Object.entries({
        half: FLOAT16, back: FLOAT, text: STRING, number: DOUBLE, whole: INT64, byte: UINT8,
        bool: BOOL,
      })) {
        if (name === 'whole') {
          nodes.push(node('Mul', [last, 'fifty'], ['large']));
          last = 'large';
        }
        if (name === 'bool') {
          nodes.push(node('Greater', [last, 'bound'], ['y']));
          break;
        }
        nodes.push(node('Cast', [last], [name], [attr.int('to', type)]));
        last = name;
      }
      return model({
        nodes,
        inputs: [value('x')],
        outputs: [value('y', BOOL), value('text', STRING), value('half', FLOAT16),
          value('byte', UINT8)],
        weights: [scalar('fifty', DOUBLE, new Float64Array([50])),
          scalar('bound', UINT8, new Uint8Array([20]))],
      });
    },
  },

  scalars: {
    why: 'tensors without dimensions cross',
    build() {
      const a = layers('x', 'h', 3);
      const b = layers('g', 'y', 3);
      return model({
        nodes: [...a.nodes, node('ReduceMax', ['h'], ['s'], [attr.int('keepdims', 0)]),
          node('Neg', ['s'], ['t']), node('Sub', ['h', 't'], ['g']), ...b.nodes],
        weights: [...a.weights, ...b.weights],
        outputs: [value('y'), value('s', FLOAT, [])],
      });
    },
  },

  quantized: {
    why: 'QuantizeLinear and DequantizeLinear around each MatMul',
    build() {
      const nodes = [];
      const weights = [scalar('scale', FLOAT, new Float32Array([0.02])),
        scalar('zero', INT8, new Int8Array([3]))];
      let last = 'x';
      for (let i = 0; i < 4; i++) {
        weights.push(tensor(`w${i}`, [8, 8], INT8, weightData(`w${i}`, 4)));
        nodes.push(
          node('QuantizeLinear', [last, 'scale', 'zero'], [`q${i}`]),
          node('DequantizeLinear', [`q${i}`, 'scale', 'zero'], [`d${i}`]),
          node('DequantizeLinear', [`w${i}`, 'scale', 'zero'], [`f${i}`]),
          node('MatMul', [`d${i}`, `f${i}`], [`m${i}`]),
          node('Tanh', [`m${i}`], [i === 3 ? 'y' : `t${i}`]));
        last = `t${i}`;
      }
      return model({ nodes, weights });
    },
  },

  contrib: {
    why: 'operators of another domain, which only one runtime knows',
    build() {
      const { nodes, weights } = layers('x', 'h', 3);
      const ms = { domain: 'com.microsoft' };
      return model({
        nodes: [...nodes, node('Gelu', ['h'], ['g'], [], ms),
          node('FusedMatMul', ['g', 'h.w0'], ['f'], [], ms),
          node('Gelu', ['f'], ['e'], [], ms), node('MatMul', ['e', 'h.w1'], ['y'])],
        weights,
      }, { opsets: [opset('', 17), opset('com.microsoft', 1)] });
    },
  },

  dead: {
    why: 'nodes and weights that reach no output',
    build() {
      const live = layers('x', 'y', 5);
      const dead = layers('y.t1', 'nowhere', 3);
      return model({
        nodes: [...live.nodes, ...dead.nodes],
        weights: [...live.weights, ...dead.weights, weight('unused')],
      });
    },
  },

  sequence: {
    why: 'a value that is no tensor',
    build() {
      const a = layers('x', 'h', 3);
      const b = layers('c', 'y', 3);
      return model({
        nodes: [...a.nodes, node('SplitToSequence', ['h'], ['seq'], [attr.int('axis', 1)]),
          node('ConcatFromSequence', ['seq'], ['c'], [attr.int('axis', 1)]), ...b.nodes],
        weights: [...a.weights, ...b.weights],
      });
    },
  },

  shared_constants: {
    why: 'Constant nodes first, used everywhere; a weight used by all; an Identity of a weight',
    build() {
      const constant = (name) => node('Constant', [], [name],
        [all(block(1, 'value'), block(5, tensor('', [8, 8], FLOAT, weightData(name))),
          int(20, 4))]);
      const nodes = [constant('k0'), constant('k1'), node('Identity', ['w'], ['same'])];
      let last = 'x';
      for (let i = 0; i < 6; i++) {
        nodes.push(node('MatMul', [last, ['k0', 'w', 'same', 'k1'][i % 4]], [`m${i}`]),
          node('Tanh', [`m${i}`], [i === 5 ? 'y' : `t${i}`]));
        last = `t${i}`;
      }
      return model({ nodes, weights: [weight('w')] });
    },
  },

  extras: {
    why: 'doc strings, metadata, annotations and fields from the future',
    build() {
      const { nodes, weights } = layers('x', 'y', 5);
      const pair = (key, text) => all(block(1, key), block(2, text));
      const future = block(4000, 'from the future');
      nodes.push(node('Identity', ['y'], ['z'], [], {
        extra: [block(6, 'a doc string'), block(9, pair('origin', 'layer 6')), future],
      }));
      return model({
        nodes, weights,
        outputs: [value('y'), all(value('z'), block(3, 'what it is'))],
        extra: [block(10, 'the graph'), block(13, value('y.t0')),
          block(14, all(block(1, 'y'), block(2, pair('SCALE_TENSOR', 'y.w0')))), future],
      }, {
        extra: [block(3, '1.2'), block(4, 'org.example'), int(5, 7), block(6, 'the model'),
          block(14, pair('author', 'nobody')), block(14, pair('note', 'kept')), future],
      });
    },
  },

  unseeded: {
    why: 'numbers that are others in each run: a comparison must see that',
    unrunnable: 'each run draws other numbers',
    build() {
      const { nodes, weights } = layers('x', 'h', 4);
      nodes.push(node('RandomNormalLike', ['h'], ['r']), node('Add', ['h', 'r'], ['y']));
      return model({ nodes, weights });
    },
  },

  tied: {
    why: 'the first and the last layer share a weight',
    build() {
      const { nodes, weights } = layers('x', 'h', 5);
      return model({ nodes: [...nodes, node('MatMul', ['h', 'h.w0'], ['y'])], weights });
    },
  },

  tied_auto: {
    why: 'an embedding is the output layer too: cut apart, both stages hold it, as no slower cut does not',
    options: ['--tied-weights', 'auto'],
    runs: [tokens],
    held: { emb: 2 },
    build: () => language(4),
  },

  tied_duplicate: {
    why: 'an embedding is the output layer too, each stage has its own',
    options: ['--tied-weights', 'duplicate'],
    pins: ['n_e=0', 'n_logits=1'],
    runs: [tokens],
    stages: [2],
    held: { emb: 2 },
    build: () => language(4, 3),
  },

  tied_together: {
    why: 'an embedding and the output layer share a stage, on request',
    options: ['--tied-weights', 'together'],
    runs: [tokens],
    held: { emb: 1 },
    build: () => language(2, 4),
  },

  tied_transposed: {
    why: 'a tied weight is used through a function of constants',
    options: ['--tied-weights', 'together'],
    runs: [tokens],
    held: { emb: 1 },
    build: () => language(2, 4, true),
  },

  tied_for_nothing: {
    why: 'where a cut that keeps tied weights together is as good, it is taken unasked',
    runs: [tokens],
    held: { emb: 1 },
    build: () => language(0, 4),
  },

  tied_memory: {
    why: 'no second device has the memory for a tied weight',
    options: ['--devices', 'FILES/small.json'],
    runs: [tokens],
    held: { emb: 1 },
    files: () => ({ 'small.json': devicesWith([10000, 1900, 1900]) }),
    build: () => language(2, 4),
  },

  tied_too_large: {
    why: 'no device has the memory for a tied weight',
    options: ['--devices', 'FILES/small.json'],
    max_stages: 1,
    says: /memory/,
    runs: [tokens],
    files: () => ({ 'small.json': devicesWith([1900, 1900, 1900]) }),
    build: () => language(2, 4),
  },

  tied_impossible: {
    why: 'all but the ends use the tied weight: with its users on one stage nothing is left to cut',
    options: ['--tied-weights', 'together'],
    max_stages: 1,
    runs: [tokens],
    says: /weight "emb" .*n_e and n_logits .*--tied-weights duplicate/,
    build: () => language(4),
  },

  empty: {
    why: 'tensors without elements cross',
    build() {
      const a = layers('x', 'h', 3);
      const b = layers('g', 'y', 3);
      const one = (name, n) => tensor(name, [1], INT64, bytesOf(new BigInt64Array([BigInt(n)])));
      return model({
        nodes: [...a.nodes, node('Slice', ['h', 'none', 'none', 'columns'], ['nothing']),
          node('Tanh', ['nothing'], ['still']), node('Concat', ['h', 'still'], ['g'],
            [attr.int('axis', 1)]), ...b.nodes],
        weights: [...a.weights, ...b.weights, one('none', 0), one('columns', 1)],
        outputs: [value('y'), value('still', FLOAT, ['n', 0])],
      });
    },
  },

  random: {
    why: 'random numbers are drawn once, not in each stage that reads them',
    never_copied: ['n_r'],
    build() {
      const { nodes, weights } = layers('s', 'h', 5);
      return model({
        nodes: [node('RandomUniformLike', ['x'], ['r'], [float('seed', 7)]),
          node('Add', ['x', 'r'], ['s']), ...nodes, node('Mul', ['h', 'r'], ['y'])],
        weights,
      });
    },
  },

  int8_wire: {
    why: 'a cut at a quantized tensor sends int8 and dequantizes it again where it is read',
    pins: ['n_a*=0', 'n_q=0', 'n_d=1', 'n_y*=1'],
    stages: [2],
    dtypes: ['int8'],
    build() {
      const a = layers('x', 'a', 2);
      const b = layers('d', 'y', 2);
      return model({
        nodes: [...a.nodes, node('QuantizeLinear', ['a', 'scale', 'zero'], ['q']),
          node('DequantizeLinear', ['q', 'scale', 'zero'], ['d']), ...b.nodes],
        weights: [...a.weights, ...b.weights, scalar('scale', FLOAT, new Float32Array([0.02])),
          scalar('zero', INT8, new Int8Array([3]))],
      });
    },
  },

  int4: {
    why: 'weights of int4',
    build() {
      const nodes = [];
      const weights = [scalar('scale', FLOAT, new Float32Array([0.1]))];
      let last = 'x';
      for (let i = 0; i < 4; i++) {
        weights.push(tensor(`w${i}`, [8, 8], INT4, weightData(`w${i}`).subarray(0, 32)));
        nodes.push(node('DequantizeLinear', [`w${i}`, 'scale'], [`f${i}`]),
          node('MatMul', [last, `f${i}`], [`m${i}`]),
          node('Tanh', [`m${i}`], [i === 3 ? 'y' : `t${i}`]));
        last = `t${i}`;
      }
      return model({ nodes, weights }, { ir: 10, opsets: [opset('', 21)] });
    },
  },

  narrow_floats: {
    why: 'bfloat16 and float8 tensors',
    unrunnable: 'the Node binding cannot pass such tensors from stage to stage',
    build() {
      const nodes = [];
      let last = 'x';
      for (const [name, type] of Object.entries({
        b: BFLOAT16, f: FLOAT, e4: FLOAT8E4M3FN, g: FLOAT, e5: FLOAT8E5M2, y: FLOAT,
      })) {
        nodes.push(node('Cast', [last], [name], [attr.int('to', type)]));
        last = name;
      }
      return model({ nodes }, { ir: 9, opsets: [opset('', 19)] });
    },
  },

  sparse: {
    why: 'a sparse initializer',
    build() {
      const { nodes, weights } = layers('x', 'h', 5);
      const few = all(block(1, tensor('sparse', [3], FLOAT,
        bytesOf(new Float32Array([0.5, -1, 2])))), block(2, tensor('', [3], INT64,
        bytesOf(new BigInt64Array([3n, 20n, 61n])))), int(3, 8), int(3, 8));
      return model({
        nodes: [...nodes, node('MatMul', ['h', 'sparse'], ['y'])], weights,
        extra: [block(15, few)],
      });
    },
  },

  body_function: {
    why: 'a function that only a body calls, and one that this one calls',
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8] }, values: { flag: [flag] } })),
    build() {
      const local = { domain: 'local' };
      const called = (name, body) => all(block(1, name), block(4, 'X'), block(5, 'Y'),
        blocks(7, body), blocks(9, [opset('', 17), opset('local', 1)]), block(10, 'local'));
      const before = layers('x', 'h', 3);
      const after = layers('i', 'y', 3);
      const branch = (op, name) => graph({
        nodes: [node(op, ['h'], [name], [], op === 'Outer' ? local : {})], inputs: [],
        outputs: [value(name)],
      });
      return model({
        nodes: [...before.nodes, node('If', ['flag'], ['i'],
          [attr.graph('then_branch', branch('Outer', 'o')),
            attr.graph('else_branch', branch('Neg', 'p'))]), ...after.nodes],
        weights: [...before.weights, ...after.weights],
        inputs: [value('x'), value('flag', BOOL, [])],
      }, {
        opsets: [opset('', 17), opset('local', 1)],
        functions: [called('Outer', [node('Inner', ['X'], ['Y'], [], local)]),
          called('Inner', [node('Sin', ['X'], ['Y'])])],
      });
    },
  },

  overload: {
    why: 'two functions of one name, told apart by their overload',
    build() {
      const called = (overload, op) => all(block(1, 'F'), block(4, 'X'), block(5, 'Y'),
        block(7, node(op, ['X'], ['Y'])), block(9, opset('', 17)), block(10, 'local'),
        block(13, overload));
      const call = (from, to, overload) =>
        node('F', [from], [to], [], { domain: 'local', extra: [block(8, overload)] });
      const { nodes, weights } = layers('c', 'd', 2);
      return model({
        nodes: [call('x', 'a', 'one'), call('a', 'b', 'two'), call('b', 'c', 'one'), ...nodes,
          call('d', 'y', 'two')],
        weights,
      }, {
        ir: 10, opsets: [opset('', 17), opset('local', 1)],
        functions: [called('one', 'Sin'), called('two', 'Tanh')],
      });
    },
  },

  training: {
    why: 'training_info',
    build() {
      const step = graph({ nodes: [node('Neg', ['g'], ['h'])], inputs: [value('g')],
        outputs: [value('h')] });
      const binding = all(block(1, 'y.w0'), block(2, 'h'));
      return model(layers('x', 'y', 6),
        { extra: [block(20, all(block(2, step), block(4, binding)))] });
    },
  },

  optional_value: {
    why: 'a value of an optional type',
    build() {
      const a = layers('x', 'h', 3);
      const b = layers('g', 'y', 3);
      return model({
        nodes: [...a.nodes, node('Optional', ['h'], ['o']),
          node('OptionalGetElement', ['o'], ['g']), ...b.nodes],
        weights: [...a.weights, ...b.weights],
      });
    },
  },

  maps: {
    why: 'maps: an input that two stages read, values between two operators, outputs',
    unrunnable: 'the Node binding has no maps, and no runtime the operators between',
    never_sent: ['m', 'made', 'z'],
    build() {
      const mapped = all(int(1, INT64), block(2, tensorType(FLOAT, [])));
      const map = block(5, mapped);
      const ml = { domain: 'ai.onnx.ml' };
      const own = { domain: 'org.example' };
      const a = layers('c', 'h', 3);
      const b = layers('r', 'g', 3);
      return model({
        nodes: [
          node('CastMap', ['m'], ['c'], [all(block(1, 'map_form'), block(4, 'SPARSE'), int(20, 3)),
            attr.int('max_map', 8)], ml),
          ...a.nodes, node('MakeMap', ['h'], ['made'], [], own),
          node('DictVectorizer', ['made'], ['r'], [attr.ints('int64_vocabulary',
            [0, 1, 2, 3, 4, 5, 6, 7])], ml), ...b.nodes,
          node('DictVectorizer', ['m'], ['d'], [attr.ints('int64_vocabulary',
            [0, 1, 2, 3, 4, 5, 6, 7])], ml),
          node('Add', ['g', 'd'], ['y']),
          node('ZipMap', ['y'], ['z'], [attr.ints('classlabels_int64s', [0, 1, 2, 3, 4, 5, 6, 7])],
            ml),
        ],
        weights: [...a.weights, ...b.weights],
        inputs: [all(block(1, 'm'), block(2, map))],
        outputs: [value('y'), all(block(1, 'z'), block(2, block(4, block(1, map))))],
        extra: [block(13, all(block(1, 'made'), block(2, map))), block(13, value('r', FLOAT, [1, 8]))],
      }, { opsets: [opset('', 17), opset('ai.onnx.ml', 1), opset('org.example', 1)] });
    },
  },

  only_maps: {
    why: 'every cut would send a map',
    max_stages: 1,
    unrunnable: 'no runtime has the operators',
    says: /"made" and 1 more .*never sent/,
    build() {
      const own = { domain: 'org.example' };
      const map = (name) => block(13, all(block(1, name), block(2, block(5, all(int(1, INT64),
        block(2, tensorType(FLOAT, [])))))));
      return model({
        nodes: [node('MakeMap', ['x'], ['made'], [], own), node('PassMap', ['made'], ['same'], [], own),
          node('DictVectorizer', ['same'], ['y'], [attr.ints('int64_vocabulary', [0, 1])],
            { domain: 'ai.onnx.ml' })],
        outputs: [value('y', FLOAT, [1, 2])], extra: [map('made'), map('same')],
      }, { opsets: [opset('', 17), opset('ai.onnx.ml', 1), opset('org.example', 1)] });
    },
  },

  only_sequences: {
    why: 'every cut would send a sequence',
    max_stages: 1,
    says: /"a" and 1 more/,
    build: () => model({
      nodes: [node('SequenceConstruct', ['x'], ['a']), node('SequenceInsert', ['a', 'x'], ['b']),
        node('ConcatFromSequence', ['b'], ['y'], [attr.int('axis', 1)])],
      outputs: [value('y', FLOAT, ['n', 16])],
    }),
  },

  one_if: {
    why: 'the whole model is one If',
    max_stages: 1,
    says: /one If node.* which one runs, --inline-if n_y=then or --inline-if n_y=else takes it$/m,
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    build: () => oneIf(),
  },

  one_if_hint: {
    why: 'the condition is a constant, so one option is named; an unnamed If is known by its output',
    max_stages: 1,
    says: /constant: --inline-if y=then takes it$/m,
    build: () => oneIf('always', ''),
  },

  few_nodes: {
    why: 'two nodes, of which one is an If with the work: it makes two stages, but hardly a pipeline',
    max_stages: 2,
    notes: /^note: 9\d % of the work is in If the 'if', .*--inline-if 'the '\\''if'\\''=else' takes it$/m,
    says: /the model has 2 nodes, and no cut .* or --inline-if 'the '\\''if'\\''=else' takes it$/m,
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [0] } }],
    build() {
      const { nodes, weights } = layers('x', 'p', 30);
      const branch = graph({ nodes, weights, inputs: [], outputs: [value('p')] });
      return model({
        nodes: [node('If', ['flag'], ['q'], [attr.graph('then_branch', branch),
          attr.graph('else_branch', branch)], { name: "the 'if'" }), node('Neg', ['q'], ['y'])],
        inputs: [value('x'), value('flag', BOOL, [])],
      });
    },
  },

  relay: {
    why: 'the first and the last device have no link: a tensor goes by way of the stages in between',
    pins: ['n_h*=0', 'n_a*=1', 'n_b*=2', 'n_y*=3'],
    options: ['--devices', 'FILES/chain.json'],
    stages: [4],
    hops: ['h 0-1', 'a 1-2', 'h 1-2', 'b 2-3', 'h 2-3'],
    files: () => ({ 'chain.json': devices([[0, 1], [1, 2], [2, 3]]) }),
    build: () => skipping('h', 'x'),
  },

  relay_once: {
    why: 'of two ways the one by a stage that reads the tensor is taken, and a link where there is one',
    pins: ['n_h*=0', 'n_a*=1', 'n_b*=2', 'n_y*=3'],
    options: ['--devices', 'FILES/mesh.json'],
    stages: [4],
    hops: ['h 0-2', 'a 1-2', 'b 2-3', 'h 2-3'],
    files: () => ({ 'mesh.json': devices([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]) }),
    build: () => skipping('x', 'h'),
  },

  relay_output: {
    why: 'an output of the model is passed on as well, and so is what a body takes',
    options: ['--devices', 'FILES/chain.json'],
    stages: [2, 3],
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8] }, values: { flag: [flag] } })),
    pins: ['n_h*=0'],
    files: () => ({ 'chain.json': devices([[0, 1], [1, 2], [2, 3]]) }),
    build() {
      const before = layers('x', 'h', 2);
      const after = layers('h', 'g', 5);
      const branch = (op, name) => graph({
        nodes: [node(op, ['g', 'h'], [name])], inputs: [], outputs: [value(name)],
      });
      return model({
        nodes: [...before.nodes, ...after.nodes, node('If', ['flag'], ['y'],
          [attr.graph('then_branch', branch('Add', 'p')),
            attr.graph('else_branch', branch('Sub', 'q'))])],
        weights: [...before.weights, ...after.weights],
        inputs: [value('x'), value('flag', BOOL, [])], outputs: [value('y'), value('h')],
      });
    },
  },

  unlinked: {
    why: 'no way of links leads to the last device',
    options: ['--devices', 'FILES/apart.json'],
    max_stages: 1,
    says: /device "d0" \(stage 0\) to "d1"/,
    files: () => ({ 'apart.json': devices([[2, 3]]) }),
    build: () => model(layers('x', 'y', 6)),
  },

  one_if_then: {
    why: 'the whole model is one If, and its branch is known: sent data, initializers and all',
    options: ['--inline-if', 'n_y=then'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    inlined: [['n_y', 'then', 'flag', true]],
    build: () => oneIf(),
  },

  one_if_else: {
    why: 'the other branch, by the name of the output',
    options: ['--inline-if', 'y=else'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [0] } }],
    inlined: [['y', 'else', 'flag', true]],
    build: () => oneIf(),
  },

  one_if_certain: {
    why: 'the condition is a constant: the stages are the model whatever comes in',
    options: ['--inline-if', 'n_y=then'],
    inlined: [['n_y', 'then', 'always', false]],
    build: () => oneIf('always'),
  },

  one_if_never: {
    why: 'a branch that never runs is not inlined',
    options: ['--inline-if', 'n_y=else'],
    max_stages: 1,
    status: 2,
    says: /"always" is always true/,
    build: () => oneIf('always'),
  },

  no_such_if: {
    why: 'an If that is not there cannot be inlined',
    options: ['--inline-if', 'n_z=else'],
    max_stages: 1,
    status: 2,
    says: /no If of the main graph has that name/,
    build: () => oneIf(),
  },

  inlined_clash: {
    why: 'a name of the branch is used outside as well: inlined, one would be taken for the other',
    options: ['--inline-if', 'n_i=then'],
    max_stages: 1,
    status: 5,
    unrunnable: 'ONNX Runtime takes no name for another in a body',
    says: /"h.t0" of its then_branch is the name of another value/,
    build() {
      const before = layers('x', 'h', 3);
      const branch = graph({
        nodes: [node('Tanh', ['h'], ['h.t0']), node('Neg', ['h.t0'], ['o'])],
        inputs: [], outputs: [value('o')],
      });
      return model({
        nodes: [...before.nodes, node('If', ['flag'], ['i'],
          [attr.graph('then_branch', branch), attr.graph('else_branch', branch)]),
        node('Tanh', ['i'], ['y'])],
        weights: before.weights, inputs: [value('x'), value('flag', BOOL, [])],
      });
    },
  },

  merged_then: {
    why: 'outputs of a branch have the names of the outputs of the If, as optimum merges decoders: a '
      + 'value that is read outside, one with a name of its own, a weight; k is declared thrice',
    options: ['--inline-if', 'merged::if=then'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    inlined: [['merged::if', 'then', 'flag', true]],
    build: () => merged(),
  },

  merged_else: {
    why: 'the same, where the other branch runs; it has no output of its own name',
    options: ['--inline-if', 'y=else'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [0] } }],
    inlined: [['y', 'else', 'flag', true]],
    build: () => merged(),
  },

  merged_inside: {
    why: 'an If in a branch gives the outputs of both under their names',
    options: ['--inline-if', 'outer_if=then', '--inline-if', 'inner_if=then'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    inlined: [['outer_if', 'then', 'flag', true], ['inner_if', 'then', 'flag', true]],
    build() {
      const { nodes, weights } = layers('x', 'y', 3);
      const inner = graph({ nodes, weights, inputs: [] });
      const outer = graph({
        nodes: [node('If', ['flag'], ['y'], [attr.graph('then_branch', inner),
          attr.graph('else_branch', inner)], { name: 'inner_if' })],
        inputs: [],
      });
      return model({
        nodes: [node('If', ['flag'], ['y'], [attr.graph('then_branch', outer),
          attr.graph('else_branch', outer)], { name: 'outer_if' })],
        inputs: [value('x'), value('flag', BOOL, [])],
      });
    },
  },

  merged_twice: {
    why: 'one value of the branch is two outputs, of which one has its name',
    options: ['--inline-if', 'merged::if=then'],
    unrunnable: 'ONNX Runtime crashes where a branch gives one value twice',
    build: () => merged(['y', 'k', 'k', 'w']),
  },

  merged_crossed: {
    why: 'outputs of a branch have the names of outputs of the If, but of other places',
    options: ['--inline-if', 'merged::if=then'],
    max_stages: 1,
    status: 5,
    says: /"(y|k)" of its then_branch is the name of another value/,
    build: () => merged(['k', 'y', 'k', 'w']),
  },

  inlined_nested: {
    why: 'an If in a branch is inlined after it, large weights and captured outer values come along, '
      + 'an output is read by nobody',
    options: ['--inline-if', 'outer_if=then', '--inline-if', 'inner_if=else'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1], turn: [0] } }],
    inlined: [['outer_if', 'then', 'flag', true], ['inner_if', 'else', 'turn', true]],
    build() {
      const before = layers('x', 'h', 2);
      const after = layers('s', 'y', 2);
      const large = layers('h', 'p', 2);
      const wide = tensor('wide', [8, 64], FLOAT,
        all(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'k'].map((each) => weightData(each))));
      const narrow = tensor('narrow', [64, 8], FLOAT,
        all(['l', 'm', 'n', 'o', 'p', 'q', 'r', 's'].map((each) => weightData(each))));
      const inner = (op, name) => graph({
        nodes: [node('MatMul', ['p', `${name}.w`], [`${name}.m`]), node(op, [`${name}.m`], [name])],
        weights: [weight(`${name}.w`)], inputs: [], outputs: [value(name)],
      });
      const yes = graph({
        nodes: [...large.nodes,
          node('MatMul', ['p', 'wide'], ['u']), node('MatMul', ['u', 'narrow'], ['v']),
          node('If', ['turn'], ['q'], [attr.graph('then_branch', inner('Sin', 'q1')),
            attr.graph('else_branch', inner('Cos', 'q2'))], { name: 'inner_if' }),
          node('Add', ['q', 'v'], ['r'])],
        weights: [...large.weights, wide, narrow], inputs: [],
        outputs: [value('r'), value('p'), value('v')],
        extra: [block(13, value('u', FLOAT, ['n', 64]))],
      });
      const no = graph({
        nodes: [node('Neg', ['h'], ['no']), node('Sin', ['h'], ['na']), node('Cos', ['h'], ['nb'])],
        inputs: [], outputs: [value('no'), value('na'), value('nb')],
      });
      return model({
        nodes: [...before.nodes, node('If', ['flag'], ['i', 'j', 'k'],
          [attr.graph('then_branch', yes), attr.graph('else_branch', no)], { name: 'outer_if' }),
        node('Add', ['i', 'j'], ['s']), ...after.nodes],
        weights: [...before.weights, ...after.weights],
        inputs: [value('x'), value('flag', BOOL, []), value('turn', BOOL, [])],
      });
    },
  },

  narrow_kernel: {
    why: 'SAME under a kernel narrower than the stride: what crosses is shorter than input times stride',
    stages: [2],
    pins: ['n_a=0', 'n_b=0', 'n_y=1'],
    runs: [{ shapes: { x: [1, 8, 16] } }],
    build: () => model({
      nodes: [node('Tanh', ['x'], ['a']),
        node('ConvTranspose', ['a', 'w'], ['b'], [attr.ints('strides', [3]),
          all(block(1, 'auto_pad'), block(4, 'SAME_UPPER'), int(20, 3))]),
        node('Sin', ['b'], ['y'])],
      weights: [tensor('w', [8, 8, 1], FLOAT, weightData('w'))],
      inputs: [value('x', FLOAT, [1, 8, 16])], outputs: [value('y', FLOAT, [1, 8, 46])],
    }),
  },

  slice_backwards: {
    why: 'a slice backwards that starts before the beginning takes the first element all the same',
    stages: [2],
    pins: ['n_a=0', 'n_b=0', 'n_y=1'],
    runs: [{ shapes: { x: [4, 8] } }],
    build: () => model({
      nodes: [node('Tanh', ['x'], ['a']), node('Slice', ['a', 'from', 'to', 'on', 'by'], ['b']),
        node('Sin', ['b'], ['y'])],
      weights: [['from', -100], ['to', -1000], ['on', 1], ['by', -2]]
        .map(([name, n]) => tensor(name, [1], INT64, bytesOf(BigInt64Array.of(BigInt(n))))),
      inputs: [value('x', FLOAT, [4, 8])], outputs: [value('y', FLOAT, [4, 1])],
    }),
  },

  declared: {
    why: 'what the model declares of tensors that cross stays: symbols for what follows from others and for '
      + 'what a run tells, denotations; a number says more, and one that a run may contradict is left out',
    stages: [2],
    pins: ['n_[a-g]=0', 'n_y*=1'],
    crossing: {
      a: ['twice', 8], b: [null, 8], c: ['rows', 8], d: ['n', 8], e: [null, 8], f: ['n', 8],
      g: [2, 'found'],
    },
    runs: [3, 4].map((n) => ({ shapes: { x: [n, 8] } })),
    build() {
      const twice = (name) => node('Concat', ['x', 'x'], [name], [attr.int('axis', 0)]);
      const names = [...'abcdefg'];
      return model({
        nodes: [twice('a'), node('Tanh', ['a'], ['b']), node('Tanh', ['x'], ['c']),
          node('Sin', ['x'], ['d']), twice('e'), node('Cos', ['x'], ['f']), node('NonZero', ['x'], ['g']),
          ...names.map((name) => node('Neg', [name], [`y.${name}`]))],
        outputs: names.map((name) => value(`y.${name}`, name === 'g' ? INT64 : FLOAT, [null, null])),
        extra: [
          value('a', FLOAT, [['twice', 'DATA_BATCH'], [8, 'DATA_FEATURE']], 'TENSOR'),
          value('b', FLOAT, [null, 8]), value('c', FLOAT, ['rows', 8]), value('d', FLOAT, [5, 8]),
          value('e', FLOAT, [7, [8, 'DATA_FEATURE']]), value('f', FLOAT, ['n', 'eight']),
          value('g', INT64, [2, 'found']),
        ].map((info) => block(13, info)),
      });
    },
  },

  through: {
    why: 'an output that is an input, and one that is a weight',
    build() {
      const { nodes, weights } = layers('x', 'y', 6);
      return model({
        nodes, weights, outputs: [value('y'), value('x'), value('y.w3', FLOAT, [8, 8])],
      });
    },
  },

  long_node: {
    why: 'a node that computes for minutes where n is some thousands, and cannot be stopped meanwhile',
    max_stages: 2,
    runs: [{ shapes: { x: [3, 3] } }],
    build: () => model({
      nodes: [node('Neg', ['x'], ['h']), node('MatMul', ['h', 'h'], ['y'])],
      inputs: [value('x', INT64, ['n', 'n'])],
      outputs: [value('y', INT64, ['n', 'n'])],
    }),
  },
  one_edge: {
    why: 'two cheap operators, and between them one tensor that is as large as n says',
    max_stages: 2,
    build: () => model({
      nodes: [node('Neg', ['x'], ['h']),
        node('ReduceMean', ['h'], ['y'], [attr.ints('axes', [0]), attr.int('keepdims', 0)])],
      outputs: [value('y', FLOAT, [8])],
    }),
  },
};

for (const weights of ['inline', 'external']) {
  fixtures[`external_empty_${weights}`] = {
    ...fixtures.external_empty, why: `the same with --weights ${weights}`, options: ['--weights', weights],
  };
}

// One for each IR version that carries what the others do; 3 has a fixture of its own above.
for (const ir of [4, 5, 6, 7, 9, 10, 11, 12, 13, 14]) {
  fixtures[`ir${ir}`] = {
    why: `IR ${ir}`,
    unrunnable: ir > 13 ? 'ONNX Runtime knows IR versions up to 13' : undefined,
    build: () => model(layers('x', 'y', 6), { ir, opsets: [opset('', ir < 7 ? 11 : 17)] }),
  };
}

for (const fixture of Object.values(fixtures)) fixture.runs ??= [x];

const real = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));

// A model of ../models/models.json, or a variant of one (the same file, split with other options; with
// `run`, for one of its runs alone), with the `base` name of its file in the model cache.
export function realModel(name) {
  const variant = real.variants[name];
  if (!variant) return { ...real.models[name], base: name };
  const whole = { ...real.models[variant.of], ...variant, base: variant.of };
  return variant.run === undefined ? whole : { ...whole, runs: [whole.runs[variant.run]] };
}

// What the tool is told to split a model (one of these, or of ../models/models.json) that lies at
// `file`: sizes, pins, options in which FILES/ stands for the model's directory.
export const splitOptions = ({ dims = {}, pins = [], options = [] }, file) => [
  ...Object.entries(dims).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]),
  ...pins.flatMap((pin) => ['--pin', pin]),
  ...options.map((option) => option.replace('FILES/', `${dirname(file)}/`)),
];

export function writeFixture(name, file) {
  const { build, files } = fixtures[name];
  writeFileSync(file, build());
  for (const [beside, bytes] of Object.entries(files?.() ?? {})) {
    writeFileSync(join(dirname(file), beside), bytes);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, file] = process.argv.slice(2);
  if (!fixtures[name] || !file) {
    console.error(`usage: node fixtures.mjs NAME FILE; names: ${Object.keys(fixtures).join(' ')}`);
    process.exit(2);
  }
  writeFixture(name, file);
}
