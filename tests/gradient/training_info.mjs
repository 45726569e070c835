// Training as one file with a TrainingInfoProto: node training_info.mjs SPLIT MAKE_TRAINING
//
// No runtime runs such files. training_info.py holds each against onnx.checker and puts the model's graph and the
// algorithm's together, as ONNX says that they are executed; three steps of that are held, bit for bit, against the
// forward, backward and update models that make_training writes.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { difference, ort } from '../e2e/chain.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';
import { readModel } from '../e2e/wire.mjs';
import { modelBytes } from '../support/text_model.mjs';

const [split, makeTraining] = process.argv.slice(2);
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-info-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const path = (name) => fileURLToPath(new URL(name, import.meta.url));
if (spawnSync('/usr/bin/python3', ['-c', 'import onnx']).status !== 0) skipAll('there is no /usr/bin/python3 with onnx; Debian has python3-onnx');
const levels = { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4 };

let state = 3;
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const views = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array, float64: Float64Array };
function draw({ dtype, dims, below }) {
  const number = { int64: () => BigInt(Math.floor(random() * below)), bool: () => Number(random() < 0.7) }[dtype] ?? (() => 2 * random() - 1);
  return new ort.Tensor(dtype, views[dtype].from({ length: dims.reduce((a, b) => a * b, 1) }, number), dims);
}
const scalar = (type, value) => new ort.Tensor(type, [value], []);

const plain = (opset, body, weights = '') => modelBytes(`
<ir_version: 8, opset_import: ["": ${opset}]>
main (float[n,6] x) => (float[n,4] y) <float[6,6] w1 = random(1), float[6] b1 = random(2), float[6,4] w2 = random(3)${weights}> {
${body}
}`);
const x = { dtype: 'float32', dims: [5, 6] }, target = { dtype: 'float32', dims: [5, 4] };
const models = {
  mlp: { bytes: plain(13, 'a = MatMul (x, w1)\n b = Add (a, b1)\n c = Tanh (b)\n y = MatMul (c, w2)'), loss: 'mse:', feeds: { x, target },
    optimizers: ['sgd:weight_decay=0.1', 'momentum:nesterov=1', 'adam', 'adamw:weight_decay=0.05'] },
  norms: { bytes: plain(17, `a = MatMul (x, w1)\n b = LayerNormalization (a, g, b1)\n c = ReduceMax <axes = [1]> (b)\n d = Sub (b, c)
    e = Softmax (d)\n y = MatMul (e, w2)`, ', float[6] g = random(4)'), loss: 'mse:', feeds: { x, target }, optimizers: ['adamw'] },
  masked: { bytes: plain(17, `a = MatMul (x, w1)\n b = Dropout (a, p, yes)\n c = Add (b, b1)\n r = RandomNormalLike (c)\n d = Add (c, r)
    y = MatMul (d, w2)`, ', float p = {0.25}, bool yes = {1}'), loss: 'mse:', optimizers: ['adam'],
    feeds: { x, target, 'b.mask': { dtype: 'bool', dims: [5, 6] }, 'r.drawn': { dtype: 'float32', dims: [5, 6] } } },
  labels: { bytes: plain(14, 'a = MatMul (x, w1)\n b = Relu (a)\n c = ReduceMean <axes = [1]> (b)\n d = Add (b, c)\n y = MatMul (d, w2)'),
    loss: 'softmax-cross-entropy:', feeds: { x, labels: { dtype: 'int64', dims: [5], below: 4 } }, optimizers: ['adamw'] },
  later: { bytes: plain(18, 'a = MatMul (x, w1)\n b = Relu (a)\n c = ReduceMean (b, axes)\n d = Add (b, c)\n y = MatMul (d, w2)', ', int64[1] axes = {1}'),
    loss: 'softmax-cross-entropy:', feeds: { x, labels: { dtype: 'int64', dims: [5], below: 4 } }, optimizers: ['adamw'] },
  recurrent: { bytes: modelBytes(`<ir_version: 8, opset_import: ["": 14]>
main (float[t,2,6] x) => (float[t,1,2,4] y) <float[1,16,6] w = random(1), float[1,16,4] r = random(2), float[1,32] b = random(3)> {
  y = LSTM <hidden_size = 4> (x, w, r, b)
}`), loss: 'mse:', feeds: { x: { dtype: 'float32', dims: [3, 2, 6] }, target: { dtype: 'float32', dims: [3, 1, 2, 4] } }, optimizers: ['adam'] },
  embedding: { bytes: modelBytes(`<ir_version: 8, opset_import: ["": 16]>
main (int64[n,3] words) => (float[n,3,4] y) <float[9,6] table = random(1), float[6,4] w = random(2)> {
  a = Gather (table, words)\n b = Tanh (a)\n y = MatMul (b, w)
}`), loss: 'mse:', feeds: { words: { dtype: 'int64', dims: [2, 3], below: 9 }, target: { dtype: 'float32', dims: [2, 3, 4] } }, optimizers: ['momentum'] },
};

