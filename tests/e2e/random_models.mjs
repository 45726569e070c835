// Models at random, as text (docs/text-form.md): every value has a shape and a type that are known while it is
// drawn, so that most of what comes out runs. A seed decides all of it.

// mulberry32, with what is drawn most.
export class Draw {
  #state;

  constructor(seed) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1) | 0;
  }

  real() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  below(n) {
    return Math.floor(this.real() * n);
  }

  from(least, most) {
    return least + this.below(most - least + 1);
  }

  chance(part) {
    return this.real() < part;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  shuffled(list) {
    const out = [...list];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  }
}

const quoted = (name) => `"${name.replace(/[\\"]/g, '\\$&')}"`;
const count = (shape) => shape.reduce((a, b) => a * b, 1);
const same = (a, b) => a.length === b.length && a.every((n, i) => n === b[i]);
const ROWS = 3; // what the symbol n is when a model runs
const FLOATS = ['Tanh', 'Relu', 'Sigmoid', 'Neg', 'Abs', 'Softsign', 'Identity', 'Elu', 'HardSigmoid', 'Sin', 'Erf'];
const PAIRS = ['Add', 'Sub', 'Mul', 'Max', 'Min'];

class Model {
  constructor(seed, size) {
    this.draw = new Draw(seed);
    this.size = size;
    this.weights = []; // {name, type, shape, text}
    this.functions = []; // {name, text, n_inputs, n_outputs, alpha}
    this.names = new Set();
    this.n_bodies = 0;
    this.style = this.draw.pick(['plain', 'plain', 'odd', 'clashing']);
    this.unnamed = this.draw.chance(0.15);
    this.opset = this.draw.pick([17, 17, 21]);
    this.twice = this.draw.chance(0.05); // two nodes with one name: ONNX allows it, ONNX Runtime does not
    this.repeat_in_bodies = this.draw.chance(0.5); // bodies have names of other bodies
  }

  // A name that no value of the model has. Those of the style `clashing` are names that a split makes up.
  fresh(prefix) {
    const n = this.names.size;
    const plain = `${prefix}${n}`;
    const odd = () => this.draw.pick([`${plain}:0`, `/${prefix}/${n}/out`, `${prefix} ${n}`, `\u00e9${plain}`, `${plain}"`, `${n}`, `${plain}\\`]);
    const clash = () => {
      const other = this.draw.pick([...this.names, plain]);
      return `${other}.${this.draw.pick(['send', 'recv', 'stage'])}${this.draw.below(4)}`;
    };
    let name = plain;
    if (this.style === 'odd' && this.draw.chance(0.5)) name = odd();
    if (this.style === 'clashing' && this.draw.chance(0.3)) name = clash();
    if (this.names.has(name)) name = plain;
    while (this.names.has(name)) name += '_';
    this.names.add(name);
    return name;
  }

  weight(type, shape, values) {
    const { draw } = this;
    const shared = this.weights.filter((each) => each.type === type && same(each.shape, shape) && each.values === values);
    if (shared.length && draw.chance(values ? 0.7 : 0.3)) return draw.pick(shared);
    const name = this.fresh('w');
    const data = values === undefined ? `random(${draw.from(1, 99)})` : draw.chance(0.5) ? `raw {${values}}` : `{${values}}`;
    const made = { name, type, shape, values, text: `${type}${shape.length ? `[${shape}]` : ''} ${quoted(name)} = ${data}` };
    this.weights.push(made);
    return made;
  }
}

// What is drawn of one graph: the main one, or a body that sees what `outer` has.
class Graph {
  constructor(model, outer, prefix = 'v') {
    Object.assign(this, { model, outer, prefix });
    this.draw = model.draw;
    this.values = []; // {name, type, shape}
    this.nodes = []; // text
    this.depth = outer ? outer.depth + 1 : 0;
    this.local = new Map();
  }

  // Names of bodies are often those of other bodies.
  fresh() {
    if (!this.outer || !this.model.repeat_in_bodies) return this.model.fresh(this.prefix);
    const name = `b${this.depth}_${this.local.size}`;
    this.local.set(name, true);
    return name;
  }

