// Cases in the language of cases.mjs, generated: all that a few small numbers make of the attributes
// of an operator, so that a rule is held against what ONNX Runtime does, clamps and corners included.

// Every choice of one value from each list, as an object.
function* product(lists) {
  const [[key, values], ...rest] = Object.entries(lists);
  for (const value of values) {
    if (!rest.length) yield { [key]: value };
    else for (const others of product(Object.fromEntries(rest))) yield { [key]: value, ...others };
  }
}

const given = (attributes) =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));

// Sizes by turns as symbols and as numbers.
const sized = (sizes, i) => sizes.map((n) => (i % 2 ? `s${n}=${n}` : `${n}`)).join(',');

const ways = [
  ...[[0, 0], [1, 0], [0, 1], [2, 1]].map((pads) => ({ pads })),
  ...['VALID', 'SAME_UPPER', 'SAME_LOWER'].map((auto_pad) => ({ auto_pad })),
];

// ONNX says nothing of a window that is larger than the padded input; ONNX Runtime computes with rounding
// to zero then, where inference follows only for numbers.
const fits = (n, kernel, dilation, { pads = [0, 0], auto_pad = '' }) =>
  auto_pad.startsWith('SAME') || n + pads[0] + pads[1] > dilation * (kernel - 1);

function* windows(op, opset, inputs, more, lists) {
  let i = 0;
  for (const { n, kernel, stride, dilation, way, extra } of product({
    n: [1, 2, 3, 4, 5, 8], kernel: [1, 2, 3], stride: [1, 2, 3], dilation: [1, 2], way: ways,
    extra: [{}], ...lists,
  })) {
    i += 1;
    yield [op, opset, inputs(n, kernel, fits(n, kernel, dilation, way) ? i : 0), given({
      kernel_shape: [kernel], strides: [stride], dilations: dilation > 1 ? [dilation] : undefined,
      ...way, ...extra,
    }), ...more];
  }
}

const conv = (n, kernel, i) => [`f ${sized([1, 2, n], i)}`, `f 3,2,${kernel}`];
const convInteger = (n, kernel, i) => [`u8 ${sized([1, 2, n], i)}`, `u8 3,2,${kernel}`];
const transposed = (n, kernel, i) => [`f ${sized([1, 2, n], i)}`, `f 2,3,${kernel}`];
const pooled = (n, kernel, i) => [`f ${sized([1, 2, n], i)}`];
const rounding = { extra: [{}, { ceil_mode: 1 }] };

// Two spatial axes that differ.
function* transposedImages() {
  let i = 0;
  for (const { a, b, kernel, stride, way, extra } of product({
    a: [1, 3], b: [2, 5], kernel: [1, 2, 3], stride: [1, 2, 4],
    way: [{}, { pads: [1, 0, 0, 1] }, { auto_pad: 'SAME_UPPER' }, { auto_pad: 'SAME_LOWER' }],
    extra: [{}, { output_padding: [1, 0] }, { output_shape: [7, 9] }, { output_shape: [1, 3, 7, 9] },
      { output_shape: [2, 2], output_padding: [0, 1] }],
  })) {
    i += 1;
    yield ['ConvTranspose', 11, [`f ${sized([1, 2, a, b], i)}`, `f 2,3,${kernel},2`],
      { strides: [stride, 3], ...way, ...extra }];
  }
}

const far = ['-9223372036854775808', '-9223372036854775807', '-2147483648', '-2147483647',
  '2147483647', '2147483648', '9223372036854775807'];
const bounds = [...[-7, -6, -5, -4, -2, -1, 0, 1, 2, 4, 5, 6, 7].map(String), ...far];

function* slices() {
  let i = 0;
  for (const { n, start, end, step } of product({
    n: [0, 1, 2, 5], start: bounds, end: bounds, step: ['1', '2', '-1', '-2', '-3'],
  })) {
    i += 1;
    yield ['Slice', 13, [`f ${sized([2, n], i)}`, `i64 1: ${start}`, `i64 1: ${end}`, 'i64 1: -1',
      `i64 1: ${step}`]];
  }
  for (const { start, end, step } of product({
    start: bounds, end: bounds, step: [...far, '3', '-7'],
  })) yield ['Slice', 13, ['f s2=2,s5=5', `i64 1: ${start}`, `i64 1: ${end}`, 'i64 1: 1', `i64 1: ${step}`]];
}

