// One-node models of newer operators and of com.microsoft ones, for oracle.mjs, and what makes them.
//
// An input is "TYPE DIMS" for a fed tensor, with dims like n=3 for a symbol n that is 3 in the run,
// "TYPE DIMS: VALUES" for an initializer, "TYPE DIMS! VALUES" for a fed tensor of given values, or "-".
import { modelBytes } from '../support/text_model.mjs';

const types = {
  f: 'float', u8: 'uint8', i8: 'int8', i32: 'int32', i64: 'int64', b: 'bool', f16: 'float16', f64: 'double',
};

function attribute([name, value]) {
  if (typeof value === 'string') return `${name} = "${value}"`;
  if (Array.isArray(value)) {
    return typeof value[0] === 'string' ? `${name} = [${value.map((each) => `"${each}"`)}]` : `${name}: ints = [${value.join(', ')}]`;
  }
  if (value.tensor) return `${name} = ${value.tensor}`;
  if (value.floats) return `${name}: floats = [${value.floats.join(', ')}]`;
  return Number.isInteger(value) ? `${name} = ${value}` : `${name}: float = ${value.f ?? value}`;
}

function parse(text) {
  const [, type, dims, mark, values] = /^(\w+) ?([\w=,]*)([:!]?)(.*)$/.exec(text);
  return {
    type, mark, dims: dims ? dims.split(',').map((dim) => dim.split('=')) : [],
    values: values.match(/[^ ,]+/g) ?? [],
  };
}

// What an input adds to the graph's inputs or initializers, and to `run` if it is fed.
function declare(name, text, { inputs, initializers, run }) {
  const input = parse(text);
  const shape = input.dims.length ? `[${input.dims.map(([dim]) => dim).join(',')}]` : '';
  const typed = `${types[input.type]}${shape} ${name}`;
  if (input.mark === ':') {
    initializers.push(`${typed} = raw {${input.values.join(', ')}}`);
    return;
  }
  inputs.push(typed);
  run.shapes[name] = input.dims.map((dim) => Number(dim.at(-1)));
  // Number holds no large int64.
  if (input.mark === '!') {
    run.values[name] = input.values.map((each) => (input.type === 'i64' ? BigInt(each) : Number(each)));
  }
}

const makeNode = (op, inputs, outputs, attributes = {}) => {
  const list = Object.entries(attributes).map(attribute).join(', ');
  const quoted = outputs.map((each) => `"${each}"`).join(', ');
  return `${quoted} = ${op.replace(':', '.')} ${list && `<${list}>`} (${inputs.join(', ')})`;
};

// {bytes, run}: a model of all these cases, which share an opset, and the sizes and values that feeds.mjs
// makes its inputs of. Output o of case i is `y<i>.<o>`. `around` puts a node before the first input, or
// behind the first output, whose result is then the output.
export function buildAll(specs) {
  const graph = { inputs: [], initializers: [], run: { shapes: {}, values: {} } };
  const known = new Map([['-', '""']]);
  const nameOf = (text) => {
    if (!known.has(text)) {
      known.set(text, `x${known.size - 1}`);
      declare(known.get(text), text, graph);
    }
    return known.get(text);
  };
  const results = [];
  const nodes = specs.flatMap(([op, , texts, attributes, n_outputs = 1, around = {}], i) => {
    const inputs = texts.map(nameOf);
    const outputs = Array.from({ length: n_outputs }, (_, o) => `y${i}.${o}`);
    results.push(...outputs.map((each) => `"${each}"`));
    const { before, after } = around;
    const first = before ? makeNode(before, [inputs[0]], [`b${i}`]) : [];
    const last = after ? makeNode(after, [`a${i}`], [outputs[0]]) : [];
    return [first, makeNode(op, before ? [`b${i}`, ...inputs.slice(1)] : inputs,
      after ? [`a${i}`, ...outputs.slice(1)] : outputs, attributes), last].flat();
  });
  const [, , , , , around = {}] = specs[0];
  const bytes = modelBytes(`<ir_version: 10, opset_import: ["": ${specs[0][1]}, "com.microsoft": 1, "ai.onnx.ml": ${around.ml ?? 3}]>
    case (${graph.inputs.join(', ')}) => (${results.join(', ')}) <${graph.initializers.join(',\n')}> {
      ${nodes.join('\n')}
    }`);
  return { bytes, run: graph.run };
}

export const build = (spec) => buildAll([spec]);

const ms = 'com.microsoft:';
const ml = 'ai.onnx.ml:';
const ones = (n) => ({ floats: Array(n).fill(1) });
// One support vector of three numbers for each of n classes; a tree of a root and two leaves, one for target or class `last`.
const svm = (n) => ({ vectors_per_class: Array(n).fill(1), support_vectors: ones(3 * n), coefficients: ones(n * (n - 1)),
  rho: ones(n * (n - 1) / 2), kernel_params: ones(3) });
