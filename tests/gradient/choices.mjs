// What is trained, what is refused and how that is said: node choices.mjs MAKE_TRAINING
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';
import { graph, localFunction, model, node, tensor, value } from './onnx.mjs';

const [tool] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-choices-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

function make(bytes, loss, ...options) {
  const file = join(tmp, 'model.onnx');
  writeFileSync(file, bytes);
  const made = spawnSync(tool, { input: `${[file, tmp, loss, ...options].join('\t')}\n`, encoding: 'utf8',
    maxBuffer: 1 << 28 });
  if (made.status !== 0) return { error: `status ${made.status} ${made.signal}` };
  return JSON.parse(made.stdout);
}
const weight = (...dims) =>
  tensor('float32', dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => (i % 5) / 7 - 0.3));

// x -> MatMul(w1) -> middle -> MatMul(w2) -> y
const around = (middle, { opset, domains, functions, initializers = {} } = {}) => model({
  opset, domains, functions,
  nodes: [node('MatMul', ['x', 'w1'], ['a']), ...middle, node('MatMul', ['b', 'w2'], ['y'])],
  inputs: [value('x', 'float32', ['n', 4])], outputs: [value('y', 'float32', ['n', 4])],
  initializers: { w1: weight(4, 4), w2: weight(4, 4), ...initializers },
});
const branch = (op) => graph({ nodes: [node(op, ['a'], ['out'])], outputs: [value('out', 'float32', ['n', 4])] });

// ---- refused on the path to a weight, left alone elsewhere ----
const refused = {
  If: around([node('If', ['yes'], ['b'], { then_branch: branch('Tanh'), else_branch: branch('Neg') })],
    { initializers: { yes: tensor('bool', [], [1]) } }),
  'com.microsoft.Inverse': around([node('Inverse', ['a'], ['b'], {}, 'com.microsoft')], { domains: ['com.microsoft'] }),
  'local.Twist': around([node('Twist', ['a'], ['b'], {}, 'local')],
    { domains: ['local'], functions: [localFunction('Twist', 'Tanh')] }),
  Det: around([node('Det', ['a'], ['d']), node('Expand', ['d', 'shape'], ['b'])],
    { initializers: { shape: tensor('int64', [2], [2, 4]) } }),
};
for (const [op, bytes] of Object.entries(refused)) {
  const { error = '', code } = make(bytes, 'mse:');
  const named = op === 'Det' ? 'n_d' : 'n_b';
  tap.none([[named, 'node'], [`(${op})`, 'operator'], ['"w1"', 'weight'], ['freeze "w', 'help']]
    .filter(([part]) => !error.includes(part)).map(([, what]) => `the ${what} is not in: ${error}`)
    .concat(code === 'UNSUPPORTED' ? [] : [`code ${code}`]), `${op} is refused by name`);
  const other = make(bytes, 'mse:', 'freeze=w1');
  tap.ok(!other.error && Object.keys(other.weights).join() === 'w2', `${op} off the path is left alone`,
    JSON.stringify(other));
}
const quantised = around([node('QuantizeLinear', ['a', 's'], ['q']), node('DequantizeLinear', ['q', 's'], ['b'])],
  { initializers: { s: tensor('float32', [], [0.1]) } });
tap.ok(/quantizeLinear.*"w1"/i.test(make(quantised, 'mse:').error), 'a quantised tensor on the path is refused');
const randomly = around([node('Dropout', ['a', '', 'yes'], ['b'])], { initializers: { yes: tensor('bool', [], [1]) } });
tap.ok(make(randomly, 'mse:').masks?.['b.mask']?.[2] === 0.5, 'what Dropout drops is an input', JSON.stringify(make(randomly, 'mse:')));