  visible() {
    if (!this.outer) return this.values;
    const inner = this.values.length && this.draw.chance(0.7) ? this.values : [...this.values, ...this.outer.visible()];
    return inner.length ? inner : this.outer.visible();
  }

  some(test) {
    const list = this.visible();
    const fit = list.filter(test);
    if (!fit.length) return undefined;
    // Mostly what is new, so that models are deep; sometimes anything, so that tensors are read far away.
    return this.draw.chance(0.6) ? fit[Math.max(0, fit.length - 1 - this.draw.below(4))] : this.draw.pick(fit);
  }

  float(test = () => true) {
    return this.some((each) => each.type === 'float' && test(each));
  }

  node(op, inputs, results, attributes = '') {
    const { draw, model } = this;
    const made = results.map((each) => each && { ...each, name: each.name ?? this.fresh() });
    const out = made.map((each) => (each ? quoted(each.name) : '""')).join(', ');
    const of = inputs.map((each) => (each ? quoted(each.name) : '')).join(', ');
    let label = `[${quoted(`n_${this.depth ? `b${model.n_bodies}_` : ''}${this.nodes.length}_${op.replace(/.*\./, '')}`)}] `;
    if (model.unnamed && draw.chance(0.8)) label = '';
    else if (model.twice && draw.chance(0.2)) label = '["twice"] ';
    this.nodes.push(`${label}${out} = ${op} ${attributes ? `<${attributes}> ` : ''}(${of})`);
    const values = made.filter((each) => each);
    this.values.push(...values);
    return values[0];
  }

  constant(type, shape, values) {
    if (this.draw.chance(0.7) || values === undefined) return this.model.weight(type, shape, values);
    const dims = shape.length ? `[${shape}]` : '';
    return this.node('Constant', [], [{ type, shape }], `value = ${type}${dims} {${values}}`);
  }

  unary(x, op = this.draw.pick(FLOATS)) {
    return this.node(op, [x], [{ type: x.type, shape: x.shape }]);
  }

  body(give) {
    this.model.n_bodies++;
    const inner = new Graph(this.model, this);
    const ends = give(inner);
    return { inner, ends };
  }

  text(inputs, outputs) {
    const declared = (each) => `${typeOf(each, this.draw, this.depth)} ${quoted(each.name)}`;
    return `body${this.model.n_bodies} (${inputs.map(declared).join(', ')}) => (${outputs.map(declared).join(', ')}) {\n    ${
      this.nodes.join('\n    ')}\n  }`;
  }

  // A new value of this shape, whatever it is made from; its name is of this graph.
  end(shape, type = 'float') {
    const { draw } = this;
    if (type === 'float') {
      const fit = this.float((each) => same(each.shape, shape));
      if (fit) return this.unary(fit);
    }
    const flat = this.constant(type, shape, undefined);
    return this.node('Identity', [flat], [{ type, shape }]);
  }
}

// Sizes of rows are a symbol where they may be one, and left out now and then.
function typeOf({ type, shape, seq, open }, draw, depth = 0) {
  if (seq) return `seq(${type}${shape ? '[]' : ''})`;
  if (open) return `${type}[]`;
  if (!shape.length) return type;
  if (depth && draw.chance(0.3)) return `${type}[]`;
  return `${type}[${shape.map((n) => (n === ROWS && draw.chance(0.7) ? 'n' : n))}]`;
}

const axisOf = (draw, shape) => draw.below(shape.length);