// A recurrent backward pass has values of this name inside.
const isStep = (name) => /^step(~\d+)?$/.test(name);

async function session(file) {
  const made = await ort.InferenceSession.create(file, levels);
  return (all) => made.run(Object.fromEntries(made.inputNames.map((name) => [name, all[name]])));
}

async function examine(name, { bytes, loss, feeds }, optimizer) {
  const dir = join(work, `${name}-${optimizer.split(':')[0]}`), model = join(dir, 'model.onnx'), file = join(dir, 'training.onnx');
  mkdirSync(dir);
  writeFileSync(model, bytes);
  const made = spawnSync(split, [model, '--training', '--loss', loss, '--optimizer', optimizer, '--training-info', file, '-q'], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
  const told = spawnSync('/usr/bin/python3', [path('training_info.py'), file, dir], { encoding: 'utf8' });
  if (!tap.ok(told.status === 0, `${name}, ${optimizer}: file, step and initialization are sound`, told.stderr)) return;
  const { checked, updates, firsts, inputs, ops } = JSON.parse(told.stdout);
  spawnSync(makeTraining, { input: `${model}\t${dir}\t${loss}\tupdate=${optimizer}\n` });
  const [step, first] = await Promise.all(['step', 'first'].map((part) => session(join(dir, `${part}.onnx`))));
  const begun = Object.keys(firsts).length ? await (await session(join(dir, 'initialization.onnx')))({}) : {};
  const [weights, forward, backward, update] = await Promise.all(['weights', 'forward', 'backward', 'update'].map((part) => session(join(dir, `${part}.onnx`))));
  const problems = checked || name === 'later' ? [] : ['onnx.checker has not judged it'];
  let kept = await first({}), other = { ...await weights({}) };
  for (const [key, value] of Object.entries(begun)) {
    const why = difference(kept[Object.keys(firsts).find((each) => firsts[each] === key)], value);
    if (why) problems.push(`initialization of ${key}: ${why}`);
  }
  const { inputs: wanted } = readModel(readFileSync(join(dir, 'update.onnx')));
  for (const each of wanted.map((input) => input.name ?? input)) {
    if (/[.](momentum|m|v)$/.test(each)) other[each] = new ort.Tensor('float32', new Float32Array(kept[each].data.length), kept[each].dims);
  }
  for (let i = 1; i <= 3; i++) {
    const data = Object.fromEntries(Object.entries(feeds).map(([key, value]) => [key, draw(value)]));
    const given = await step({ ...kept, ...data, lr: scalar('float64', 0.1) });
    kept = Object.fromEntries(Object.entries(updates).map(([key, value]) => [key, given[value]]));
    const all = { ...other, ...data, ...await forward({ ...other, ...data }), 'loss.grad': scalar('float32', 1) };
    const after = await update({ ...all, ...await backward(all), lr: scalar('float64', 0.1), scale: scalar('float64', 1), step: scalar('int64', BigInt(i)) });
    other = Object.fromEntries(Object.entries(after).map(([key, value]) => [key.replace(/[.]new$/, ''), value]));
    for (const key of Object.keys(other)) {
      const why = difference(other[key], kept[key]);
      if (why) problems.push(`step ${i}, ${key}: ${why}`);
    }
    const counts = kept[Object.keys(kept).find(isStep)];
    if (counts && counts.data[0] !== BigInt(i + 1)) problems.push(`step ${counts.data[0]} after ${i}`);
    const why = difference(all.loss, given.loss);
    if (why) problems.push(`loss ${i}: ${why}`);
  }
  if (Object.keys(other).length !== Object.keys(kept).filter((key) => !isStep(key)).length) problems.push('other tensors are kept');
  if (!inputs.includes(Object.keys(feeds)[0]) || inputs.includes('target')) problems.push(`the model's inputs are ${inputs}`);
  if (ops.some((op) => /Loss|Dropout|Random/.test(op))) problems.push(`the model holds ${ops}`);
  tap.none(problems.slice(0, 5), `${name}, ${optimizer}: three steps are those of the single files`);
}

for (const [name, model] of Object.entries(models)) {
  for (const optimizer of model.optimizers) {
    try {
      await examine(name, model, optimizer);
    } catch (error) {
      tap.ok(false, `${name}, ${optimizer}`, error.stack);
    }
  }
}

// ---- what is refused ----
const file = join(work, 'model.onnx'), out = join(work, 'out.onnx');
const dense = (head) => `${head}
main (float[n,6] x) => (float[n,4] y) <float[6,4] w = random(1)> { y = MatMul (x, w) }`;
for (const [what, text, status, pattern, ...options] of [
  ['a model that has one', dense('<ir_version: 8, opset_import: ["": 17], training_info: [{algorithm: g (float[6,4] g) => (float[6,4] h) { h = Neg (g) }, update_binding: ["w": "h"]}]>'),
    5, /has training_info already/],
  ['an old IR', dense('<ir_version: 6, opset_import: ["": 12]>'), 5, /IR version 7.*has 6/],
  ['an old operator set', dense('<ir_version: 8, opset_import: ["": 12]>'), 5, /opset 12.*opset 13/],
  ['no optimizer', dense('<ir_version: 8, opset_import: ["": 17]>'), 2, /--training with an optimizer/, '--optimizer', 'none'],
  ['a wrong optimizer', dense('<ir_version: 8, opset_import: ["": 17]>'), 2, /unknown method/, '--optimizer', 'lion'],
]) {
  writeFileSync(file, modelBytes(text));
  const done = spawnSync(split, [file, '--training', '--loss', 'mse:', '--training-info', out, '-q', ...options], { encoding: 'utf8' });
  tap.ok(done.status === status && pattern.test(done.stderr) && !existsSync(out), `${what} is refused`, `${done.status} ${done.stderr}`);
}

// ---- what a model has already passes through a split that trains ----
writeFileSync(file, modelBytes(readFileSync(path('../e2e/models/training.onnxtxt'), 'utf8')));
for (const form of ['default', 'input']) {
  const dir = join(work, `through-${form}`);
  const done = spawnSync(split, [file, '-k', '2', '-o', dir, '-q', '--training', '--loss', 'mse:', '--trained-weights', form, '--verify'], { encoding: 'utf8' });
  const info = (name) => spawnSync('/usr/bin/python3', ['-c', `import onnx, sys
sys.stdout.buffer.write(b"".join(t.SerializeToString(deterministic=True) for t in onnx.load(sys.argv[1]).training_info))`, name]).stdout;
  const whole = info(file);
  tap.ok(done.status === 0 && whole.length > 10 && [0, 1].every((s) => info(join(dir, `stage${s}.onnx`)).equals(whole)),
    `training_info passes through, weights ${form}`, done.stderr);
}
tap.done();