// ---- what is trained ----
const plain = around([node('Add', ['a', 'bias'], ['c']), node('Mul', ['c', 'onnx::Mul_7'], ['d']),
  node('Mul', ['d', 'one'], ['b'])],
{ initializers: { bias: weight(4), 'onnx::Mul_7': weight(1, 4), one: tensor('float32', [], [2]), unused: weight(3) } });
const chosen = (...options) => Object.keys(make(plain, 'mse:', ...options).weights ?? {}).sort().join();
tap.ok(chosen() === 'bias,w1,w2', 'parameters, no scalars and no constants of the exporter', chosen());
tap.ok(chosen('train=*') === 'bias,one,onnx::Mul_7,unused,w1,w2', 'patterns name any of them', chosen('train=*'));
tap.ok(chosen('freeze=w?') === 'bias', 'freeze takes away', chosen('freeze=w?'));
tap.ok(chosen('train=w*', 'freeze=w1') === 'w2', 'freeze takes away from train', chosen('train=w*', 'freeze=w1'));
const odd = around([node('Add', ['a', 'w[1]'], ['c']), node('Mul', ['c', 'w\\1'], ['b'])], { initializers: { 'w[1]': weight(4), 'w\\1': weight(1, 4) } });
const asItStands = (option) => Object.keys(make(odd, 'mse:', option).weights ?? {}).sort().join();
tap.ok(asItStands('train=w[1]') === 'w[1]' && asItStands('train=w\\1') === 'w\\1', 'a name is taken as it stands', `${asItStands('train=w[1]')} ${asItStands('train=w\\1')}`);
tap.ok(asItStands('freeze=w[1]') === 'w1,w2,w\\1', 'and frozen so', asItStands('freeze=w[1]'));
tap.ok(make(plain, 'mse:', 'train=*').weights.unused === null, 'a weight that the loss does not depend on has no gradient');
tap.ok(make(plain, 'mse:', 'gradient_of=x', 'freeze=*').weights.x === 'x.grad', 'the gradient of an input alone');

// ---- options that cannot be meant ----
const unweighted = model({ inputs: [value('x', 'float32', [2, 4])], outputs: [value('y', 'float32', [2, 4])],
  nodes: [node('Tanh', ['x'], ['y'])] });
const scores = around([node('Tanh', ['a'], ['b'])]);
const constants = model({ inputs: [value('x', 'float32', [2, 4])], outputs: [value('y', 'float32', [2, 4])],
  nodes: [node('Constant', [], ['w'], { value: weight(4) }), node('Mul', ['x', 'w'], ['y'])] });
tap.ok(Object.keys(make(constants, 'mse:').weights ?? {}).join() === 'w', 'constants are weights where no initializer is', JSON.stringify(make(constants, 'mse:')));
const given = model({ inputs: [value('x', 'float32', [2, 4])], outputs: [value('y', 'float32', [2, 4]), value('w', 'float32', [4])],
  nodes: [node('Constant', [], ['w'], { value: weight(4) }), node('Mul', ['x', 'w'], ['y'])] });
const both = around([node('Constant', [], ['k'], { value: weight(4) }), node('Mul', ['a', 'k'], ['b'])]);
const ofBoth = (...options) => Object.keys(make(both, 'mse:', ...options).weights ?? {}).sort().join();
tap.ok(ofBoth() === 'w1,w2' && ofBoth('train=?*') === 'w1,w2', 'and numbers of the program where one is', `${ofBoth()} ${ofBoth('train=?*')}`);
tap.ok(ofBoth('train=k') === 'k' && ofBoth('train=k', 'train=w1') === 'k,w1', 'unless they are named', `${ofBoth('train=k')}`);
tap.ok(ofBoth('freeze=k') === 'w1,w2', 'and may be frozen', ofBoth('freeze=k'));
const half = model({ inputs: [value('x', 'float32', [2, 4])], outputs: [value('y', 'float32', [2, 4])],
  initializers: { w: { type: 'float16', dims: [4], data: Uint16Array.of(0x3c00, 0x3c00, 0x3c00, 0x3c00) } },
  nodes: [node('Cast', ['w'], ['v'], { to: 1n }), node('Mul', ['x', 'v'], ['y'])] });
tap.ok(!make(half, 'mse:', 'train=w', 'update=momentum').error, 'float16 is trained by momentum',
  JSON.stringify(make(half, 'mse:', 'train=w', 'update=momentum')));
