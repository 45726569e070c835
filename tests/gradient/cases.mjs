// One-operator nets. Each: [name, op, inputs, attributes, options].
// An input is dims (a float tensor), { dims, low, high, as } for its range and type, { ints } or { bools } or
// { reals } for contents that are given, or null. Options: opset; outputs: how many (1); only:
// positions of inputs whose gradient is checked (all float ones); float: float32, where ONNX Runtime
// has no float64 kernel; linear: in each input by itself, so that a large step is exact; fixed: the
// inputs from 1 on are always weights; sizes: axes from 2 on are always known; known: these axes
// are; parts: outputs that count; omit: outputs that are left out; domain: of the operator; open:
// inputs that are fed, whatever their contents.
const list = [];
const net = (name, op, inputs, attrs = {}, options = {}) =>
  list.push({ name, op, inputs, attrs, ...options });
const ints = (...values) => ({ ints: values, dims: [values.length] });
const scalarInt = (value) => ({ ints: [value], dims: [] });
const range = (low, high, ...dims) => ({ dims, low, high });

// ---- element by element ----
for (const op of ['Abs', 'Cos', 'Elu', 'Exp', 'HardSigmoid', 'Identity', 'LeakyRelu',
  'Neg', 'Relu', 'Selu', 'Sigmoid', 'Sin', 'Softplus', 'Softsign', 'Tanh', 'ThresholdedRelu',
  'Erf', 'Celu', 'HardSwish', 'Shrink']) {
  const f32 = ['Selu', 'ThresholdedRelu', 'Erf', 'Celu', 'HardSwish', 'Softsign', 'HardSigmoid', 'Elu',
    'LeakyRelu', 'Softplus', 'Shrink'].includes(op);
  net(op, op, [range(-4, 4, 3, 5)], op === 'Shrink' ? { lambd: 1 } : {}, { float: f32 });
}
for (const op of ['Acos', 'Asin', 'Atanh']) net(op, op, [range(-0.9, 0.9, 4, 3)], {}, { float: true });
for (const op of ['Atan', 'Asinh', 'Sinh', 'Cosh', 'Tan']) {
  net(op, op, [range(-1.2, 1.2, 4, 3)], {}, { float: true });
}
net('Acosh', 'Acosh', [range(1.5, 4, 4, 3)], {}, { float: true });
for (const op of ['Log', 'Sqrt', 'Reciprocal']) net(op, op, [range(0.3, 3, 2, 7)]);
net('Mish', 'Mish', [range(-3, 3, 3, 5)], {}, { opset: 18, float: true });
net('Gelu exact', 'Gelu', [range(-3, 3, 3, 5)], {}, { opset: 20, float: true });
net('Gelu tanh', 'Gelu', [range(-3, 3, 3, 5)], { approximate: 'tanh' }, { opset: 20, float: true });
net('Elu alpha', 'Elu', [range(-3, 3, 3, 5)], { alpha: 0.4 }, { float: true });
net('Celu alpha', 'Celu', [range(-3, 3, 3, 5)], { alpha: 2.5 }, { float: true });
net('Selu set', 'Selu', [range(-3, 3, 3, 5)], { alpha: 1.5, gamma: 0.7 }, { float: true });
net('LeakyRelu alpha', 'LeakyRelu', [range(-3, 3, 3, 5)], { alpha: 0.3 }, { float: true });
net('HardSigmoid set', 'HardSigmoid', [range(-4, 4, 3, 5)], { alpha: 0.3, beta: 0.4 }, { float: true });
net('Clip', 'Clip', [range(-3, 3, 4, 4), { reals: [-1], dims: [] }, { reals: [2], dims: [] }]);
net('Clip low', 'Clip', [range(-3, 3, 4, 4), { reals: [-1], dims: [] }]);
net('Clip high', 'Clip', [range(-3, 3, 4, 4), null, { reals: [1], dims: [] }]);
net('Clip open', 'Clip', [range(-3, 3, 4, 4)]);
net('Clip crossed', 'Clip', [range(-3, 3, 4, 4), { reals: [1], dims: [] }, { reals: [-1], dims: [] }]);
net('Clip attributes', 'Clip', [range(-3, 3, 4, 4)], { min: -1, max: 1.5 }, { opset: 10, float: true });
net('PRelu', 'PRelu', [range(-3, 3, 2, 3, 4), range(0.1, 0.9, 3, 1)]);
net('PRelu one', 'PRelu', [range(-3, 3, 2, 3, 4), range(0.1, 0.9, 1)]);
net('PRelu full', 'PRelu', [range(-3, 3, 2, 3), range(0.1, 0.9, 2, 3)]);
net('Cast', 'Cast', [[3, 4]], { to: 1n }, { castTo: 'float32' });
net('Dropout inference', 'Dropout', [[3, 4]], {}, { opset: 13 });
net('Dropout old', 'Dropout', [[3, 4]], { ratio: 0.3 }, { opset: 10 });

// ---- arithmetic ----
const shapes = [[[2, 3, 4], [2, 3, 4]], [[2, 3, 4], [4]], [[3, 1], [2, 3, 4]], [[2, 1, 4], [1, 3, 1]],
  [[], [2, 3]], [[1], [3]], [[1, 1, 1], [4]], [[2, 3], []]];
for (const op of ['Add', 'Sub', 'Mul', 'Div']) {
  for (const [a, b] of shapes) net(`${op} [${a}] [${b}]`, op, [range(0.5, 2, ...a), range(0.5, 2, ...b)]);
}
for (const [a, b] of shapes) {
  net(`Pow [${a}] [${b}]`, 'Pow', [range(0.5, 2, ...a), range(-2, 2, ...b)]);
}
for (const p of [0, 0.5, 1, 2, 3, -1]) {
  net(`Pow ${p}`, 'Pow', [range(0.5, 2, 3, 3), { reals: [p], dims: [] }], {}, { only: [0] });
}
net('Pow int', 'Pow', [range(-2, 2, 3, 3), { ints: [3], dims: [] }]);
net('Pow ints', 'Pow', [range(0.5, 2, 3, 3), ints(0, 1, 2)]);
for (const op of ['Max', 'Min', 'Sum', 'Mean']) {
  net(`${op} 3`, op, [[2, 3], [3], [2, 1]], {}, { float: ['Sum', 'Mean'].includes(op) });
  net(`${op} 1`, op, [[2, 3]], {}, { float: ['Sum', 'Mean'].includes(op) });
}
net('Mod', 'Mod', [range(1, 9, 3, 4), range(0.6, 0.9, 4)], { fmod: 1n }, { step: 1e-6 });
net('Where', 'Where', [{ bools: [1, 0, 1, 1, 0, 0], dims: [2, 3] }, [2, 3], [3]]);
net('Where broadcast', 'Where', [{ bools: [1, 0, 1], dims: [3] }, [2, 1], [1]]);