const tree = (what, last, more) => ({
  nodes_treeids: [0, 0, 0], nodes_nodeids: [0, 1, 2], nodes_featureids: [0, 0, 0], nodes_modes: ['BRANCH_LEQ', 'LEAF', 'LEAF'],
  nodes_values: { floats: [0, 0, 0] }, nodes_truenodeids: [1, 0, 0], nodes_falsenodeids: [2, 0, 0],
  [`${what}_treeids`]: [0, 0], [`${what}_nodeids`]: [1, 2], [`${what}_ids`]: [0, last], [`${what}_weights`]: ones(2), ...more,
});
const trees = (type) => ({
  n_targets: 4, tree_roots: [0], nodes_featureids: [0], nodes_modes: { tensor: 'uint8[1] {0}' }, nodes_splits: { tensor: `${type}[1] {0.5}` },
  nodes_truenodeids: [0], nodes_trueleafs: [1], nodes_falsenodeids: [1], nodes_falseleafs: [1], leaf_targetids: [0, 3],
  leaf_weights: { tensor: `${type}[2] {1, 2}` },
});
const zeros = (n) => Array(n).fill(0).join(' ');
export const cases = [
  ['Split', 18, ['f n=2,10'], { axis: 1, num_outputs: 3 }, 3],
  ['Crop', 7, ['f n=2,c=3,h=10,w=12'], { border: [1, 2, 3, 4] }],
  ['Crop', 7, ['f n=2,c=3,h=10,w=12'], { border: [1, 2, 3, 4], scale: [5, 6] }],
  ['DynamicSlice', 7, ['f n=2,c=3,h=10,w=12', 'i64 2: 1 0', 'i64 2: 5 -1', 'i64 2: 3 2']],
  ['DynamicSlice', 7, ['f n=2,c=3', 'i64 2: 0 1', 'i64 2: 2 9']],
  ['Scale', 7, ['f n=2,c=3'], { scale: 2.5 }],
  ['Split', 18, ['f n=10,2'], { num_outputs: 4 }, 4],
  ['Split', 13, ['f n=2,10', 'i64 2: 3 7'], { axis: -1 }, 2],
  ['Pad', 18, ['f n=2,c=3,4', 'i64 2: 1 2', '-', 'i64 1: -1']],
  ['Pad', 13, ['f n=2,c=3,4', 'i64 6: 0 1 2 0 0 -1']],
  ['Resize', 18, ['f n=1,c=2,h=5,w=7', '-', '-', 'i64 2: 9 4'], { axes: [2, 3] }],
  ['Resize', 18, ['f n=1,c=2,h=5,w=7', '-', '-', 'i64 2: 9 4'],
    { axes: [2, 3], keep_aspect_ratio_policy: 'not_larger' }],
  ['Resize', 18, ['f n=1,c=2,h=5,w=7', '-', '-', 'i64 2: 9 4'],
    { axes: [3, 2], keep_aspect_ratio_policy: 'not_smaller' }],
  ['Resize', 19, ['f n=1,c=2,h=5,w=7', '-', 'f 4: 1 1 1.5 0.6']],
  ['Resize', 11, ['f n=1,c=2,h=5,w=7', 'f 0:', 'f 4: 1 1 2 0.5'], { mode: 'linear' }],
  ['Resize', 10, ['f n=1,c=2,h=5,w=7', 'f 4: 1 1 2.5 2']],
  ['Upsample', 9, ['f n=1,c=2,h=5,w=7', 'f 4: 1 1 2 3']],
  ['ReduceMean', 18, ['f n=2,c=3,4', 'i64 2: 1 -1'], { keepdims: 0 }],
  ['ReduceMax', 20, ['f n=2,c=3,4', 'i64 1: 1']],
  ['ReduceL2', 18, ['f n=2,c=3,4'], { keepdims: 0 }],
  ['ReduceSum', 13, ['f n=2,c=3,4', 'i64 0:'], { noop_with_empty_axes: 1 }],
  ['CenterCropPad', 18, ['f n=20,10,3', 'i64 2: 10 9'], { axes: [1, 0] }],
  ['Col2Im', 18, ['f n=1,10,12', 'i64 2: 4 5', 'i64 2: 1 2'], { dilations: [1, 1], pads: [0, 0, 0, 0], strides: [1, 1] }],
  ['GroupNormalization', 21, ['f n=2,4,h=5', 'f 4', 'f 4'], { num_groups: 2 }],
  ['LayerNormalization', 17, ['f n=2,s=3,8', 'f 8', 'f 8'], { axis: -1 }, 3],
  ['RMSNormalization', 23, ['f n=2,s=3,8', 'f 8']],
  ['OptionalHasElement', 18, []], ['OptionalHasElement', 18, ['-']], ['OptionalHasElement', 18, ['f n=2,3']],
  ['Mish', 18, ['f n=2,3']], ['Gelu', 20, ['f n=2,3']], ['Swish', 24, ['f n=2,3']],
  ['DFT', 20, ['f n=2,10,1', '-', 'i64 : 1']],
  ['DFT', 20, ['f n=2,10,1', '-', 'i64 : 1'], { onesided: 1 }],
  ['DFT', 20, ['f n=2,10,2', 'i64 : 16'], { }],
  ['DFT', 17, ['f n=2,10,1'], { onesided: 1 }],
  ['STFT', 17, ['f n=1,128,1', 'i64 : 8', '-', 'i64 : 16']],
  ['STFT', 17, ['f n=1,l=128,1', 'i64 : 8', 'f 16']],
  ['AffineGrid', 20, ['f n=2,2,3', 'i64 4: 2 3 5 6']],
  ['AffineGrid', 20, ['f n=2,3,4', 'i64 5: 2 3 4 5 6']],
  ['GridSample', 20, ['f n=1,c=2,4,5,6', 'f n=1,2,3,4,3']],
  ['GridSample', 16, ['f n=1,c=2,4,5', 'f n=1,2,3,2']],
  ['ScatterND', 18, ['f n=4,5', 'i64 2,1! 1 2', 'f 2,5'], { reduction: 'add' }],
  ['ScatterElements', 18, ['f n=4,5', 'i64 1,2! 1 2', 'f 1,2'], { axis: 1 }],
  ['GatherND', 13, ['f n=2,3,4', 'i64 n=2,1! 1 2'], { batch_dims: 1 }],
  ['GatherElements', 13, ['f n=2,3', 'i64 1,2! 0 1'], { axis: 1 }],
  ['Trilu', 14, ['f n=4,4'], { upper: 0 }],
  ['IsInf', 20, ['f n=4']],
  ['BitwiseAnd', 18, ['i32 n=4,1', 'i32 5']],
  ['Bernoulli', 15, ['f n=4'], { dtype: 6 }],
  ['Attention', 23, ['f b=2,s=3,32', 'f b=2,t=5,16', 'f b=2,t=5,16'], { q_num_heads: 4, kv_num_heads: 2 }],
  ['Attention', 23, ['f b=2,4,s=3,8', 'f b=2,4,t=5,8', 'f b=2,4,t=5,10'], {}],
  ['Attention', 23, ['f b=2,4,s=3,8', 'f b=2,4,t=5,8', 'f b=2,4,t=5,8', '-', 'f b=2,4,p=6,8', 'f b=2,4,p=6,8'], {}, 3],
  ['RotaryEmbedding', 23, ['f b=2,4,s=3,8', 'f b=2,s=3,4', 'f b=2,s=3,4']],
  ['TensorScatter', 24, ['f b=2,4,m=8,3', 'f b=2,4,s=2,3', 'i64 b=2! 0 1']],
  ['QuantizeLinear', 13, ['f n=2,3', 'f : 0.1', 'i8 : 0']],
  ['QuantizeLinear', 19, ['f n=2,3', 'f : 0.1']],
  ['QuantizeLinear', 21, ['f n=2,4', 'f : 0.1'], { output_dtype: 4 }],
  ['DequantizeLinear', 19, ['u8 n=2,3', 'f : 0.1', 'u8 : 0']],
  ['DynamicQuantizeLinear', 11, ['f n=2,3'], {}, 3],
  ['MatMulInteger', 10, ['u8 n=2,3', 'u8 3,4']],
  ['ConvInteger', 10, ['u8 n=1,2,h=5,6', 'u8 3,2,3,3'], { pads: [1, 0, 1, 0] }],
  ['QLinearConv', 10, ['u8 n=1,2,h=5,6', 'f : 0.1', 'u8 : 0', 'u8 3,2,3,3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  ['QLinearMatMul', 10, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', 'u8 3,4', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  ['Conv', 11, ['f n=1,4,h=9', 'f 6,2,3'], { group: 2, dilations: [2], strides: [2], auto_pad: 'SAME_UPPER' }],
  ['Conv', 11, ['f n=1,4,h=9', 'f 6,2,3'], { group: 2, auto_pad: 'VALID', strides: [3] }],
  ['ConvTranspose', 11, ['f n=1,4,h=5,w=6', 'f 4,3,3,3'], { group: 2, strides: [2, 3], pads: [1, 0, 1, 1], output_padding: [1, 0] }],
  ['ConvTranspose', 11, ['f n=1,4,h=5', 'f 4,3,3'], { strides: [2], auto_pad: 'SAME_UPPER' }],
  ['ConvTranspose', 11, ['f n=1,4,h=5', 'f 4,3,3'], { strides: [2], output_shape: [10] }],
  ['DeformConv', 19, ['f n=1,2,h=5,w=5', 'f 3,2,3,3', 'f n=1,18,3,3'], { kernel_shape: [3, 3] }],
  ['MaxPool', 12, ['f n=1,c=2,h=7,w=9'], { kernel_shape: [3, 2], strides: [2, 2], ceil_mode: 1, pads: [1, 0, 1, 1] }, 2],
  ['MaxPool', 12, ['f n=1,c=2,h=7'], { kernel_shape: [3], dilations: [2], auto_pad: 'SAME_LOWER', strides: [2] }],
  ['AveragePool', 19, ['f n=1,c=2,h=8'], { kernel_shape: [3], strides: [2], ceil_mode: 1, dilations: [2] }],
  ['AveragePool', 11, ['f n=1,c=2,h=4'], { kernel_shape: [1], strides: [3], ceil_mode: 1 }],
  ['LpPool', 18, ['f n=1,c=2,h=8'], { kernel_shape: [3], strides: [2], ceil_mode: 1 }],
  ['GlobalLpPool', 2, ['f n=1,c=2,h=8']],
  ['MaxUnpool', 11, ['f n=1,1,2,2', 'i64 n=1,1,2,2! 5 7 13 15'], { kernel_shape: [2, 2], strides: [2, 2] }],
  ['RoiAlign', 16, ['f n=1,c=2,8,8', 'f r=3,4', 'i64 r=3! 0 0 0'], { output_height: 4, output_width: 5 }],
  ['MaxRoiPool', 1, ['f n=1,c=2,8,8', 'f r=3,5! 0 0 0 1 1 0 0 0 2 2 0 1 1 3 3'], { pooled_shape: [2, 3] }],
  ['DepthToSpace', 13, ['f n=1,8,h=2,w=3'], { blocksize: 2, mode: 'CRD' }],
  ['SpaceToDepth', 13, ['f n=1,2,h=4,w=6'], { blocksize: 2 }],
  ['LSTM', 14, ['f s=3,b=2,4', 'f 2,24,4', 'f 2,24,6'], { hidden_size: 6, direction: 'bidirectional' }, 3],
  ['GRU', 14, ['f s=3,b=2,4', 'f 1,18,4', 'f 1,18,6'], { hidden_size: 6 }, 2],
  ['RNN', 14, ['f s=3,b=2,4', 'f 1,6,4', 'f 1,6,6'], { hidden_size: 6 }, 2],
  ['Einsum', 12, ['f b=2,i=3,j=4', 'f b=2,j=4,k=5'], { equation: 'bij, bjk -> bik' }],
  ['Einsum', 12, ['f b=2,3,4', 'f 4,5'], { equation: '...ij,jk' }],
  ['Einsum', 12, ['f b=2,c=3,3'], { equation: '...ii->...i' }],
  ['Gemm', 13, ['f k=3,m=2', 'f 5,k=3', 'f 5'], { transA: 1, transB: 1 }],
  ['MatMul', 13, ['f 3', 'f b=2,3,4']], ['MatMul', 13, ['f b=2,5,3', 'f 3']], ['MatMul', 13, ['f 3', 'f 3']],
  ['TopK', 11, ['f n=3,5', 'i64 1: 2'], { axis: 0 }, 2],
  ['OneHot', 11, ['i64 n=3! 0 1 2', 'i64 : 4', 'f 2: 0 1'], { axis: 0 }],
  ['ArgMax', 13, ['f n=3,5'], { axis: 1, keepdims: 0 }],
  ['CumSum', 14, ['f n=3,5', 'i64 : 1']],
  ['Unique', 11, ['f n=4'], {}, 4],
  ['Compress', 11, ['f n=4,2', 'b 4! 1 0 1 1'], { axis: 0 }],
  ['NonZero', 13, ['f n=4,2']],
  ['EyeLike', 9, ['f n=4,2'], { dtype: 7 }],
  ['Range', 11, ['f : 0.5', 'f : 7', 'f : 1.25']], ['Range', 11, ['i64 : 9', 'i64 : 0', 'i64 : -2']],
  ['Flatten', 13, ['f a=2,b=3,c=4'], { axis: -1 }], ['Flatten', 13, ['f a=2,b=3,c=4'], { axis: 0 }],
  ['Shape', 15, ['f a=2,b=3,c=4'], { start: -2 }], ['Shape', 15, ['f a=2,b=3,c=4'], { end: -1 }],
  ['Size', 13, ['f a=2,b=3,c=4']],
  ['Dropout', 13, ['f n=2,3'], {}, 2],
  ['BatchNormalization', 15, ['f n=2,3,h=4', 'f 3', 'f 3', 'f 3', 'f 3']],
  ['InstanceNormalization', 6, ['f n=2,3,h=4', 'f 3', 'f 3']],
  ['MelWeightMatrix', 17, ['i64 : 8', 'i64 : 16', 'i64 : 8192', 'f : 0', 'f : 4000']],
  ['HannWindow', 17, ['i64 : 10']], ['BlackmanWindow', 17, ['i64 : 10'], { output_datatype: 11 }],
  ['Multinomial', 7, ['f n=2,3'], { sample_size: 4 }],
  ['RandomUniformLike', 1, ['f n=2,3'], { dtype: 11 }],
  ['Det', 11, ['f n=2,3,3']],
  ['SequenceConstruct', 11, ['f 2,3', 'f 2,3']],
  ['NegativeLogLikelihoodLoss', 13, ['f n=3,5,d=2', 'i64 n=3,d=2! 0 1 2 3 4 0'], { reduction: 'none' }],
  ['SoftmaxCrossEntropyLoss', 13, ['f n=3,5', 'i64 n=3! 0 1 2'], {}, 2],
  [`${ms}Gelu`, 17, ['f n=2,3']], [`${ms}FastGelu`, 17, ['f n=2,3']], [`${ms}QuickGelu`, 17, ['f n=2,3']],
  [`${ms}BiasGelu`, 17, ['f n=2,3', 'f 3']],
  [`${ms}SkipLayerNormalization`, 17, ['f b=2,s=3,8', 'f b=2,s=3,8', 'f 8', 'f 8'], {}, 4],
  [`${ms}SkipLayerNormalization`, 17, ['f b=2,s=3,8', 'f b=2,s=3,8', 'f 8'], {}, 1],
  [`${ms}SkipSimplifiedLayerNormalization`, 17, ['f b=2,s=3,8', 'f b=2,s=3,8', 'f 8'], {}, 4],
  ['SimplifiedLayerNormalization', 17, ['f b=2,s=3,8', 'f 8'], { axis: -1 }],
  [`${ms}EmbedLayerNormalization`, 17, ['i32 b=2,s=3! 0 1 2 0 1 2', 'i32 b=2,s=3! 0 0 0 1 1 1', 'f 10,8', 'f 6,8', 'f 2,8', 'f 8', 'f 8'], {}, 2],
  [`${ms}Attention`, 17, ['f b=2,s=3,8', 'f 8,24', 'f 24'], { num_heads: 2 }],
  [`${ms}Attention`, 17, ['f b=2,s=3,8', 'f 8,24', 'f 24', '-', 'f 2,b=2,2,p=5,4'], { num_heads: 2 }, 2],
  [`${ms}MultiHeadAttention`, 17, ['f b=2,s=3,8', 'f b=2,t=5,8', 'f b=2,t=5,8'], { num_heads: 2 }],
  [`${ms}MultiHeadAttention`, 17, ['f b=2,s=3,8', 'f b=2,s=3,8', 'f b=2,s=3,8', '-', '-', '-', 'f b=2,2,p=4,4', 'f b=2,2,p=4,4'], { num_heads: 2 }, 3],
  [`${ms}MultiHeadAttention`, 17, ['f b=2,s=3,8', 'f b=2,2,t=5,4', 'f b=2,2,t=5,4'], { num_heads: 2 }],
  [`${ms}GroupQueryAttention`, 17, ['f b=1,s=1,32', 'f b=1,s=1,16', 'f b=1,s=1,16', 'f b=1,2,p=8,8', 'f b=1,2,p=8,8', 'i32 b=1! 3', 'i32 : 4'], { num_heads: 4, kv_num_heads: 2 }, 3],
  [`${ms}GroupQueryAttention`, 17, ['f b=1,s=1,64', '-', '-', 'f b=1,2,p=8,8', 'f b=1,2,p=8,8', 'i32 b=1! 3', 'i32 : 4'], { num_heads: 4, kv_num_heads: 2 }, 3],
  [`${ms}RotaryEmbedding`, 17, ['f b=2,s=3,16', 'i64 1! 0', 'f 10,4', 'f 10,4'], { num_heads: 2 }],
  [`${ms}MatMulNBits`, 17, ['f b=2,s=3,64', `u8 16,2,16: ${zeros(512)}`, `f 32: ${zeros(32)}`], { K: 64, N: 16, bits: 4, block_size: 32 }],
  [`${ms}FusedMatMul`, 17, ['f b=2,3,5', 'f b=2,4,5'], { transB: 1 }],
  [`${ms}FusedMatMul`, 17, ['f b=2,5,3', 'f b=2,5,4'], { transA: 1 }],
  [`${ms}FusedMatMul`, 17, ['f 7,b=2,5', 'f 9,b=2,5'], { transB: 1, transBatchA: 1, transBatchB: 1 }],
  [`${ms}DynamicQuantizeMatMul`, 17, ['f n=2,3', `u8 3,4: ${zeros(12)}`, 'f : 0.1', 'u8 : 0']],
  [`${ms}MatMulIntegerToFloat`, 17, ['u8 n=2,3', `u8 3,4: ${zeros(12)}`, 'f : 0.1', 'f : 0.1', 'u8 : 0', 'u8 : 0']],
  [`${ms}QLinearAdd`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', 'u8 3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  [`${ms}QLinearMul`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', 'u8 n=2,1', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  [`${ms}QLinearSigmoid`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  [`${ms}QLinearLeakyRelu`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0'], { alpha: 0.1 }],
  [`${ms}QLinearSoftmax`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0'], { opset: 13, axis: -1 }],
  [`${ms}QLinearGlobalAveragePool`, 17, ['u8 n=2,3,h=4,w=5', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  [`${ms}QLinearGlobalAveragePool`, 17, ['u8 n=2,h=4,w=5,3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0'], { channels_last: 1 }],
  [`${ms}QLinearAveragePool`, 17, ['u8 n=2,3,h=4,w=5', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0'], { kernel_shape: [2, 2] }],
  [`${ms}QLinearConcat`, 17, ['f : 0.1', 'u8 : 0', 'u8 n=2,3', 'f : 0.1', 'u8 : 0', 'u8 n=2,4', 'f : 0.1', 'u8 : 0'], { axis: 1 }],
  [`${ms}QGemm`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', `u8 3,4: ${zeros(12)}`, 'f : 0.1', 'u8 : 0'], { alpha: { f: 1 } }],
  [`${ms}QGemm`, 17, ['u8 n=2,3', 'f : 0.1', 'u8 : 0', `u8 3,4: ${zeros(12)}`, 'f : 0.1', 'u8 : 0', '-', 'f : 0.1', 'u8 : 0'], { alpha: { f: 1 } }],
  [`${ms}FusedConv`, 17, ['f n=1,2,h=5,6', 'f 3,2,3,3'], { activation: 'Relu' }],
  [`${ms}FusedGemm`, 17, ['f n=2,3', 'f 3,4', 'f 4'], { activation: 'Relu' }],
  [`${ms}CDist`, 17, ['f m=3,5', 'f k=4,5'], { metric: 'sqeuclidean' }],
  [`${ms}UnfoldTensor`, 17, ['f n=2,10,3'], { dim: 1, size: 4, step: 2 }],
  [`${ms}ExpandDims`, 17, ['f n=2,3', 'i32 : 1']],
  [`${ms}MurmurHash3`, 17, ['i32 n=2,3']], [`${ms}MurmurHash3`, 17, ['i32 n=2,3'], { positive: 0 }],
  [`${ms}Unique`, 17, ['f n=6'], {}, 3],
  [`${ms}SampleOp`, 17, ['f n=6']],
  [`${ms}MaxpoolWithMask`, 17, ['f n=1,2,h=5,6', 'i32 n=1,2,h=5,6'], { kernel_shape: [2, 2], strides: [2, 2] }],
  [`${ms}NGramRepeatBlock`, 17, ['i64 b=2,s=4! 1 2 1 2 3 4 3 4', 'f b=2,6'], { ngram_size: 2 }],
  [`${ms}BifurcationDetector`, 17, ['i64 4! 1 5 3 4', 'i64 4! 2 1 5 3', 'i64 ! 0'], {}, 2],
  [`${ms}QLinearWhere`, 17, ['b n=2,1', 'u8 n=2,3', 'f : 0.1', 'u8 : 0', 'u8 3', 'f : 0.1', 'u8 : 0', 'f : 0.1', 'u8 : 0']],
  [`${ms}CropAndResize`, 17, ['f n=1,2,8,8', 'f k=3,4', 'i32 k=3! 0 0 0', 'i32 2: 3 4']],
  [`${ms}ConvTransposeWithDynamicPads`, 17, ['f n=1,2,h=5,6', 'f 2,3,3,3', 'i64 4! 0 0 0 0']],
  [`${ms}MoE`, 17, ['f n=6,8', 'f n=6,4', 'f 4,16,8', '-', 'f 4,8,16'], { k: 2, activation_type: 'gelu' }],
  [`${ms}DecoderMaskedMultiHeadAttention`, 17, ['f b=2,1,8', 'f b=2,1,8', 'f b=2,1,8', '-', '-', 'f b=2,2,p=5,4', 'f b=2,2,p=5,4', 'i32 1! 4'],
    { num_heads: 2, past_present_share_buffer: 1 }, 3],
  [`${ms}NhwcMaxPool`, 17, ['u8 n=1,h=5,6,2'], { kernel_shape: [2, 2], strides: [2, 2] }],
  [`${ms}LinearAttention`, 17, ['f b=2,s=3,16', 'f b=2,s=3,16', 'f b=2,s=3,24'], { q_num_heads: 2, kv_num_heads: 2, update_rule: 'linear' }, 2],
  [`${ms}CausalConvWithState`, 17, ['f b=2,4,s=7', 'f 4,1,3'], {}, 2],
  [`${ms}CausalConvWithState`, 17, ['f b=2,4,s=7', 'f 4,1,3', '-', 'f b=2,4,2'], {}, 2],
  [`${ms}GatedAdd`, 17, ['f n=2,3', 'f n=2,3', 'f n=2,1']],
  [`${ms}LinearAttentionGate`, 17, ['f b=2,s=3,4', 'f 4', 'f 4', 'f b=2,s=3,4'], {}, 2],
  [`${ms}MRotaryEmbedding`, 17, ['f b=1,s=2,16', 'i64 3,1,2! 0 1 0 1 0 1', 'f 10,4', 'f 10,4'], { num_heads: 2, mrope_section: [2, 1, 1] }],
  [`${ms}NGramHashMapping`, 17, ['i64 b=2,s=3', 'i64 3! 1 3 5', 'i64 4! 7 11 13 17'], { max_ngram_size: 3, n_head_per_ngram: 2, pad_id: 0 }],
  [`${ms}DynamicTimeWarping`, 17, ['f m=3,n=4']],
  [`${ms}GroupQueryAttention`, 17, ['f b=1,s=2,32', 'f b=1,s=2,16', 'f b=1,s=2,16', '-', '-', 'i32 1: 1', 'i32 : 2'], { num_heads: 4, kv_num_heads: 2 }, 3],
  [`${ms}GroupQueryAttention`, 17, ['f b=1,s=1,32', 'f b=1,s=1,16', 'f b=1,s=1,16', 'f b=1,2,p=3,8', 'f b=1,2,p=3,8', 'i32 1: 3', 'i32 : 4'], { num_heads: 4, kv_num_heads: 2 }, 3],
  [`${ms}Trilu`, 17, ['f n=4,4']], [`${ms}Inverse`, 17, ['f n=2,3,3']],
  [`${ms}GatherND`, 17, ['f 2,3', 'i64 2,1! 0 1']],
  [`${ms}Pad`, 17, ['f n=2,3', 'i64 4! 0 1 0 1', 'f : 0']],
  [`${ms}BiasSoftmax`, 17, ['f n=2,3', 'f n=2,3'], { axis: 1, is_inner_broadcast: 0 }],
  // ai.onnx.ml.
  [`${ml}ArrayFeatureExtractor`, 17, ['f n=2,4', 'i64 1,2: 0 3']], [`${ml}ArrayFeatureExtractor`, 17, ['f n=2,3,4', 'i64 2: 0 3']],
  [`${ml}ArrayFeatureExtractor`, 17, ['f 5', 'i64 k=2,3! 0 1 2 3 4 0']], [`${ml}ArrayFeatureExtractor`, 17, ['f n=2,4', 'i64 k=2,3! 0 1 2 3 1 0']],
  [`${ml}ArrayFeatureExtractor`, 17, ['f 5', 'i64 2,3: 0 1 2 3 4 0']], [`${ml}ArrayFeatureExtractor`, 17, ['f n=2,4', 'i64 2,1: 0 1']],
  [`${ml}Binarizer`, 17, ['f n=2,3'], { threshold: { f: 0.5 } }],
  [`${ml}CategoryMapper`, 17, ['i64 n=2,3'], { cats_int64s: [1, 2], cats_strings: ['a', 'b'], default_string: 'c' }],
  [`${ml}FeatureVectorizer`, 17, ['f n=2,3', 'f n=2,4'], { inputdimensions: [3, 4] }],
  [`${ml}FeatureVectorizer`, 17, ['f n=2,5', 'f n=2,4'], { inputdimensions: [3, 6] }],
  [`${ml}FeatureVectorizer`, 17, ['f 3', 'f 4'], { inputdimensions: [3, 4] }],
  [`${ml}FeatureVectorizer`, 17, ['f64 n=2,3'], { inputdimensions: [3] }], [`${ml}FeatureVectorizer`, 17, ['i64 n=2,2,3'], { inputdimensions: [6] }],
  [`${ml}Imputer`, 17, ['f n=2,3'], { imputed_value_floats: { floats: [1] }, replaced_value_float: { f: 0.5 } }],
  [`${ml}Imputer`, 17, ['i64 n=2,3'], { imputed_value_int64s: [1], replaced_value_int64: 2 }],
  [`${ml}LabelEncoder`, 17, ['i64 n=2,3'], { keys_int64s: [1, 2], values_floats: { floats: [1, 2] } }],
  [`${ml}LabelEncoder`, 17, ['i64 n=2,3'], { keys_int64s: [1, 2], values_strings: ['a', 'b'] }],
  [`${ml}LabelEncoder`, 17, ['f n=2,3'], { keys_floats: { floats: [1, 2] }, values_int64s: [1, 2] }],
  [`${ml}LabelEncoder`, 17, ['i64 n=2,3'], { classes_strings: ['a', 'b'] }, 1, { ml: 1 }],
  [`${ml}LinearClassifier`, 17, ['f n=2,3'], { coefficients: ones(3), intercepts: ones(1), classlabels_ints: [0, 1] }, 2],
  [`${ml}LinearClassifier`, 17, ['f n=2,3'], { coefficients: ones(6), intercepts: ones(2), classlabels_ints: [0, 1] }, 2],
  [`${ml}LinearClassifier`, 17, ['f n=2,3'], { coefficients: ones(9), intercepts: ones(3), classlabels_strings: ['a', 'b', 'c'], post_transform: 'SOFTMAX' }, 2],
  [`${ml}LinearClassifier`, 17, ['f n=2,3'], { coefficients: ones(6), intercepts: ones(2), classlabels_ints: [0, 1, 2] }, 2],
  [`${ml}LinearClassifier`, 17, ['f 3'], { coefficients: ones(9), intercepts: ones(3), classlabels_ints: [0, 1, 2] }, 2],
  [`${ml}LinearClassifier`, 17, ['i64 n=2,3'], { coefficients: ones(9), intercepts: ones(3), classlabels_ints: [0, 1, 2], post_transform: 'LOGISTIC' }, 2],
  [`${ml}LinearRegressor`, 17, ['f n=2,3'], { coefficients: ones(6), intercepts: ones(2), targets: 2 }],
  [`${ml}LinearRegressor`, 17, ['f 3'], { coefficients: ones(3), intercepts: ones(1) }],
  [`${ml}Normalizer`, 17, ['f n=2,3'], { norm: 'L2' }], [`${ml}Normalizer`, 17, ['i64 n=2,3'], { norm: 'L1' }], [`${ml}Normalizer`, 17, ['f64 3'], { norm: 'MAX' }],
  [`${ml}OneHotEncoder`, 17, ['i64 n=2,3'], { cats_int64s: [0, 1, 2, 3] }], [`${ml}OneHotEncoder`, 17, ['f n=2'], { cats_int64s: [0, 1] }],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { ...svm(2), classlabels_ints: [0, 1], prob_a: ones(1), prob_b: ones(1) }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { ...svm(2), classlabels_ints: [0, 1] }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { ...svm(3), classlabels_ints: [0, 1, 2] }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { ...svm(4), classlabels_ints: [0, 1, 2, 3] }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { ...svm(4), classlabels_ints: [0, 1, 2, 3], prob_a: ones(6), prob_b: ones(6) }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { ...svm(5), classlabels_strings: ['a', 'b', 'c', 'd', 'e'] }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { coefficients: ones(12), rho: ones(1), kernel_params: ones(3), classlabels_ints: [0, 1, 2, 3] }, 2],
  [`${ml}SVMClassifier`, 17, ['f n=2,3'], { coefficients: ones(6), rho: ones(1), kernel_params: ones(3), classlabels_ints: [0, 1] }, 2],
  [`${ml}SVMClassifier`, 17, ['f 3'], { ...svm(3), classlabels_ints: [0, 1, 2] }, 2],
  [`${ml}SVMRegressor`, 17, ['f n=2,3'], { n_supports: 2, support_vectors: ones(6), coefficients: ones(2), rho: ones(1), kernel_params: ones(3) }],
  [`${ml}SVMRegressor`, 17, ['f n=2,3'], { coefficients: ones(3), rho: ones(1), kernel_params: ones(3) }],
  [`${ml}Scaler`, 17, ['f n=2,3'], { offset: ones(3), scale: ones(3) }], [`${ml}Scaler`, 17, ['i64 n=2,3'], { offset: ones(1), scale: ones(1) }],
  [`${ml}TreeEnsembleRegressor`, 17, ['f n=2,3'], tree('target', 2, { n_targets: 3 })],
  [`${ml}TreeEnsembleClassifier`, 17, ['f n=2,3'], tree('class', 2, { classlabels_int64s: [0, 1, 2] }), 2],
  [`${ml}TreeEnsembleClassifier`, 17, ['f n=2,3'], tree('class', 0, { classlabels_int64s: [0, 1] }), 2],
  [`${ml}TreeEnsembleClassifier`, 17, ['i32 n=2,3'], tree('class', 1, { classlabels_strings: ['a', 'b'] }), 2],
  [`${ml}TreeEnsemble`, 17, ['f n=2,3'], trees('float'), 1, { ml: 5 }],
  [`${ml}TreeEnsemble`, 17, ['f64 n=2,3'], trees('double'), 1, { ml: 5 }],
];