// The contents of a list, as the sizes of what it makes: of numbers, and of a shape.
function* slicedLists() {
  for (const { start, end, step, input } of product({
    start: bounds, end: bounds, step: ['1', '2', '-1', '-2', '-3', '9223372036854775807', far[0]],
    input: [['i64 5: 2 3 4 5 6', {}], ['f s2=2,s3=3,s4=4,s5=5,6', { before: 'Shape' }]],
  })) {
    yield ['Slice', 13, [input[0], `i64 1: ${start}`, `i64 1: ${end}`, 'i64 1: 0', `i64 1: ${step}`], {}, 1,
      { after: 'ConstantOfShape', ...input[1] }];
  }
}

// Before opset 10, and several axes at once.
function* otherSlices() {
  const few = [-7, -5, -3, 0, 2, 5, 7, 2147483647];
  let i = 0;
  for (const { start, end, axes } of product({ start: few, end: few, axes: [undefined, [1], [-2]] })) {
    i += 1;
    yield ['Slice', 9, [`f ${sized([5, 4], i)}`], given({ starts: [start], ends: [end], axes })];
  }
  for (const { start, end, step } of product({ start: few, end: few, step: [1, -1, 2, -2] })) {
    i += 1;
    yield ['Slice', 11, [`f ${sized([5, 4, 3], i)}`, `i64 2: ${start} ${end}`, `i64 2: ${end} ${start}`,
      'i64 2: 2 -3', `i64 2: ${step} ${-step}`]];
    yield ['Slice', 10, [`f ${sized([5, 4], i)}`, `i32 2: ${start} 1`, `i32 2: ${end} 3`]];
  }
}

function* padded() {
  let i = 0;
  for (const { n, begin, end, mode } of product({
    n: [1, 3, 5], begin: [-2, -1, 0, 1, 3], end: [-2, -1, 0, 2],
    mode: ['constant', 'edge', 'reflect', 'wrap'],
  })) {
    i += 1;
    const input = `f ${sized([2, n], i)}`;
    yield ['Pad', 19, [input, `i64 2: ${begin} ${end}`, '-', 'i64 1: -1'], { mode }];
    if (mode === 'wrap') continue;
    yield ['Pad', 13, [input, `i64 4: 0 ${begin} 1 ${end}`], { mode }];
    yield ['Pad', 2, [input], { mode, pads: [1, begin, 0, end] }];
  }
}

function* unpooled() {
  let i = 0;
  for (const { n, kernel, stride, pads } of product({
    n: [1, 2, 4], kernel: [1, 2, 3], stride: [1, 2, 3], pads: [undefined, [0, 0], [1, 0], [0, 1]],
  })) {
    i += 1;
    yield ['MaxUnpool', 11, [`f ${sized([1, 1, n], i)}`, `i64 1,1,${n}: ${[...Array(n).keys()].join(' ')}`],
      given({ kernel_shape: [kernel], strides: [stride], pads })];
  }
}

// Name of a sweep -> its cases.
export const sweeps = {
  Conv: () => windows('Conv', 11, conv, []),
  ConvInteger: () => windows('ConvInteger', 10, convInteger, [], { dilation: [1] }),
  ConvTranspose: () => windows('ConvTranspose', 11, transposed, [], {
    n: [1, 2, 3, 5], kernel: [1, 2, 3, 4], stride: [1, 2, 3, 5],
    extra: [{}, { output_padding: [1] }, { output_shape: [1] }, { output_shape: [6] },
      { output_shape: [17] }],
  }),
  'ConvTranspose of images': transposedImages,
  MaxPool: () => windows('MaxPool', 12, pooled, [], rounding),
  'MaxPool with places': () => windows('MaxPool', 12, pooled, [2], { ...rounding, dilation: [1] }),
  'AveragePool 11': () => windows('AveragePool', 11, pooled, [], { ...rounding, dilation: [1] }),
  'AveragePool 19': () => windows('AveragePool', 19, pooled, [], rounding),
  'LpPool 11': () => windows('LpPool', 11, pooled, [], { dilation: [1] }),
  'LpPool 18': () => windows('LpPool', 18, pooled, [], rounding),
  MaxUnpool: unpooled,
  Slice: slices,
  'Slice of lists': slicedLists,
  'Slice otherwise': otherSlices,
  Pad: padded,
};