for (const [loss, target] of [['mse:', 'target'], ['bce-with-logits:', 'labels'], ['softmax-cross-entropy:', 'labels'], ['mse:target=x', 'x']]) {
  const bytes = model({ inputs: [value('x', 'float16', [2, 4])], outputs: [value('y', 'float16', [2, 4])],
    initializers: { w: { type: 'float16', dims: [4], data: Uint16Array.of(0x3c00, 0x3800, 0x3400, 0x4000) } },
    nodes: [node('Mul', ['x', 'w'], ['y'])] });
  const made = make(bytes, loss);
  const ones = { x: new ort.Tensor('float16', new Uint16Array(8).fill(0x3c00), [2, 4]), w: new ort.Tensor('float16', Uint16Array.of(0x3c00, 0x3800, 0x3400, 0x4000), [4]),
    target: new ort.Tensor('float32', new Float32Array(8), [2, 4]), labels: loss.startsWith('bce') ? new ort.Tensor('float32', new Float32Array(8), [2, 4])
      : new ort.Tensor('int64', BigInt64Array.of(0n, 3n), [2]) };
  const session = made.error ? null : await ort.InferenceSession.create(join(tmp, 'forward.onnx'), { logSeverityLevel: 3 });
  const got = session && await session.run(Object.fromEntries(session.inputNames.map((each) => [each, ones[each]])));
  tap.ok(got?.[made.loss].type === 'float32' && got[made.loss].data[0] > 0, `${loss} of float16 is float32`, JSON.stringify([made, target]));
}
// ---- classes before opset 12: other operators, the same loss and gradients ----
async function classes(opset, type, dims, labels, loss) {
  const View = type === 'float64' ? Float64Array : Float32Array, n = dims.reduce((a, b) => a * b, 1), last = dims.at(-1);
  const w = View.from({ length: last }, (_, i) => 1 + i / 4), x = View.from({ length: n }, (_, i) => 9 * Math.sin(7 * i));
  const made = make(model({ opset, inputs: [value('x', type, ['n', ...dims.slice(1)])], outputs: [value('y', type, ['n', ...dims.slice(1)])],
    initializers: { w: { type, dims: [last], data: w } }, nodes: [node('Mul', ['x', 'w'], ['y'])] }), loss);
  if (made.error) return { error: made.error };
  const given = { x: new ort.Tensor(type, x, dims), w: new ort.Tensor(type, w, [last]), labels, [`${made.loss}.grad`]: new ort.Tensor(type, View.of(1), []) };
  for (const part of ['forward', 'backward']) {
    const session = await ort.InferenceSession.create(join(tmp, `${part}.onnx`), { logSeverityLevel: 3 });
    Object.assign(given, await session.run(Object.fromEntries(session.inputNames.map((each) => [each, given[each]]))));
  }
  return { numbers: [...given[made.loss].data, ...given['w.grad'].data], forward: readFileSync(join(tmp, 'forward.onnx'), 'latin1') };
}
for (const [type, dims, entries] of [['float32', [4, 5], ''], ['float64', [4, 5], 'ignore=2'], ['float32', [2, 5, 3], 'axis=-2,ignore=-100'],
  ['float32', [2, 3, 5], 'axis=-1,ignore=1'], ['float32', [2, 5, 2, 3], '']]) {
  const axis = entries.includes('axis=-1') ? dims.length - 1 : 1, shape = dims.filter((_, a) => a !== axis);
  const marked = Number(/ignore=(-?\d+)/.exec(entries)?.[1] ?? 3);
  const labels = new ort.Tensor('int64', BigInt64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => BigInt(i % 3 ? i * 2 % 5 : marked)), shape);
  const wanted = await classes(12, type, dims, labels, `softmax-cross-entropy:${entries}`);
  for (const opset of [7, 9, 11]) {
    const got = await classes(opset, type, dims, labels, `softmax-cross-entropy:${entries}`);
    const off = got.numbers?.map((each, i) => Math.abs(each - wanted.numbers[i]) / (1 + Math.abs(wanted.numbers[i])));
    tap.ok(off?.length === 1 + dims.at(-1) && off.every((each) => each < (type === 'float64' ? 1e-12 : 1e-5)) && !got.forward.includes('SoftmaxCrossEntropyLoss'),
      `classes of ${type}[${dims}] ${entries} in opset ${opset}`, JSON.stringify([got.error, got.numbers, wanted.numbers]));
  }
}