// ---- products ----
for (const [a, b] of [[[3, 4], [4, 5]], [[2, 3, 4], [4, 5]], [[2, 3, 4], [2, 4, 5]], [[3, 4], [2, 4, 5]],
  [[2, 1, 3, 4], [5, 4, 2]], [[4], [4]], [[4], [4, 5]], [[3, 4], [4]], [[2, 3, 4], [4]], [[4], [2, 4, 5]],
  [[1, 3, 4], [2, 4, 5]], [[2, 2, 3, 4], [2, 2, 4, 3]]]) {
  net(`MatMul [${a}] [${b}]`, 'MatMul', [a, b], {}, { linear: true });
}
for (const transA of [0n, 1n]) {
  for (const transB of [0n, 1n]) {
    net(`Gemm ${transA}${transB}`, 'Gemm',
      [transA ? [4, 3] : [3, 4], transB ? [5, 4] : [4, 5], [5]], { transA, transB, alpha: 0.5, beta: 2 },
      { linear: true });
  }
}
net('Gemm no bias', 'Gemm', [[3, 4], [4, 5]], {}, { linear: true });
net('Gemm bias full', 'Gemm', [[3, 4], [4, 5], [3, 5]], {}, { linear: true });
net('Gemm bias column', 'Gemm', [[3, 4], [4, 5], [3, 1]], {}, { linear: true });
for (const [equation, ...inputs] of [['ij,jk->ik', [2, 3], [3, 4]], ['bij,bjk->bik', [2, 2, 3], [2, 3, 2]],
  ['bhid,bhjd->bhij', [2, 2, 3, 2], [2, 2, 2, 2]], ['ij->ji', [2, 3]], ['ij->i', [2, 3]],
  ['i,j->ij', [2], [3]], ['ij,kj,j->ik', [2, 3], [2, 3], [3]], ['ij,jk', [2, 3], [3, 2]],
  ['ij,ij->i', [1, 3], [2, 3]], ['ij,j->i', [2, 3], [1]], ['ij->', [2, 3]], [',i->i', [], [3]],
  ['...ij,...jk->...ik', [2, 2, 3], [2, 3, 2]], ['...ij,...jk', [2, 1, 3], [2, 3, 2]],
  ['b...i,...ij->b...j', [2, 3, 2], [3, 2, 4]], ['i...,...->i...', [2, 3], [3]], ['...i->i...', [2, 3, 4]],
  ['...ij,jk->...ik', [2, 1, 2, 3], [3, 2]], ['b...,b...->...', [1, 3], [2, 3]]]) {
  net(`Einsum ${equation}`, 'Einsum', inputs, { equation }, { linear: true });
}

// ---- views, parts ----
net('Reshape', 'Reshape', [[2, 3, 4], ints(6, -1)]);
net('Reshape zero', 'Reshape', [[2, 3, 4], ints(0, -1, 2)]);
net('Reshape scalar', 'Reshape', [[1, 1], { ints: [], dims: [0] }]);
net('Flatten', 'Flatten', [[2, 3, 4]], { axis: 2n });
net('Squeeze', 'Squeeze', [[2, 1, 3, 1], ints(1, 3)]);
net('Squeeze attribute', 'Squeeze', [[2, 1, 3, 1]], { axes: [1n] }, { opset: 11 });
net('Unsqueeze', 'Unsqueeze', [[2, 3], ints(0, 3)]);
net('Transpose', 'Transpose', [[2, 3, 4]]);
net('Transpose perm', 'Transpose', [[2, 3, 4]], { perm: [1n, 2n, 0n] });
net('Expand', 'Expand', [[3, 1], ints(2, 3, 4)]);
net('Expand same', 'Expand', [[2, 3], ints(1, 1)]);
net('Concat', 'Concat', [[2, 3], [2, 1], [2, 4]], { axis: 1n });
net('Concat back', 'Concat', [[2, 3], [1, 3]], { axis: -2n });
net('Concat one', 'Concat', [[2, 3]], { axis: 0n });
net('Split', 'Split', [[2, 6]], { axis: 1n }, { outputs: 3 });
net('Split sizes', 'Split', [[2, 6], ints(1, 5)], { axis: -1n }, { outputs: 2 });
net('Split partly', 'Split', [[2, 6], ints(1, 3, 2)], { axis: -1n }, { outputs: 3, parts: [1] });
net('Split attribute', 'Split', [[2, 6]], { axis: 1n, split: [2n, 4n] }, { opset: 11, outputs: 2 });
net('Split number', 'Split', [[2, 7]], { axis: 1n, num_outputs: 3n }, { opset: 18, outputs: 3 });
net('Slice', 'Slice', [[4, 5], ints(1, 0), ints(3, 4)]);
net('Slice axes', 'Slice', [[4, 5, 2], ints(1), ints(100), ints(1)]);
net('Slice back', 'Slice', [[4, 5], ints(-3), ints(-1), ints(-1)]);
net('Slice steps', 'Slice', [[4, 7], ints(0, 1), ints(4, 7), ints(0, 1), ints(2, 3)]);
net('Slice reverse', 'Slice', [[4, 5], ints(-1), ints(-9), ints(1), ints(-1)]);
net('Slice step minus two', 'Slice', [[7, 2], ints(5), ints(0), ints(0), ints(-2)]);
net('Slice attributes', 'Slice', [[4, 5]], { starts: [1n], ends: [3n], axes: [0n] }, { opset: 9 });
net('Pad', 'Pad', [[2, 3], ints(1, 0, 0, 2)]);
net('Pad value', 'Pad', [[2, 3], ints(1, 0, 0, 2), { reals: [0.5], dims: [] }]);
net('Pad crop', 'Pad', [[4, 3], ints(-1, 1, -1, 0)]);
net('Pad reflect', 'Pad', [[4, 3], ints(2, 1, 1, 2)], { mode: 'reflect' });
net('Pad edge', 'Pad', [[2, 3], ints(2, 1, 1, 2)], { mode: 'edge' });
net('Pad axes', 'Pad', [[2, 3], ints(1, 2), null, ints(1)], {}, { opset: 18 });
net('Pad attribute', 'Pad', [[2, 3]], { pads: [1n, 0n, 0n, 2n] }, { opset: 10 });
net('Tile', 'Tile', [[2, 3], ints(2, 3)]);
net('Tile scalar', 'Tile', [[], { ints: [], dims: [0] }]);
net('DepthToSpace DCR', 'DepthToSpace', [[1, 8, 2, 3]], { blocksize: 2n });
net('DepthToSpace CRD', 'DepthToSpace', [[2, 8, 2, 3]], { blocksize: 2n, mode: 'CRD' });
net('SpaceToDepth', 'SpaceToDepth', [[2, 3, 4, 6]], { blocksize: 2n });
net('Trilu', 'Trilu', [[3, 4]]);
net('Trilu lower', 'Trilu', [[2, 4, 4], scalarInt(-1)], { upper: 0n });
net('Compress', 'Compress', [[4, 3], { bools: [1, 0, 1, 1], dims: [4] }], { axis: 0n });
net('CumSum', 'CumSum', [[2, 4], scalarInt(1)]);
net('CumSum exclusive', 'CumSum', [[2, 4], scalarInt(-1)], { exclusive: 1n });
net('CumSum reverse', 'CumSum', [[3, 2], scalarInt(0)], { reverse: 1n });
net('ReverseSequence', 'ReverseSequence', [[4, 3, 2], ints(1, 4, 2)]);
net('Gather rows', 'Gather', [[5, 3], { ints: [1, 4, 1, 0], dims: [2, 2] }]);
net('Gather negative', 'Gather', [[5, 3], ints(-1, 2, -1)]);
net('Gather columns', 'Gather', [[2, 5, 3], ints(1, 4, 1)], { axis: 1n });
net('Gather last', 'Gather', [[2, 5], { ints: [1, 4, 1, 0], dims: [2, 2] }], { axis: -1n });
net('Gather one', 'Gather', [[2, 5, 3], scalarInt(3)], { axis: 1n });
net('Gather one back', 'Gather', [[4, 3], scalarInt(-1)]);
net('GatherElements', 'GatherElements', [[3, 3], { ints: [1, 2, 0, 2, 0, 0], dims: [2, 3] }], { axis: 0n });
net('GatherND', 'GatherND', [[3, 4, 2], { ints: [0, 1, 2, 3, 0, 1], dims: [3, 2] }]);
net('GatherND batch', 'GatherND', [[2, 4, 2], { ints: [1, 3], dims: [2, 1] }], { batch_dims: 1n });
net('ScatterElements', 'ScatterElements', [[3, 3], { ints: [1, 0, 2, 0, 2, 1], dims: [2, 3] }, [2, 3]]);
net('ScatterElements add', 'ScatterElements', [[3, 3], { ints: [1, 0, 2, 1, 0, 2], dims: [2, 3] }, [2, 3]],
  { reduction: 'add' });