// Each adds nodes to a graph, or does nothing where nothing fits.
const steps = {
  unary: (g) => {
    const x = g.float();
    if (x) g.unary(x);
  },
  chain: (g) => {
    let x = g.float();
    for (let i = g.draw.from(2, 4); x && i > 0; i--) x = g.unary(x);
  },
  pair: (g) => {
    const x = g.float();
    const y = x && g.float((each) => same(each.shape, x.shape));
    if (y) g.node(g.draw.pick(PAIRS), g.draw.shuffled([x, y]), [{ type: 'float', shape: x.shape }]);
  },
  scale: (g) => {
    const x = g.float((each) => each.shape.length > 0);
    if (!x) return;
    const shape = x.shape.slice(g.draw.below(x.shape.length + 1)).map((n) => (g.draw.chance(0.1) ? 1 : n));
    const w = g.model.weight('float', shape, shape.length ? undefined : '0.75');
    g.node(g.draw.pick(PAIRS), g.draw.shuffled([x, w]), [{ type: 'float', shape: x.shape }]);
  },
  product: (g) => {
    const x = g.float((each) => each.shape.length >= 2 && each.shape.at(-1) > 1);
    if (!x) return;
    const m = g.draw.pick([4, 8, 8, 8, 16]);
    const w = g.model.weight('float', [x.shape.at(-1), m]);
    g.node('MatMul', [x, w], [{ type: 'float', shape: [...x.shape.slice(0, -1), m] }]);
  },
  gemm: (g) => {
    const x = g.float((each) => each.shape.length === 2);
    if (!x) return;
    const turned = g.draw.chance(0.4);
    const m = g.draw.pick([4, 8, 8, 16]);
    const w = g.model.weight('float', turned ? [m, x.shape[1]] : [x.shape[1], m]);
    const bias = g.draw.chance(0.6) ? [g.model.weight('float', [m])] : [];
    g.node('Gemm', [x, w, ...bias], [{ type: 'float', shape: [x.shape[0], m] }], turned ? 'transB = 1, alpha = 0.5' : '');
  },
  flatten: (g) => {
    const x = g.float((each) => each.shape.length >= 2);
    if (!x) return;
    const shape = g.constant('int64', [2], '0, -1');
    g.node('Reshape', [x, shape], [{ type: 'float', shape: [x.shape[0], count(x.shape.slice(1))] }]);
  },
  fold: (g) => {
    const x = g.float((each) => each.shape.length === 2 && each.shape[1] % 4 === 0);
    if (!x) return;
    const c = x.shape[1] / 4;
    const shape = g.constant('int64', [4], '0, -1, 2, 2');
    g.node('Reshape', [x, shape], [{ type: 'float', shape: [x.shape[0], c, 2, 2] }]);
  },
  shaped: (g) => { // sizes that are computed, as exporters write them
    const x = g.float((each) => each.shape.length >= 1);
    const y = x && g.float((each) => count(each.shape) === count(x.shape));
    if (!y) return;
    const sizes = g.node('Shape', [y], [{ type: 'int64', shape: [y.shape.length] }]);
    g.node('Reshape', [x, sizes], [{ type: 'float', shape: y.shape }]);
  },
  filled: (g) => {
    const x = g.float((each) => each.shape.length >= 1);
    if (!x) return;
    const sizes = g.node('Shape', [x], [{ type: 'int64', shape: [x.shape.length] }]);
    const fill = g.node('ConstantOfShape', [sizes], [{ type: 'float', shape: x.shape }], 'value = float[1] {0.25}');
    g.node('Add', [fill, x], [{ type: 'float', shape: x.shape }]);
  },
  turn: (g) => {
    const x = g.float((each) => each.shape.length >= 2 && each.shape.length < 4);
    if (!x) return;
    const order = g.draw.shuffled(x.shape.map((_, i) => i));
    g.node('Transpose', [x], [{ type: 'float', shape: order.map((i) => x.shape[i]) }], `perm = [${order}]`);
  },
  join: (g) => {
    const x = g.float((each) => each.shape.length >= 1 && count(each.shape) < 200);
    const y = x && g.float((each) => same(each.shape, x.shape));
    if (!y) return;
    const axis = axisOf(g.draw, x.shape);
    g.node('Concat', [x, y], [{ type: 'float', shape: x.shape.map((n, i) => (i === axis ? 2 * n : n)) }], `axis = ${axis}`);
  },
  split: (g) => {
    const x = g.float((each) => each.shape.some((n) => n % 2 === 0));
    if (!x) return;
    const axis = g.draw.pick(x.shape.flatMap((n, i) => (n % 2 === 0 ? [i] : [])));
    const half = { type: 'float', shape: x.shape.map((n, i) => (i === axis ? n / 2 : n)) };
    const sizes = g.draw.chance(0.4) ? [g.constant('int64', [2], `${x.shape[axis] / 2}, ${x.shape[axis] / 2}`)] : [];
    const parts = g.model.opset >= 18 && !sizes.length ? ', num_outputs = 2' : '';
    g.node('Split', [x, ...sizes], [{ ...half }, { ...half }], `axis = ${axis}${parts}`);
  },
  slice: (g) => {
    const x = g.float((each) => each.shape.length >= 1 && each.shape.at(-1) >= 4);
    if (!x) return;
    const axis = x.shape.length - 1;
    const [from, to] = [g.constant('int64', [1], '1'), g.constant('int64', [1], '-1')];
    const axes = g.constant('int64', [1], `${axis}`);
    const strides = g.draw.chance(0.3) ? [g.constant('int64', [1], '1')] : [];
    g.node('Slice', [x, from, to, axes, ...strides],
      [{ type: 'float', shape: [...x.shape.slice(0, -1), x.shape[axis] - 2] }]);
  },
  gather: (g) => {
    const x = g.float((each) => each.shape.length >= 2);
    if (!x) return;
    const rows = g.constant('int64', [2], '1, 0');
    const axis = axisOf(g.draw, x.shape);
    if (x.shape[axis] < 2) return;
    g.node('Gather', [x, rows], [{ type: 'float', shape: x.shape.map((n, i) => (i === axis ? 2 : n)) }], `axis = ${axis}`);
  },
  softmax: (g) => {
    const x = g.float((each) => each.shape.length >= 1);
    if (x) g.node('Softmax', [x], [{ type: 'float', shape: x.shape }], 'axis = -1');
  },
  norm: (g) => {
    const x = g.float((each) => each.shape.length >= 2);
    if (!x) return;
    const width = x.shape.at(-1);
    const bias = g.draw.chance(0.5) ? [g.model.weight('float', [width])] : [];
    const left = { type: 'float', shape: [...x.shape.slice(0, -1), 1] };
    const more = g.draw.pick([[], [], [{ ...left }], [{ ...left }, { ...left }], [null, { ...left }]]);
    g.node('LayerNormalization', [x, g.model.weight('float', [width]), ...bias],
      [{ type: 'float', shape: x.shape }, ...more], 'axis = -1');
  },
  mean: (g) => {
    const x = g.float((each) => each.shape.length >= 2);
    if (!x) return;
    const axis = axisOf(g.draw, x.shape);
    const keep = g.draw.chance(0.5);
    const shape = keep ? x.shape.map((n, i) => (i === axis ? 1 : n)) : x.shape.filter((_, i) => i !== axis);
    const axes = g.model.opset >= 18 ? [g.constant('int64', [1], `${axis}`)] : [];
    g.node(g.draw.pick(['ReduceMean', 'ReduceMax']), [x, ...axes], [{ type: 'float', shape }],
      `${axes.length ? '' : `axes = [${axis}], `}keepdims = ${keep ? 1 : 0}`);
  },
  convolution: (g) => {
    const x = g.float((each) => each.shape.length === 4);
    if (!x) return;
    const m = g.draw.pick([1, 2, 4]);
    const wide = g.draw.chance(0.5);
    const k = wide ? 3 : 1;
    const bias = g.draw.chance(0.5) ? [g.model.weight('float', [m])] : [];
    const y = g.node('Conv', [x, g.model.weight('float', [m, x.shape[1], k, k]), ...bias],
      [{ type: 'float', shape: [x.shape[0], m, ...x.shape.slice(2)] }], wide ? 'pads = [1, 1, 1, 1]' : '');
    if (g.draw.chance(0.4)) {
      const of = () => g.model.weight('float', [m]);
      g.node('BatchNormalization', [y, of(), of(), of(), g.constant('float', [m], Array(m).fill('0.5').join(', '))],
        [{ type: 'float', shape: y.shape }]);
    }
  },
  pool: (g) => {
    const x = g.float((each) => each.shape.length === 4 && each.shape[2] >= 2 && each.shape[3] >= 2);
    if (!x) return;
    const shape = [...x.shape.slice(0, 2), x.shape[2] - 1, x.shape[3] - 1];
    g.node('MaxPool', [x], [{ type: 'float', shape }, ...(g.draw.chance(0.4) ? [{ type: 'int64', shape }] : [])],
      'kernel_shape = [2, 2]');
  },
  drop: (g) => {
    const x = g.float();
    if (!x) return;
    g.node('Dropout', [x], [{ type: 'float', shape: x.shape },
      ...g.draw.pick([[], [null], [{ type: 'bool', shape: x.shape }]])]);
  },
  clip: (g) => {
    const x = g.float();
    const most = x && g.constant('float', [], '0.5');
    if (most) g.node('Clip', [x, null, most], [{ type: 'float', shape: x.shape }]);
  },
  top: (g) => {
    const x = g.float((each) => each.shape.length >= 1 && each.shape.at(-1) >= 2);
    if (!x) return;
    const shape = [...x.shape.slice(0, -1), 2];
    const k = g.constant('int64', [1], '2');
    const [values, at] = [{ type: 'float', shape }, { type: 'int64', shape }];
    g.node('TopK', [x, k], g.draw.pick([[values, at], [values]]));
  },
  cast: (g) => {
    const x = g.some((each) => !each.seq && !each.open && ['float', 'double', 'int64', 'bool', 'int32', 'float16'].includes(each.type));
    if (!x) return;
    const [type, to] = g.draw.pick([['double', 11], ['float', 1], ['float', 1], ['int32', 6], ['float16', 10], ['int64', 7]]);
    g.node('Cast', [x], [{ type, shape: x.shape }], `to = ${to}`);
  },
  choose: (g) => {
    const x = g.float();
    const y = x && g.float((each) => same(each.shape, x.shape));
    if (!y) return;
    const less = g.node('Less', [x, y], [{ type: 'bool', shape: x.shape }]);
    g.node('Where', [less, y, x], [{ type: 'float', shape: x.shape }]);
  },
  found: (g) => { // sizes that only a run tells
    const x = g.float((each) => each.shape.length >= 1);
    if (!x) return;
    const at = g.node('NonZero', [g.unary(x, 'Relu')], [{ type: 'int64', open: true, shape: [] }]);
    const f = g.node('Cast', [at], [{ type: 'float', open: true, shape: [] }], 'to = 1');
    at.type = 'open';
    f.type = 'open';
    g.node('ReduceSum', [f], [{ type: 'float', shape: [] }], 'keepdims = 0');
  },
  rows: (g) => { // a sequence
    const x = g.float((each) => each.shape.length >= 1 && each.shape[0] >= 2 && each.shape[0] <= 8);
    if (!x) return;
    const list = g.node('SplitToSequence', [x], [{ type: 'float', seq: true, shape: null }], 'axis = 0, keepdims = 1');
    list.type = 'list';
    if (g.draw.chance(0.3)) {
      g.node('SequenceAt', [list, g.constant('int64', [], '1')], [{ type: 'float', shape: [1, ...x.shape.slice(1)] }]);
    }
    if (g.draw.chance(0.3)) g.node('SequenceLength', [list], [{ type: 'int64', shape: [] }]);
    if (g.draw.chance(0.7)) g.node('ConcatFromSequence', [list], [{ type: 'float', shape: x.shape }], 'axis = 0');
  },
  quantised: (g) => { // bytes cross, or integers, where a cut goes through
    const x = g.float((each) => each.shape.length >= 1);
    if (!x) return;
    const type = g.draw.pick(['int8', 'uint8']);
    const by = [g.model.weight('float', [], '0.0625'), ...(g.draw.chance(0.7) ? [g.model.weight(type, [], '3')] : [])];
    if (by.length === 1) by.push(g.model.weight(type, [], '0'));
    const q = g.node('QuantizeLinear', [x, ...by], [{ type, shape: x.shape }]);
    const moved = g.draw.chance(0.3) ? g.node('Identity', [q], [{ type, shape: x.shape }]) : q;
    if (x.shape.length === 2 && g.draw.chance(0.4)) {
      const w = g.model.weight('int8', [x.shape[1], 8]);
      const sum = g.node('MatMulInteger', [moved, w, by[1]], [{ type: 'int32', shape: [x.shape[0], 8] }]);
      const wide = g.node('Cast', [sum], [{ type: 'float', shape: sum.shape }], 'to = 1');
      g.node('Mul', [wide, by[0]], [{ type: 'float', shape: sum.shape }]);
    } else {
      g.node('DequantizeLinear', [moved, ...by], [{ type: 'float', shape: x.shape }]);
    }
  },
  dynamic: (g) => { // three results of one node, all of which one other reads
    const x = g.float((each) => each.shape.length >= 1);
    if (!x) return;
    const q = g.node('DynamicQuantizeLinear', [x],
      [{ type: 'uint8', shape: x.shape }, { type: 'float', shape: [] }, { type: 'uint8', shape: [] }]);
    const [scale, zero] = g.values.slice(-2);
    g.node('DequantizeLinear', [q, scale, zero], [{ type: 'float', shape: x.shape }]);
  },
  narrow: (g) => { // numbers of two bytes or eight, only moved: what computes with halves rounds otherwise at a cut
    const x = g.float((each) => each.shape.length >= 1);
    if (!x) return;
    const [type, to] = g.draw.pick([['float16', 10], ['bfloat16', 16], ['double', 11]]);
    let y = g.node('Cast', [x], [{ type, shape: x.shape }], `to = ${to}`);
    if (g.draw.chance(0.6)) y = g.node('Identity', [y], [{ type, shape: x.shape }]);
    if (type === 'double') y = g.node('Add', [y, y], [{ type, shape: x.shape }]);
    g.node('Cast', [y], [{ type: 'float', shape: x.shape }], 'to = 1');
  },
  microsoft: (g) => { // operators of ONNX Runtime
    const x = g.float((each) => each.shape.length >= 2 && each.shape.length <= 3);
    if (!x) return;
    const width = x.shape.at(-1);
    const w = () => g.model.weight('float', [width]);
    const made = { type: 'float', shape: x.shape };
    const kind = g.draw.below(5);
    if (kind === 0) g.node('com.microsoft.Gelu', [x], [made]);
    if (kind === 1) g.node('com.microsoft.BiasGelu', [x, w()], [made]);
    if (kind === 2) g.node('com.microsoft.QuickGelu', [x], [made], 'alpha = 1.5');
    if (kind === 3) {
      g.node('com.microsoft.FusedMatMul', [x, g.model.weight('float', [8, width])],
        [{ type: 'float', shape: [...x.shape.slice(0, -1), 8] }], 'transB = 1, alpha = 0.5');
    }
    const y = kind === 4 && g.float((each) => same(each.shape, x.shape));
    if (!y || x.shape.length !== 3) return;
    g.node('com.microsoft.SkipLayerNormalization', [x, y, w(), ...(g.draw.chance(0.5) ? [w()] : [])],
      [made, ...(g.draw.chance(0.5) ? [null, null, { ...made }] : [])]);
  },
  maybe: (g) => {
    const x = g.float();
    if (!x) return;
    const held = g.node('Optional', [x], [{ type: 'float', seq: true, shape: null }]);
    held.type = 'held';
    g.node('OptionalGetElement', [held], [{ type: 'float', shape: x.shape }]);
  },
  branch: (g) => {
    if (g.depth > 1) return;
    const x = g.float();
    if (!x) return;
    let flag = g.some((each) => each.type === 'bool' && each.shape.length === 0);
    if (!flag || g.draw.chance(0.5)) {
      const y = g.float();
      const sum = g.node('ReduceSum', [y], [{ type: 'float', shape: [] }], 'keepdims = 0');
      flag = g.node('Greater', [sum, g.constant('float', [], '0.1')], [{ type: 'bool', shape: [] }]);
    }
    const shapes = [x.shape, ...(g.draw.chance(0.4) ? [g.float().shape] : [])];
    const half = () => g.body((inner) => {
      grow(inner, g.draw.from(1, 4));
      return shapes.map((shape) => inner.end(shape));
    });
    const texts = [half(), half()].map(({ inner, ends }) => inner.text([], ends));
    const unread = shapes.length > 1 && g.draw.chance(0.2);
    g.node('If', [flag], shapes.map((shape, i) => (unread && i ? null : { type: 'float', shape })),
      `then_branch = ${texts[0]}, else_branch = ${texts[1]}`);
  },
  loop: (g) => {
    if (g.depth > 1) return;
    const x = g.float();
    if (!x) return;
    const trips = g.draw.from(1, 3);
    const gathers = g.draw.chance(0.4);
    const [i, go, state] = [{ type: 'int64', shape: [] }, { type: 'bool', shape: [] }, { type: 'float', shape: x.shape }];
    const { inner, ends } = g.body((b) => {
      for (const each of [i, go, state]) each.name = b.fresh();
      b.values.push(state);
      grow(b, g.draw.from(1, 4));
      const on = b.node('Identity', [go], [{ type: 'bool', shape: [] }]);
      const next = b.end(x.shape);
      return [on, next, ...(gathers ? [b.unary(b.float())] : [])];
    });
    const text = inner.text([i, go, state], ends);
    g.node('Loop', [g.constant('int64', [], `${trips}`), null, x],
      [{ type: 'float', shape: x.shape }, ...(gathers ? [{ type: 'float', shape: [trips, ...ends[2].shape] }] : [])],
      `body = ${text}`);
  },
  scan: (g) => {
    if (g.depth > 1) return;
    const x = g.float((each) => each.shape.length >= 2 && each.shape[0] <= 8);
    if (!x) return;
    const row = x.shape.slice(1);
    const [sum, each] = [{ type: 'float', shape: row }, { type: 'float', shape: row }];
    const { inner, ends } = g.body((b) => {
      for (const part of [sum, each]) part.name = b.fresh();
      b.values.push(sum, each);
      grow(b, g.draw.from(1, 3));
      return [b.node('Add', [sum, each], [{ type: 'float', shape: row }]), b.end(row)];
    });
    const text = inner.text([sum, each], ends);
    g.node('Scan', [g.model.weight('float', row), x], [{ type: 'float', shape: row }, { type: 'float', shape: x.shape }],
      `body = ${text}, num_scan_inputs = 1`);
  },
  call: (g) => {
    if (!g.model.functions.length) return;
    const f = g.draw.pick(g.model.functions);
    const x = g.float();
    if (!x) return;
    const inputs = Array.from({ length: f.n_inputs }, (_, i) => (i ? g.float((each) => same(each.shape, x.shape)) : x));
    if (f.optional && g.draw.chance(0.5)) inputs[f.n_inputs - 1] = null;
    while (inputs.at(-1) === null) inputs.pop();
    const results = Array.from({ length: f.n_outputs }, () => ({ type: 'float', shape: x.shape }));
    g.node(`local.${f.name}`, inputs, results, f.alpha ? 'alpha = 0.125' : '');
  },
};