const ones = (n) => tensor('float32', [n], Array(n).fill(1));
const running = model({ inputs: [value('x', 'float32', [4, 3])], outputs: [value('y', 'float32', [4, 3])],
  initializers: { s: ones(3), b: ones(3), m: ones(3), v: ones(3) },
  nodes: [node('BatchNormalization', ['x', 's', 'b', 'm', 'v'], ['y'], { training_mode: 1n })] });
const unread = make(running, 'mse:', 'train=*');
tap.ok(unread.weights?.s === 's.grad' && unread.weights.m === null, 'statistics that are not read have no gradient', JSON.stringify(unread));
const reflected = make(model({ inputs: [value('x', 'float32', [4])], outputs: [value('y', 'float32', [6])],
  initializers: { w: ones(4), c: tensor('float32', [], [1]), p: tensor('int64', [2], [1, 1]) },
  nodes: [node('Mul', ['x', 'w'], ['a']), node('Pad', ['a', 'p', 'c'], ['y'], { mode: 'reflect' })] }), 'mse:', 'train=*');
tap.ok(reflected.weights?.w === 'w.grad' && reflected.weights.c === null, 'nor has a number that is not padded with', JSON.stringify(reflected));
const old = around([node('Tanh', ['a'], ['b'])], { opset: 6 });
for (const [what, bytes, pattern, code, ...line] of [
  ['no such loss', plain, /unknown loss.*softmax-cross-entropy/, 'USAGE', 'hinge:'],
  ['an unknown entry', plain, /unknown entry/, 'USAGE', 'mse:ignore=3'],
  ['no value', plain, /without a value/, 'USAGE', 'mse:prediction'],
  ['no number', scores, /whole number/, 'USAGE', 'softmax-cross-entropy:ignore=x'],
  ['a prediction that is not there', plain, /no value "z"/, 'USAGE', 'mse:prediction=z'],
  ['an axis out of range', scores, /out of range/, 'USAGE', 'softmax-cross-entropy:axis=5'],
  ['a loss of many elements', plain, /more than one element/, 'USAGE', '=y'],
  ['a loss that is not there', plain, /no value "z"/, 'USAGE', '=z'],
  ['a pattern for nothing', plain, /train "q" matches no/, 'USAGE', 'mse:', 'train=q'],
  ['another', plain, /freeze "q" matches no/, 'USAGE', 'mse:', 'freeze=q'],
  ['nothing to train', plain, /nothing to train/, 'USAGE', 'mse:', 'freeze=*'],
  ['all of it frozen', plain, /all weights are frozen/, 'USAGE', 'mse:', 'freeze=*'],
  ['nothing in a place of parameters', unweighted, /initializer in a parameter's place/, 'USAGE', 'mse:'],
  ['weights of constants that are outputs', given, /results of Constant nodes that are sparse, outputs/, 'USAGE', 'mse:prediction=y'],
  ['no such input', plain, /no input has this name/, 'USAGE', 'mse:', 'gradient_of=w1'],
  ['only what the loss does not depend on', plain, /depends on nothing/, 'USAGE', 'mse:', 'train=unused'],
  ['an old opset', old, /opset 7 or later, this one has 6; convert_version\(model, 12\)/, 'UNSUPPORTED', 'softmax-cross-entropy:'],
  ['no such optimizer', plain, /unknown method/, 'USAGE', 'mse:', 'update=lion'],
  ['squares in float16', half, /weight "w" is float16, which cannot hold squares/, 'UNSUPPORTED', 'mse:', 'train=w', 'update=adamw'],
  ['a beta of one', plain, /out of range/, 'USAGE', 'mse:', 'update=adam:beta1=1'],
  ['an entry of another optimizer', plain, /unknown entry/, 'USAGE', 'mse:', 'update=sgd:beta1=0.5'],
]) {
  const got = make(bytes, ...line);
  tap.ok(pattern.test(got.error ?? '') && got.code === code, what, JSON.stringify(got));
}

// ---- batch normalisation by the batch or by what the model has ----
const normal = (outputs, attributes, opset) => model({
  opset,
  nodes: [node('Conv', ['x', 'w'], ['a']), node('BatchNormalization', ['a', 's', 'b', 'm', 'v'], outputs, attributes)],
  inputs: [value('x', 'float32', ['n', 2, 4])], outputs: [value('y', 'float32', ['n', 3, 4])],
  initializers: { w: weight(3, 2, 1), s: weight(3), b: weight(3), m: weight(3), v: tensor('float32', [3], [1, 2, 3]) },
});
const asExported = normal(['y'], {}), asTrained = normal(['y', 'mean', 'var'], { training_mode: 1n });
async function passes(bytes, ...options) {
  const { error } = make(bytes, 'mse:', ...options);
  if (error) return { error };
  const random = (dims) => new ort.Tensor('float32', weight(...dims).data, dims);
  const all = { x: random([5, 2, 4]), target: random([5, 3, 4]), w: random([3, 2, 1]), s: random([3]), b: random([3]),
    m: random([3]), v: new ort.Tensor('float32', [1, 2, 3], [3]), // inputs where running statistics go on
    'loss.grad': new ort.Tensor('float32', [1], []) };
  for (const part of ['forward', 'backward']) {
    const session = await ort.InferenceSession.create(join(tmp, `${part}.onnx`), { logSeverityLevel: 4 });
    Object.assign(all, await session.run(Object.fromEntries(session.inputNames.map((name) => [name, all[name]]))));
  }
  return { numbers: ['loss', 'w.grad', 's.grad', 'b.grad'].map((name) => [...all[name].data]).join() };
}
const [exported, trainedOne, forced, trained, frozen] = [await passes(asExported), await passes(asTrained),
  await passes(asExported, 'batch_norm=train'), await passes(asTrained, 'batch_norm=train'), await passes(asTrained, 'batch_norm=frozen')];
tap.ok(forced.numbers === trainedOne.numbers && trained.numbers === trainedOne.numbers && forced.numbers,
  'what is exported for inference trains by the batch', JSON.stringify([forced, trainedOne, trained]));
tap.ok(frozen.numbers === exported.numbers && exported.numbers !== trainedOne.numbers,
  'what is exported for training is frozen', JSON.stringify([frozen, exported]));
tap.ok(/opset 9.*opset 14/.test((await passes(normal(['y'], {}, 9), 'batch_norm=train')).error), 'an old one cannot be told to train');

// ---- the same bytes each time ----
const files = ['forward', 'backward', 'weights', 'update'].map((name) => join(tmp, `${name}.onnx`));
const twice = [0, 1].map(() => {
  make(plain, 'mse:', 'update=adamw');
  return Buffer.concat(files.map((file) => readFileSync(file)));
});
tap.ok(twice[0].equals(twice[1]) && twice[0].length > 500, 'the same files each time');

// ---- a graph of 100,000 nodes ----
const long = { nodes: [], initializers: {} };
for (let i = 0; i < 25000; i++) {
  long.initializers[`w${i}`] = weight(2, 2);
  long.nodes.push(node('MatMul', [`x${i}`, `w${i}`], [`m${i}`]), node('Tanh', [`m${i}`], [`t${i}`]),
    node('Mul', [`t${i}`, `x${i}`], [`p${i}`]), node('Add', [`p${i}`, `x${i}`], [`x${i + 1}`]));
}
const big = make(model({ ...long, inputs: [value('x0', 'float32', ['n', 2])],
  outputs: [value('x25000', 'float32', ['n', 2])] }), 'mse:');
tap.ok(big.seconds < 10, `100,000 nodes in under 10 s: ${big.nodes?.join(' -> ')} in ${big.seconds?.toFixed(2)} s`,
  `${big.error}, ${big.seconds} s`);
tap.done();