for (const reduction of ['mul', 'max', 'min']) {
  const some = (...dims) => range(0.5, 2, ...dims), rows = { ints: [0, 0, 1, 0, 2, 1], dims: [2, 3] };
  net(`ScatterElements ${reduction}`, 'ScatterElements', [some(3, 4), rows, some(2, 3)], { reduction }, { opset: 18 });
  net(`ScatterElements ${reduction} last`, 'ScatterElements', [some(2, 3), rows, some(2, 3)],
    { reduction, axis: -1n }, { opset: 18 });
  net(`ScatterND ${reduction}`, 'ScatterND', [some(4, 3), { ints: [2, 2, 0], dims: [3, 1] }, some(3, 3)],
    { reduction }, { opset: 18 });
}
net('ScatterElements mul zeros', 'ScatterElements', [{ reals: [0, 2, 3, 0, 5], dims: [5] }, ints(0, 1, 1, 2, 3),
  { reals: [2, 0, 3, 4, 0], dims: [5] }], { reduction: 'mul' }, { opset: 18, linear: true });
net('ScatterND', 'ScatterND', [[4, 3], { ints: [2, 0], dims: [2, 1] }, [2, 3]]);
net('ScatterND add', 'ScatterND', [[4, 3], { ints: [2, 2], dims: [2, 1] }, [2, 3]], { reduction: 'add' });
net('TopK', 'TopK', [range(-3, 3, 3, 5), ints(2)], {}, { outputs: 2, parts: [0] });

// ---- reductions ----
for (const op of ['ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceL1', 'ReduceL2', 'ReduceLogSum',
  'ReduceLogSumExp', 'ReduceProd', 'ReduceSumSquare']) {
  const x = range(0.3, 2, 2, 3, 4);
  const float = ['ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceProd'].includes(op);
  const sum = op === 'ReduceSum';
  const way = (axes) => (sum ? [x, ints(...axes)] : [x]);
  const attr = (axes) => (sum ? {} : { axes: axes.map(BigInt) });
  net(`${op} all`, op, [x], {}, { float });
  net(`${op} all flat`, op, [x], { keepdims: 0n }, { float });
  net(`${op} middle`, op, way([1]), attr([1]), { float });
  net(`${op} ends flat`, op, way([0, -1]), { ...attr([0, -1]), keepdims: 0n }, { float });
  net(`${op} 18`, op, [x, ints(2)], { keepdims: 0n }, { opset: 18, float });
}
net('ReduceProd zero', 'ReduceProd', [{ reals: [1, 0, 3, 2, 0.5, 2, 0, 3, 0], dims: [3, 3] }], { axes: [1n] },
  { linear: true, float: true });
net('ReduceSum nothing', 'ReduceSum', [[2, 3]], { noop_with_empty_axes: 1n });

// ---- softmax and losses ----
for (const op of ['Softmax', 'LogSoftmax']) {
  net(`${op} last`, op, [[2, 3, 4]]);
  net(`${op} middle`, op, [[2, 3, 4]], { axis: 1n });
  net(`${op} flattened`, op, [[2, 3, 2]], { axis: 1n }, { opset: 11 });
  net(`${op} old`, op, [[2, 3]], {}, { opset: 11 });
}
for (const reduction of ['mean', 'sum', 'none']) {
  for (const [what, labels, more] of [['', [0, 2, 1], {}], [' ignore', [0, -1, 1], { ignore_index: -1n }]]) {
    net(`SoftmaxCrossEntropyLoss ${reduction}${what}`, 'SoftmaxCrossEntropyLoss', [[3, 4], ints(...labels)],
      { reduction, ...more });
    net(`SoftmaxCrossEntropyLoss weights ${reduction}${what}`, 'SoftmaxCrossEntropyLoss',
      [[3, 4], ints(...labels), range(0.5, 1.5, 4)], { reduction, ...more }, { only: [0] });
    net(`NegativeLogLikelihoodLoss ${reduction}${what}`, 'NegativeLogLikelihoodLoss', [[3, 4], ints(...labels)],
      { reduction, ...more });
  }
}
net('SoftmaxCrossEntropyLoss images', 'SoftmaxCrossEntropyLoss',
  [[2, 3, 2, 2], { ints: [0, 1, 2, 0, 2, 1, 0, 0], dims: [2, 2, 2] }]);