// How often each is drawn; control flow is dear.
const weights = { unary: 6, pair: 6, product: 8, gemm: 4, chain: 2, scale: 3, branch: 1.5, loop: 1, scan: 0.7, found: 0.7, rows: 0.7, maybe: 0.4, call: 3,
  quantised: 1, dynamic: 0.5, narrow: 0.7, microsoft: 1 };
const wheel = Object.keys(steps).flatMap((name) => Array(Math.round(10 * (weights[name] ?? 1.5))).fill(name));

function grow(graph, n) {
  for (let i = 0; i < n; i++) steps[graph.draw.pick(wheel)](graph);
}

function drawFunctions(model) {
  const { draw } = model;
  for (let f = draw.pick([0, 0, 1, 2, 3]); f > 0; f--) {
    const name = `F${model.functions.length}`;
    const n_inputs = draw.from(1, 3);
    const alpha = draw.chance(0.4);
    const inputs = Array.from({ length: n_inputs }, (_, i) => `X${i}`);
    const all = [...inputs];
    const lines = [];
    const add = (op, args, attributes = '') => {
      const out = `T${all.length}`;
      lines.push(`${out} = ${op} ${attributes}(${args.join(', ')})`);
      all.push(out);
    };
    if (alpha) add('LeakyRelu', [draw.pick(all)], '<alpha: float = @alpha> ');
    for (let i = draw.from(1, 4); i > 0; i--) {
      const callee = draw.pick(model.functions.length ? model.functions : [null]);
      if (callee && draw.chance(0.3) && callee.n_outputs === 1) {
        add(`local.${callee.name}`, Array.from({ length: callee.n_inputs }, () => draw.pick(all)),
          callee.alpha ? '<alpha = 0.5> ' : '');
      } else if (draw.chance(0.5)) add(draw.pick(FLOATS), [draw.pick(all)]);
      else add(draw.pick(PAIRS), [draw.pick(all), draw.pick(all)]);
    }
    const n_outputs = all.length - n_inputs > 1 && draw.chance(0.3) ? 2 : 1;
    const outputs = all.slice(-n_outputs);
    // An output that follows from an input by shape alone has to follow from the first; all have one shape here.
    model.functions.push({ name, n_inputs, n_outputs, alpha,
      text: `<opset_import: [{version: ${model.opset}}, "local": 1], domain: "local">
${name} ${alpha ? '<alpha> ' : ''}(${inputs.join(', ')}) => (${outputs.join(', ')}) {
  ${lines.join('\n  ')}
}` });
  }
}