// ---- normalisations ----
net('LayerNormalization', 'LayerNormalization', [[3, 5], [5], [5]]);
net('LayerNormalization axis', 'LayerNormalization', [[2, 3, 4], [3, 4], [3, 4]], { axis: 1n, epsilon: 0.01 });
net('LayerNormalization no bias', 'LayerNormalization', [[2, 3, 4], [4]]);
net('RMSNormalization', 'RMSNormalization', [[2, 3, 4], [4]], { epsilon: 0.01 }, { opset: 23, float: true });
net('InstanceNormalization', 'InstanceNormalization', [[2, 3, 4, 2], [3], [3]], {}, { float: true });
net('InstanceNormalization 1-D', 'InstanceNormalization', [[2, 3, 5], [3], [3]], {}, { float: true });
net('GroupNormalization 18', 'GroupNormalization', [[2, 4, 3, 2], [2], [2]], { num_groups: 2n },
  { opset: 18, float: true });
net('GroupNormalization 21', 'GroupNormalization', [[2, 4, 3, 2], [4], [4]], { num_groups: 2n },
  { opset: 21, float: true });
const statistics = [{ reals: [0.1, -0.2, 0.3], dims: [3] }, { reals: [0.8, 1.2, 0.5], dims: [3] }];
net('BatchNormalization frozen', 'BatchNormalization', [[2, 3, 2, 2], [3], [3], ...statistics], { epsilon: 0.01 },
  { only: [0, 1, 2] });
net('BatchNormalization frozen 2-D', 'BatchNormalization', [[4, 3], [3], [3], ...statistics], {},
  { only: [0, 1, 2] });
net('BatchNormalization training', 'BatchNormalization', [[2, 3, 2, 2], [3], [3], ...statistics],
  { epsilon: 0.01, training_mode: 1n }, { only: [0, 1, 2], outputs: 3, parts: [0], float: true });
net('LpNormalization 2', 'LpNormalization', [[3, 4]], {});
net('LpNormalization 1', 'LpNormalization', [range(0.2, 2, 3, 4)], { p: 1n, axis: 0n });
net('LRN', 'LRN', [[2, 5, 2, 2]], { size: 3n, alpha: 0.5, beta: 0.75, bias: 1 }, { float: true });
net('LRN wide', 'LRN', [[1, 6, 2, 1]], { size: 5n, alpha: 0.5, beta: 0.6, bias: 2 }, { float: true });
net('MeanVarianceNormalization', 'MeanVarianceNormalization', [[2, 2, 3, 2]], {}, { float: true });

// ---- attention: [batch, heads, sequence, size], or [batch, sequence, heads * size] ----
const attention = (name, inputs, attrs = {}, options = {}) => net(`Attention ${name}`, 'Attention', inputs, attrs,
  { opset: 23, float: true, known: inputs[0].length === 3 ? [2] : [1, 3], ...options });
const mask = (...dims) => ({ bools: Array.from({ length: dims.reduce((a, b) => a * b) }, (_, i) => (i % 5 ? 1 : 0)), dims });
attention('', [[2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 3]]);
attention('causal', [[1, 2, 4, 2], [1, 2, 4, 2], [1, 2, 4, 2]], { is_causal: 1n });
attention('scale', [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]], { scale: 0.3 });
attention('bias', [[2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 4], [3, 5]]);
attention('bias of heads', [[2, 2, 3, 4], [2, 2, 5, 4], [2, 2, 5, 4], [1, 2, 3, 5]]);
attention('mask', [[2, 2, 3, 4], [2, 2, 6, 4], [2, 2, 6, 4], mask(3, 6)]);
attention('mask of batches', [[2, 2, 3, 4], [2, 2, 6, 4], [2, 2, 6, 4], mask(2, 1, 3, 6)]);
attention('groups', [[2, 4, 3, 4], [2, 2, 5, 4], [2, 2, 5, 3]]);
attention('groups causal', [[1, 6, 3, 2], [1, 2, 3, 2], [1, 2, 3, 2]], { is_causal: 1n });
attention('one for all', [[1, 3, 3, 2], [1, 1, 4, 2], [1, 1, 4, 2], [3, 4]]);
attention('flat', [[2, 3, 8], [2, 5, 8], [2, 5, 6]], { q_num_heads: 2n, kv_num_heads: 2n });
attention('flat groups', [[2, 3, 8], [2, 5, 4], [2, 5, 4]], { q_num_heads: 4n, kv_num_heads: 2n });
attention('flat causal bias', [[1, 4, 6], [1, 4, 6], [1, 4, 6], [4, 4]],
  { q_num_heads: 2n, kv_num_heads: 2n, is_causal: 1n });
attention('cap', [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]], { softcap: 1.5 });
attention('cap bias causal', [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [3, 3]], { softcap: 1.5, is_causal: 1n });
attention('cap mask', [[2, 2, 3, 4], [2, 2, 6, 4], [2, 2, 6, 4], mask(3, 6)], { softcap: 0.8 });
attention('causal of more keys', [[1, 2, 3, 2], [1, 2, 5, 2], [1, 2, 5, 2]], { is_causal: 1n });
attention('causal of fewer keys', [[1, 2, 5, 2], [1, 2, 3, 2], [1, 2, 3, 2]], { is_causal: 1n });
attention('causal mask', [[1, 2, 4, 2], [1, 2, 4, 2], [1, 2, 4, 2], mask(4, 4)], { is_causal: 1n });
attention('mask of nothing', [[1, 2, 2, 2], [1, 2, 3, 2], [1, 2, 3, 2], { bools: [0, 0, 0, 1, 0, 1], dims: [2, 3] }]);
attention('24', [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4], [3, 3]], { softcap: 1.5 }, { opset: 24 });
const rotary = (name, inputs, attrs = {}) => net(`RotaryEmbedding ${name}`, 'RotaryEmbedding', inputs, attrs,
  { opset: 23, float: true, linear: true, only: [0], known: inputs[0].length === 3 ? [2] : [1, 3] });
const places = { ints: [0, 1, 2, 5, 3, 1], dims: [2, 3] };
rotary('', [[2, 2, 3, 4], [6, 2], [6, 2], places]);
rotary('interleaved', [[2, 2, 3, 4], [6, 2], [6, 2], places], { interleaved: 1n });
rotary('flat', [[2, 3, 8], [6, 2], [6, 2], places], { num_heads: 2n });
rotary('part', [[2, 2, 3, 6], [6, 2], [6, 2], places], { rotary_embedding_dim: 4n });
rotary('part interleaved flat', [[2, 3, 12], [6, 2], [6, 2], places],
  { rotary_embedding_dim: 4n, interleaved: 1n, num_heads: 2n });
rotary('by place', [[2, 2, 3, 4], [2, 3, 2], [2, 3, 2]]);

// ---- convolutions ----
const conv = (name, x, w, attrs, options = {}) => net(`Conv ${name}`, 'Conv', [x, w, [w[0]]], attrs,
  { linear: true, float: true, fixed: true, ...options });
conv('point', [2, 3, 4, 4], [5, 3, 1, 1], {});
conv('point strided', [2, 3, 5, 5], [4, 3, 1, 1], { strides: [2n, 2n] });
conv('point large', [2, 3, 15, 15], [4, 3, 1, 1], {});
conv('3x3', [2, 3, 5, 5], [4, 3, 3, 3], { pads: [1n, 1n, 1n, 1n] });
conv('3x3 large', [1, 2, 20, 21], [3, 2, 3, 3], { pads: [1n, 1n, 1n, 1n] });
conv('3x3 valid', [2, 3, 5, 6], [4, 3, 3, 3], {});
conv('3x3 strided', [2, 3, 6, 6], [4, 3, 3, 3], { pads: [1n, 1n, 1n, 1n], strides: [2n, 2n] });
conv('3x3 strided odd', [2, 3, 7, 8], [4, 3, 3, 3], { pads: [1n, 1n, 1n, 1n], strides: [2n, 3n] });
conv('2x3 dilated', [2, 3, 7, 9], [4, 3, 2, 3], { dilations: [2n, 2n], pads: [1n, 2n, 0n, 1n] });
conv('dilated strided', [1, 2, 9, 9], [3, 2, 3, 3], { dilations: [2n, 1n], strides: [1n, 2n] });
conv('many channels', [2, 18, 5, 5], [4, 18, 3, 3], { pads: [1n, 1n, 1n, 1n] });
conv('many channels strided', [2, 18, 6, 7], [4, 18, 3, 2], { pads: [1n, 0n, 1n, 1n], strides: [2n, 2n] });
conv('point strided many', [2, 18, 5, 5], [4, 18, 1, 1], { strides: [2n, 2n] });
conv('groups', [2, 4, 5, 5], [6, 2, 3, 3], { group: 2n, pads: [1n, 1n, 1n, 1n] });
conv('groups large', [1, 4, 20, 20], [4, 2, 3, 3], { group: 2n, pads: [1n, 1n, 1n, 1n] });
conv('groups point', [2, 4, 4, 4], [6, 2, 1, 1], { group: 2n });
conv('groups strided', [2, 4, 6, 6], [4, 2, 3, 3], { group: 2n, strides: [2n, 2n] });
conv('depthwise', [2, 3, 5, 5], [3, 1, 3, 3], { group: 3n, pads: [1n, 1n, 1n, 1n] });
conv('depthwise strided', [2, 3, 6, 6], [3, 1, 3, 3], { group: 3n, pads: [1n, 1n, 1n, 1n], strides: [2n, 2n] });
conv('depthwise 5x5', [2, 2, 7, 7], [2, 1, 5, 5], { group: 2n, pads: [2n, 2n, 2n, 2n] });
conv('depthwise double', [2, 3, 5, 5], [6, 1, 3, 3], { group: 3n, pads: [1n, 1n, 1n, 1n] });
conv('1-D', [2, 3, 8], [4, 3, 3], { pads: [1n, 1n] });
conv('1-D strided', [2, 3, 9], [4, 3, 4], { strides: [3n], pads: [0n, 1n] });
conv('3-D', [1, 2, 4, 4, 3], [3, 2, 2, 2, 2], { pads: [1n, 0n, 0n, 0n, 1n, 0n] });
conv('same upper', [2, 3, 6, 5], [4, 3, 3, 2], { auto_pad: 'SAME_UPPER' });
conv('same lower', [2, 3, 6, 5], [4, 3, 3, 2], { auto_pad: 'SAME_LOWER' });
conv('same strided', [2, 3, 7, 6], [4, 3, 3, 3], { auto_pad: 'SAME_UPPER', strides: [2n, 2n] }, { sizes: true });
conv('valid', [2, 3, 6, 5], [4, 3, 3, 2], { auto_pad: 'VALID' });
conv('wide pads', [1, 2, 4, 4], [2, 2, 2, 2], { pads: [2n, 2n, 2n, 2n] });
const up = (name, x, w, group, attrs, options = {}) => net(`ConvTranspose ${name}`, 'ConvTranspose',
  [x, w, [w[1] * group]], { ...attrs, group: BigInt(group) }, { linear: true, float: true, fixed: true, ...options });
up('2x2', [2, 3, 4, 4], [3, 2, 2, 2], 1, { strides: [2n, 2n] });
up('3x3', [2, 3, 4, 4], [3, 2, 3, 3], 1, { pads: [1n, 1n, 1n, 1n] });
up('strided', [2, 3, 4, 4], [3, 2, 3, 3], 1, { strides: [2n, 3n], pads: [1n, 0n, 1n, 1n], output_padding: [1n, 0n] });
up('groups', [2, 4, 4, 4], [4, 2, 3, 3], 2, { strides: [2n, 2n] });
up('depthwise', [2, 3, 4, 4], [3, 1, 3, 3], 3, { strides: [2n, 2n], pads: [1n, 1n, 0n, 0n] });
up('dilated', [1, 2, 5, 5], [2, 3, 2, 2], 1, { dilations: [2n, 1n] });
up('1-D', [2, 3, 5], [3, 2, 4], 1, { strides: [2n] });
up('same', [1, 2, 4, 4], [2, 2, 3, 3], 1, { strides: [2n, 2n], auto_pad: 'SAME_UPPER' });
up('shape', [1, 2, 4, 4], [2, 2, 3, 3], 1, { strides: [2n, 2n], output_shape: [8n, 9n] }, { sizes: true });
up('many', [1, 3, 4, 4], [3, 18, 3, 3], 1, { strides: [2n, 2n] });

// ---- pools ----
const pool = (name, op, x, attrs, options = {}) => net(`${op} ${name}`, op, [x], attrs,
  { float: op !== 'MaxPool', linear: op !== 'MaxPool', ...options });
for (const op of ['MaxPool', 'AveragePool']) {
  pool('2x2', op, [2, 3, 4, 4], { kernel_shape: [2n, 2n], strides: [2n, 2n] });
  pool('overlap', op, [2, 3, 6, 5], { kernel_shape: [3n, 3n], strides: [2n, 1n] });
  pool('padded', op, [2, 3, 5, 5], { kernel_shape: [3n, 3n], strides: [2n, 2n], pads: [1n, 1n, 1n, 1n] });
  pool('ceil', op, [1, 2, 6, 7], { kernel_shape: [3n, 2n], strides: [2n, 2n], ceil_mode: 1n });
  pool('1-D', op, [2, 3, 7], { kernel_shape: [3n], strides: [2n] });
  pool('3-D', op, [1, 2, 4, 4, 4], { kernel_shape: [2n, 2n, 2n], strides: [2n, 2n, 1n] });
  pool('same', op, [1, 2, 5, 6], { kernel_shape: [3n, 2n], strides: [2n, 2n], auto_pad: 'SAME_UPPER' }, { sizes: true });
}
pool('include', 'AveragePool', [2, 3, 5, 5],
  { kernel_shape: [3n, 3n], strides: [2n, 2n], pads: [1n, 1n, 1n, 1n], count_include_pad: 1n });