// {text, runs}: a model and what it is run with, as chain.mjs has it.
export function randomModel(seed, size) {
  const model = new Model(seed, size);
  const { draw } = model;
  drawFunctions(model);
  const main = new Graph(model, null);
  const inputs = [{ name: model.fresh('x'), type: 'float', shape: [ROWS, 8] }];
  if (draw.chance(0.5)) inputs.push({ name: model.fresh('x'), type: 'float', shape: draw.pick([[ROWS, 8], [2, ROWS, 4], [8], [1, 2, 4, 4]]) });
  if (draw.chance(0.4)) inputs.push({ name: model.fresh('x'), type: 'bool', shape: [] });
  main.values.push(...inputs);
  grow(main, draw.from(4, size));

  // Anything may be an output: what is read inside, too.
  const plain = main.values.filter((each) => !inputs.includes(each) && !['list', 'held', 'open'].includes(each.type));
  const outputs = draw.shuffled(plain).slice(0, draw.from(1, 3));
  const last = plain.at(-1);
  if (last && !outputs.includes(last)) outputs.push(last);
  if (!outputs.length) outputs.push(main.unary(inputs[0]));
  const used = new Set(outputs);
  if (draw.chance(0.1)) outputs.push(inputs[0]);
  if (model.weights.length && draw.chance(0.1)) outputs.push(draw.pick(model.weights));

  const declared = (each) => `${typeOf(each, draw)} ${quoted(each.name)}`;
  const infos = plain.filter((each) => !used.has(each) && draw.chance(0.1));
  const nodes = draw.chance(0.3) ? draw.shuffled(main.nodes) : main.nodes;
  const defaults = model.weights.filter(() => draw.chance(0.05));
  const text = `<ir_version: ${draw.pick([8, 8, 9, 10])}, opset_import: [{version: ${model.opset}}, "local": 1, "com.microsoft": 1]>
random (${[...inputs.map(declared), ...defaults.map((each) => each.text)].join(', ')}) => (${outputs.map(declared).join(', ')})
<
  ${[...model.weights.filter((each) => !defaults.includes(each)).map((each) => each.text), ...infos.map(declared)].join(',\n  ')}
> {
  ${nodes.join('\n  ')}
}
${model.functions.map(({ text: each }) => each).join('\n')}
`.replace(/<\n {2}\n>/, '<>');
  const flag = inputs.find(({ type }) => type === 'bool');
  const runs = (flag ? [1, 0] : [null]).map((value) => ({
    dims: { n: ROWS }, ...(flag ? { values: { [flag.name]: [value] } } : {}),
  }));
  return { text, runs };
}