const apart = { dilations: [3n, 2n], strides: [2n, 1n] };
for (const [what, attrs] of [['', {}], [' padded', { pads: [1n, 2n, 1n, 1n] }],
  [' ceil', { pads: [1n, 1n, 1n, 1n], ceil_mode: 1n, dilations: [2n, 2n], strides: [2n, 3n] }],
  [' include', { pads: [1n, 1n, 1n, 1n], count_include_pad: 1n }]]) {
  pool(`dilated${what}`, 'AveragePool', [1, 2, 9, 8], { kernel_shape: [2n, 3n], ...apart, ...attrs }, { opset: 19 });
}
pool('dilated', 'MaxPool', [1, 2, 7, 7], { kernel_shape: [2n, 2n], dilations: [2n, 3n] });
for (const op of ['GlobalAveragePool', 'GlobalMaxPool']) {
  pool('', op, [2, 3, 4, 5], {}, { linear: op === 'GlobalAveragePool', float: true });
  pool('1-D', op, [2, 3, 4], {}, { linear: op === 'GlobalAveragePool', float: true });
}

// ---- Resize ----
const reals = (...values) => ({ reals: values, dims: [values.length], type: 'float32' });
const resize = (name, x, inputs, attrs, options = {}) => net(`Resize ${name}`, 'Resize', [x, ...inputs], attrs,
  { float: true, linear: true, only: [0], ...options });
resize('nearest x2', [1, 2, 3, 4], [null, reals(1, 1, 2, 2)],
  { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' });
resize('nearest down', [1, 2, 7, 5], [null, reals(1, 1, 0.5, 0.7)], { mode: 'nearest' });
resize('linear x2', [2, 2, 3, 4], [null, reals(1, 1, 2, 2)],
  { mode: 'linear', coordinate_transformation_mode: 'pytorch_half_pixel' });
resize('linear corners', [1, 2, 3, 4], [null, null, ints(1, 2, 5, 7)],
  { mode: 'linear', coordinate_transformation_mode: 'align_corners' });
resize('linear down', [1, 2, 8, 6], [null, reals(1, 1, 0.6, 0.5)], { mode: 'linear' });
resize('cubic', [1, 2, 4, 5], [null, reals(1, 1, 2, 1.5)], { mode: 'cubic', cubic_coeff_a: -0.5 });
resize('one axis', [1, 2, 3, 4], [null, reals(1, 1, 1, 2)], { mode: 'linear' });
resize('1-D', [1, 2, 5], [null, reals(1, 1, 2)], { mode: 'linear' });
// Scales that leave a size as it is, by rounding, and move what is between all the same.
for (const mode of ['nearest', 'linear', 'cubic']) {
  resize(`${mode} stays`, [1, 2, 5, 4], [null, reals(1, 1, 1.1, 2)], { mode });
  resize(`${mode} all stay`, [1, 2, 5, 5], [null, reals(1, 1, 1.1, 1.15)], { mode });
}
resize('axes', [1, 2, 3, 4], [null, reals(1.5, 2)], { mode: 'linear', axes: [-1n, 2n] }, { opset: 18 });
resize('axes sizes', [1, 2, 3, 4], [null, null, ints(5, 4)], { mode: 'nearest', axes: [3n, 2n] }, { opset: 18 });
resize('opset 10 stays', [1, 2, 5, 4], [reals(1, 1, 1.1, 2)], { mode: 'linear' }, { opset: 10 });
resize('opset 10', [1, 2, 3, 4], [reals(1, 1, 2, 2)], { mode: 'nearest' }, { opset: 10 });
resize('opset 10 linear', [1, 2, 3, 4], [reals(1, 1, 2, 3)], { mode: 'linear' }, { opset: 10 });
net('Upsample 9', 'Upsample', [[1, 2, 3, 4], reals(1, 1, 2, 3)], { mode: 'nearest' },
  { opset: 9, float: true, linear: true, only: [0] });
net('Upsample 7', 'Upsample', [[1, 2, 3, 4]], { mode: 'linear', scales: [1, 1, 2, 2] },
  { opset: 7, float: true, linear: true });
net('Upsample 7 stays', 'Upsample', [[1, 2, 5, 4]], { mode: 'linear', scales: [1, 1, 1.1, 2] },
  { opset: 7, float: true, linear: true });

// ---- recurrent: x [T, N, I], weights, no lengths, first states ----
for (const direction of ['forward', 'reverse', 'bidirectional']) {
  const d = direction === 'bidirectional' ? 2 : 1;
  const small = (...dims) => range(-0.8, 0.8, ...dims);
  const rnn = (name, op, gates, attrs = {}, options = {}) => net(`${op} ${direction}${name}`, op,
    [small(4, 2, 3), small(d, gates * 2, 3), small(d, gates * 2, 2), small(d, gates * 4), null, small(d, 2, 2),
      ...(op === 'LSTM' ? [small(d, 2, 2)] : [])],
    { hidden_size: 2n, direction, ...attrs }, { outputs: op === 'LSTM' ? 3 : 2, float: true, ...options });
  rnn('', 'LSTM', 4);
  rnn(' last', 'LSTM', 4, {}, { outputs: 3, parts: [1], omit: [0] });
  rnn(' cell', 'LSTM', 4, {}, { parts: [2] });
  rnn('', 'GRU', 3);
  rnn(' after', 'GRU', 3, { linear_before_reset: 1n });
  rnn(' last', 'GRU', 3, {}, { parts: [1], omit: [0] });
  rnn('', 'RNN', 1);
  rnn(' last', 'RNN', 1, {}, { parts: [1] });
  net(`LSTM ${direction} bare`, 'LSTM', [small(3, 2, 3), small(d, 8, 3), small(d, 8, 2)], { hidden_size: 2n, direction },
    { float: true });
  net(`GRU ${direction} bare`, 'GRU', [small(3, 2, 3), small(d, 6, 3), small(d, 6, 2)], { hidden_size: 2n, direction },
    { float: true });
}

// ---- what optimisers of transformers write ----
const fused = (name, op, inputs, attrs = {}, options = {}) => net(`${op} ${name}`, op, inputs, attrs,
  { domain: 'com.microsoft', float: true, ...options });
const words = (dims, ...values) => ({ ints: values, dims, type: 'int32' });
fused('', 'Gelu', [range(-3, 3, 3, 5)]);
fused('', 'QuickGelu', [range(-3, 3, 3, 5)]);
fused('alpha', 'QuickGelu', [range(-3, 3, 3, 5)], { alpha: 1.2 });
fused('', 'BiasGelu', [range(-3, 3, 2, 3, 5), range(-1, 1, 5)]);
fused('', 'FastGelu', [range(-3, 3, 2, 3, 5), range(-1, 1, 5)]);
fused('alone', 'FastGelu', [range(-3, 3, 3, 5)]);
for (const [a, b, attrs] of [[[2, 3, 4], [4, 5], {}], [[2, 3, 4], [5, 4], { transB: 1n, alpha: 0.5 }],
  [[2, 4, 3], [4, 5], { transA: 1n }], [[2, 2, 4, 3], [2, 2, 5, 4], { transA: 1n, transB: 1n, alpha: 2 }],
  [[1, 4, 3], [2, 5, 4], { transA: 1n, transB: 1n }]]) {
  fused(`[${a}] [${b}] ${Object.keys(attrs)}`, 'FusedMatMul', [a, b], attrs, { linear: true });
}
fused('', 'TransposeMatMul', [[2, 3, 4], [2, 5, 4]], { transB: 1n, alpha: 0.5 }, { linear: true });
fused('batch', 'FusedMatMul', [[3, 2, 4], [2, 4, 5]], { transBatchA: 1n }, { linear: true });
fused('batch both', 'FusedMatMul', [[4, 2, 3], [5, 2, 4]],
  { transBatchA: 1n, transA: 1n, transBatchB: 1n, transB: 1n }, { linear: true });
for (const [activation, ...values] of [['Relu'], ['Tanh'], ['Sigmoid'], ['Softplus'], ['Softsign'], ['LeakyRelu', 0.2],
  ['ThresholdedRelu', 0.7], ['Elu', 0.6], ['Selu', 1.5, 0.7], ['HardSigmoid', 0.15, 0.5]]) {
  const named = ['activation_alpha', 'activation_beta'];
  const gamma = activation === 'Selu' ? ['activation_alpha', 'activation_gamma'] : named;
  fused(activation, 'FusedGemm', [range(-1, 1, 3, 4), range(-1, 1, 4, 5), range(-1, 1, 5)],
    { activation, ...Object.fromEntries(values.map((x, i) => [gamma[i], x])) });
}
fused('turned', 'FusedGemm', [[3, 4], [5, 4], [5]], { activation: 'Tanh', transB: 1n, alpha: 0.5, beta: 2 });
for (const [activation, ...activation_params] of [['Relu'], ['Tanh'], ['Sigmoid'], ['LeakyRelu', 0.2], ['Clip', -1, 2],
  ['HardSigmoid', 0.15, 0.5]]) {
  fused(activation, 'FusedConv', [range(-1, 1, 1, 2, 4, 4), range(-1, 1, 3, 2, 3, 3), range(-1, 1, 3)],
    { activation, ...(activation_params.length ? { activation_params } : {}), pads: [0n, 1n, 1n, 0n] }, { fixed: true });
}
fused('sum', 'FusedConv', [range(-1, 1, 1, 2, 4, 4), range(-1, 1, 3, 2, 3, 3), range(-1, 1, 3), range(-1, 1, 1, 3, 2, 2)],
  { activation: 'Relu' }, { fixed: true });
const skips = [[[2, 3, 6], [2, 3, 6]], [[2, 3, 6], [3, 6]], [[2, 3, 6], [1, 3, 6]]];
for (const [x, skip] of skips) {
  fused(`[${skip}]`, 'SkipLayerNormalization', [x, skip, range(0.5, 1.5, 6), [6], [6]], { epsilon: 0.01 });
}
fused('short', 'SkipLayerNormalization', [[2, 3, 6], [2, 3, 6], range(0.5, 1.5, 6)], { epsilon: 0.01 });
fused('sum', 'SkipLayerNormalization', [[2, 3, 6], [2, 3, 6], range(0.5, 1.5, 6), [6], [6]], { epsilon: 0.01 },
  { outputs: 4, omit: [1, 2], parts: [0, 3] });
fused('sum alone', 'SkipLayerNormalization', [[2, 3, 6], [2, 3, 6], range(0.5, 1.5, 6), [6], [6]], { epsilon: 0.01 },
  { outputs: 4, omit: [1, 2], parts: [3], only: [0, 1, 4] });
fused('', 'SkipSimplifiedLayerNormalization', [[2, 3, 6], [2, 3, 6], range(0.5, 1.5, 6), [6]], { epsilon: 0.01 },
  { outputs: 4, omit: [1, 2], parts: [0, 3] });
fused('short', 'SkipSimplifiedLayerNormalization', [[2, 3, 6], [2, 3, 6], range(0.5, 1.5, 6)], { epsilon: 0.01 });
const ids = words([2, 3], 1, 4, 1, 0, 2, 4), kinds = words([2, 3], 0, 1, 1, 0, 0, 1);
const embed = (name, inputs, attrs = {}, options = {}) => fused(name, 'EmbedLayerNormalization', inputs,
  { epsilon: 0.01, ...attrs }, { outputs: 2, parts: [0], known: [0, 1], ...options });
embed('', [ids, kinds, [5, 6], [4, 6], [2, 6], range(0.5, 1.5, 6), [6]]);
embed('two tables', [ids, null, [5, 6], [4, 6], null, range(0.5, 1.5, 6), [6]]);
embed('positions', [ids, kinds, [5, 6], [4, 6], [2, 6], range(0.5, 1.5, 6), [6], null, words([2, 3], 3, 1, 0, 2, 2, 1)]);
embed('sum', [ids, kinds, [5, 6], [4, 6], [2, 6], range(0.5, 1.5, 6), [6], null, words([1, 3], 3, 1, 0)],
  {}, { outputs: 3, parts: [0, 2] });
const small = (...dims) => range(-0.8, 0.8, ...dims);
const qkv = (name, more, attrs = {}, options = {}) => fused(name, 'Attention',
  [small(2, 3, 5), small(5, 12), small(12), ...more], { num_heads: 2n, ...attrs }, { known: [0], fixed: true, ...options });
qkv('', []);
qkv('no bias', [], {}, { only: [0, 1] });
qkv('causal', [], { unidirectional: 1n });
qkv('lengths', [words([2], 2, 3)]);
qkv('keys', [words([2, 3], 1, 1, 0, 1, 0, 1)]);
qkv('keys causal', [words([2, 3], 1, 1, 0, 1, 0, 1)], { unidirectional: 1n, scale: 0.7 });
qkv('queries and keys', [words([2, 3, 3], 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1)]);
qkv('light mask', [words([2, 3], 1, 1, 0, 1, 0, 1)], { mask_filter_value: -1 });
qkv('added', [null, null, small(2, 2, 3, 3)]);
qkv('added once', [words([2, 3], 1, 1, 0, 1, 0, 1), null, small(1, 2, 3, 3)]);
fused('sizes', 'Attention', [small(2, 3, 5), small(5, 14), small(14)],
  { num_heads: 2n, qkv_hidden_sizes: [4n, 4n, 6n] }, { fixed: true });
const heads = (name, inputs, attrs = {}, options = {}) => fused(name, 'MultiHeadAttention', inputs,
  { num_heads: 2n, ...attrs }, { known: [0, 2], ...options });
heads('', [small(2, 3, 4), small(2, 5, 4), small(2, 5, 6)]);
heads('bias', [small(2, 3, 4), small(2, 5, 4), small(2, 5, 6), small(14)]);
heads('causal', [small(2, 3, 4), small(2, 3, 4), small(2, 3, 4), small(12)], { unidirectional: 1n });
heads('keys', [small(2, 3, 4), small(2, 3, 4), small(2, 3, 4), small(12), words([2, 3], 1, 1, 0, 1, 0, 1)]);
heads('lengths', [small(2, 3, 4), small(2, 5, 4), small(2, 5, 4), null, words([2], 2, 4)]);
heads('added', [small(2, 3, 4), small(2, 5, 4), small(2, 5, 4), small(12), null, small(1, 2, 3, 5)], { scale: 0.6 });
heads('apart', [small(2, 3, 4), small(2, 2, 5, 2), small(2, 2, 5, 2)], {}, { known: [0, 1, 2, 3] });
const angle = { ...range(-1, 1, 6, 2), type: 'float32' }, wide = { ...range(-1, 1, 6, 1), type: 'float32' };
const positions = (...dims) => ({ ints: Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => (i * 5) % 6), dims });
const turn = (name, inputs, attrs = {}) => fused(name, 'RotaryEmbedding', inputs, attrs,
  { linear: true, only: [0], known: [1, 2, 3] });
turn('first', [[2, 3, 8], { ints: [2], dims: [1] }, angle, angle]);
turn('each', [[2, 3, 8], positions(2, 3), angle, angle], { interleaved: 1n });
turn('apart', [[2, 2, 3, 4], positions(2, 3), angle, angle]);
turn('part', [[2, 3, 8], positions(2, 3), wide, wide], { num_heads: 2n, rotary_embedding_dim: 2n });

// ---- what came later: the place of a net draws its numbers ----
for (const op of ['ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp',
  'ReduceProd', 'ReduceSumSquare']) {
  net(`${op} nothing`, op, [range(op === 'ReduceLogSum' ? 0.3 : -2, 2, 2, 3)], { noop_with_empty_axes: 1n },
    { opset: 18, float: true });
}
net('MeanVarianceNormalization axes', 'MeanVarianceNormalization', [[2, 2, 3, 2]], { axes: [1n, 3n] }, { float: true });
conv('same between', [1, 2, 6, 4], [2, 2, 1, 1], { auto_pad: 'SAME_UPPER', strides: [2n, 3n] }, { sizes: true });
up('same between', [1, 2, 4, 4], [2, 2, 1, 1], 1, { strides: [2n, 3n], auto_pad: 'SAME_UPPER' });
up('same lower', [1, 2, 4, 4], [2, 2, 3, 4], 1, { strides: [2n, 1n], auto_pad: 'SAME_LOWER' });
for (const op of ['MaxPool', 'AveragePool']) {
  pool('same lower', op, [1, 2, 5, 6], { kernel_shape: [4n, 2n], strides: [3n, 2n], auto_pad: 'SAME_LOWER' },
    { sizes: true });
}
pool('same between', 'MaxPool', [1, 2, 6, 4], { kernel_shape: [1n, 2n], strides: [2n, 3n], auto_pad: 'SAME_UPPER' },
  { sizes: true });

// ---- the same with contents that only a run tells, where these leave the rank of the result known ----
const given = (input) => input?.ints || input?.bools;
const hides_rank = ({ op }) => /^(Reshape|Unsqueeze|Squeeze|Expand|Resize|Reduce|GatherND)/.test(op);
for (const each of list.filter(({ inputs, ...rest }) => inputs.some(given) && !hides_rank(rest))) {
  const open = each.inputs.flatMap((input, i) => (given(input) ? [i] : []));
  net(`${each.name} open`, each.op, each.inputs, each.attrs, { ...each, name: `${each.name} open`, open });
}
net('Slice open axes', 'Slice', [[4, 5], ints(1), ints(3), ints(1)], {}, { open: [3] });
// What came after those: nets of nets would draw other numbers.
net('Pow types', 'Pow', [range(0.5, 2, 3, 3), { ...range(-2, 2, 3), as: 'float64' }], {}, { float: true });
qkv('x alone', [], {}, { only: [0] });
qkv('weight alone', [], {}, { only: [1] });
qkv('bias alone', [], {}, { only: [2] });
qkv('added alone', [null, null, small(2, 2, 3, 3)], {}, { only: [5] });
const short = (dims, ...values) => ({ ints: values, dims, type: 'int32' });
net('Gather int32', 'Gather', [[5, 3], short([2, 2], 1, -1, 1, 0)]);
net('Gather int32 open', 'Gather', [[5, 3], short([2, 2], 1, -1, 1, 0)], {}, { open: [1] });
net('Gather int32 columns', 'Gather', [[2, 5, 3], short([3], 1, 4, 1)], { axis: 1n });
net('Gather int32 one', 'Gather', [[2, 5, 3], short([], -2)], { axis: 1n });
net('GatherElements int32', 'GatherElements', [[3, 3], short([2, 3], 1, -1, 0, -2, 0, 0)], { axis: 0n });
net('ScatterElements int32', 'ScatterElements', [[3, 3], short([2, 3], 1, 0, -1, 0, 2, 1), [2, 3]]);
net('Slice int32', 'Slice', [[4, 5], short([2], -1, 0), short([2], -9, 4), short([2], 1, 0), short([2], -1, 1)]);
net('CumSum int32', 'CumSum', [[2, 4], short([], -2)], { exclusive: 1n, reverse: 1n });
for (const outputs of [1, 2]) {
  pool(`by columns ${outputs}`, 'MaxPool', [1, 2, 6, 5], { kernel_shape: [2n, 3n], strides: [2n, 1n], storage_order: 1n },
    { outputs, parts: [0] });
}
// Of a rank that only a run tells.
net('Reshape open', 'Reshape', [[2, 3, 4], ints(6, -1)], {}, { open: [1] });
net('Squeeze all', 'Squeeze', [[2, 1, 3, 1]]);

export { list as cases };
