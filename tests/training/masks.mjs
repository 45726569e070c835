// Dropout and other random operators read masks that are drawn by counter: node masks.mjs SPLIT MAKE_TRAINING DRAW
//
// A model with each of them is trained by the sample, in 1 to 3 stages, whole and with everything computed again: the
// bits are the same, since every file of a micro-batch is fed the same masks. What the masked nodes compute is held
// against the operators' formulas, gradients against differences, and what JavaScript draws against the C library.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { difference, ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';
import { readModel } from '../e2e/wire.mjs';
import { writeModel } from '../support/text_model.mjs';
import { drawMasks, words } from '../../samples/draws.mjs';
import { Stages } from '../../samples/train_stages.mjs';

const Ajv = createRequire(new URL('../e2e/index.js', import.meta.url))('ajv/dist/2020.js');
const [split, makeTraining, draw] = process.argv.slice(2);
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-masks-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const levels = { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4 };

// ---- JavaScript draws what the library does ----
const manifestOf = (mask) => ({ inputs: [], training: { masks: [{ tensor: 'm', number: 0, ...mask }] } });
for (const [kind, dtype, ratio] of [['keep', 'bool', 0.1], ['keep', 'bool', Math.fround(0.3)], ['uniform', 'float32', 0], ['normal', 'float32', 0]]) {
  for (const [seed, step, microBatch, number] of [[0n, 0, 0, 0], [0xfedcba9876543210n, 4294967295, 7, 3], [1n, 2, 3, 4]]) {
    const n = 4099;
    const { m } = drawMasks(manifestOf({ kind, dtype, ratio, number, shape: [n] }), {}, ort, seed, step, microBatch);
    const { stdout } = spawnSync(draw, [kind, ratio, seed, step, microBatch, number, n].map(String), { encoding: 'utf8' });
    const expected = stdout.trim().split('\n').map(Number);
    // The logarithm of normal numbers may differ in its last bit.
    const worst = Math.max(...expected.map((value, i) => Math.abs(value - Number(m.data[i]))));
    tap.ok(expected.length === n && worst <= (kind === 'normal' ? 1e-6 : kind === 'uniform' ? 1e-9 : 0),
      `${kind} ${ratio} of seed ${seed}, step ${step}: as the library draws`, `${expected.length} numbers, ${worst} apart`);
  }
}
tap.ok(new Set(words(5n, 0, 0, 0, 4096)).size > 4090, 'words differ');

// ---- a model with each operator ----
// TYPE is float or double. Sizes are plain, and a product (rows), and a sum (longer).
const text = (type, elem) => `
<ir_version: 8, opset_import: ["": 17]>
main (${type}[batch,length,6] x) => (${type}[rows,6] y, bool[batch,length,6] kept) <
  ${type}[6,6] w1 = random(1), ${type}[6] b1 = random(2), ${type}[6,6] w2 = random(3), ${type}[6,6] w3 = random(4),
  float ratio = {0.25}, bool yes = {1}, int64[2] flat = {-1, 6}
> {
  [m1] p1 = MatMul (x, w1)
  [a1] s1 = Add (p1, b1)
  [d1] h1, kept = Dropout (s1, ratio, yes)
  [t1] t1 = Tanh (h1)
  [c1] longer = Concat <axis = 1> (t1, first)
  [d2] h2 = Dropout (longer, half, mode)
  [g1] first = Gather <axis = 1> (x, zero)
  [zero] zero = Constant <value = int64[1] {0}> ()
  [half] half = Constant <value = float {0.5}> ()
  [mode] mode = Constant <value = bool {1}> ()
  [m2] p2 = MatMul (h2, w2)
  [n1] noise = RandomNormalLike <mean = 0.5, scale = 0.25, dtype = ${elem}> (p2)
  [n2] q2 = Add (p2, noise)
  [u1] u = RandomUniformLike <low = -1.0, high = 3.0, dtype = ${elem}> (q2)
  [u2] r2 = Mul (q2, u)
  [sg] prob = Sigmoid (r2)
  [be] coin = Bernoulli <dtype = ${elem}> (prob)
  [s2] v2 = Mul (r2, coin)
  [rn] still = RandomNormal <shape = [6], dtype = ${elem}> ()
  [ru] flatnoise = RandomUniform <shape = [6], dtype = ${elem}> ()
  [s3] v3 = Add (v2, still)
  [s4] v4 = Mul (v3, flatnoise)
  [re] rowsof = Reshape (v4, flat)
  [d3] h3 = Dropout (rowsof, ratio, yes)
  [m3] y = MatMul (h3, w3)
}`;

function make(type, elem) {
  const file = join(work, `${type}.onnx`);
  writeModel(text(type, elem), file);
  return file;
}
const floats = make('float', 1), doubles = make('double', 11);

function run(...args) {
  const done = spawnSync(split, args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.signal ?? done.stderr}`);
}
let state = 7;
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const tensor = (type, dims) => new ort.Tensor(type, (type === 'float64' ? Float64Array : Float32Array)
  .from({ length: dims.reduce((a, b) => a * b, 1) }, () => 2 * random() - 1), dims);
const [batch, length] = [3, 5], rows = batch * (length + 1);
const data = () => ({ x: tensor('float32', [batch, length, 6]), target: tensor('float32', [rows, 6]) });

const batches = [data(), data()];
const schema = JSON.parse(readFileSync(new URL('../../docs/manifest.schema.json', import.meta.url)));
const valid = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true }).compile(schema);

async function train(dir, seed) {
  const stages = await Stages.open(dir, ort, levels, seed);
  const results = {};
  for (let step = 0; step < 3; step++) {
    for (const [m, each] of batches.entries()) {
      const one = await stages.forward(each, m);
      results[`loss ${step}.${m}`] = one.outputs[stages.training.loss.tensor];
      results[`kept ${step}.${m}`] = one.outputs.kept;
      await stages.backward(one, 0.5);
    }
    for (const { name, before } of stages.training.weights) results[`${name}.grad ${step}`] = stages.sums[before];
    await stages.update(0.01);
    for (const { name } of stages.training.weights) results[`${name} ${step}`] = stages.weights[name];
  }
  for (const { sessions } of stages.stages) for (const session of Object.values(sessions)) await session?.release();
  return { results, stages };
}
const compare = (a, b) => Object.keys(a).flatMap((name) => {
  const why = difference(a[name], b[name]);
  return why ? [`${name}: ${why}`] : [];
});

let whole;
const pins = ['m1', 'a1', 'd1', 't1', 'd2', 'm2', 'n1', 'u2', 'be', 's2', 'd3', 'm3'];
for (const [k, recompute, boundary] of [[1, 'none', 'io'], [1, 'heavy', 'io'], [1, 'all', 'io'], [2, 'none', 'sendrecv'], [2, 'heavy', 'io'],
  [2, 'all', 'sendrecv'], [3, 'none', 'io'], [3, 'heavy', 'sendrecv'], [3, 'all', 'io']]) {
  const dir = join(work, `${k}-${recompute}`);
  run(floats, '-k', String(k), '-o', dir, '--boundary', boundary, '--recompute', recompute, '--force', '--quiet', '--verify', '--training',
    '--loss', 'mse:prediction=y', '--trained-weights', 'input', ...pins.flatMap((name, i) => ['--pin', `${name}=${Math.floor((i * k) / pins.length)}`]));
  const { results, stages } = await train(dir, 11n);
  whole ??= results;
  const problems = compare(whole, results);
  if (!valid(stages.manifest)) problems.push(...valid.errors.slice(0, 3).map((each) => `${each.instancePath} ${each.message}`));
  for (const { name, tensor: value, stage } of stages.training.masks) {
    const inputs = stages.manifest.stages[stage].inputs.filter((each) => each.name === name && each.tensor === value);
    if (inputs.length !== 1 || inputs[0].from !== 'model') problems.push(`mask ${name} is not an input of stage ${stage}`);
  }
  const again = stages.stages.flatMap((each) => each.again?.inputs ?? []).filter(({ name }) => /[.](mask|drawn)$/.test(name));
  if (stages.training.masks.length !== 8) problems.push(`${stages.training.masks.length} masks`);
  if (recompute !== 'none' && again.length === 0) problems.push('nothing that reads a mask is computed again');
  tap.none(problems.slice(0, 5), `${k} stages, recompute ${recompute}: the bits of one stage, ${again.length} masks read again`);
}

// ---- other seeds, steps and micro-batches draw others; the rate is the ratio ----
const other = (await train(join(work, '2-heavy'), 12n)).results;
tap.ok(compare(whole, other).length > 20, 'another seed trains otherwise');
const kept = Object.entries(whole).filter(([name]) => name.startsWith('kept'));
tap.ok(new Set(kept.map(([, { data: bits }]) => bits.join(''))).size === 6, 'six micro-batches have six masks');
const { masks } = JSON.parse(readFileSync(join(work, '1-none/pipeline.json'))).training;
const bits = [];
for (let step = 0; step < 200; step++) {
  const drawn = drawMasks({ inputs: [{ name: 'x', shape: ['batch', 'length', 6] }], training: { masks } }, batches[0], ort, 3n, step, 0);
  bits.push(...drawn['h1.mask'].data);
}
const dropped = bits.filter((bit) => !bit).length, far = Math.abs(dropped - bits.length * 0.25);
tap.ok(far <= 4 * Math.sqrt(bits.length * 0.25 * 0.75), `${dropped} of ${bits.length} are dropped, a quarter within four deviations`);

// ---- in double precision, unsplit: formulas and differences ----
const made = JSON.parse(spawnSync(makeTraining, { input: `${doubles}\t${work}\tmse:prediction=y\n`, encoding: 'utf8' }).stdout);
if (made.error) throw new Error(made.error);
const open = (name) => ort.InferenceSession.create(join(work, `${name}.onnx`), levels);
const [forward, backward, first] = [await open('forward'), await open('backward'), await open('weights')];
const all = { ...await first.run({}), x: tensor('float64', [batch, length, 6]), target: tensor('float64', [rows, 6]) };
const sizes = { batch, length, inputs: [{ name: 'x', shape: ['batch', 'length', 6] }], training: { masks } };
Object.assign(all, drawMasks(sizes, { x: all.x }, ort, 5n, 0, 0));
tap.ok(Object.keys(made.masks).join() === masks.map(({ name }) => name).join(), 'the files unsplit have the same masks', JSON.stringify(made.masks));
const feed = (session, from) => session.run(Object.fromEntries(session.inputNames.map((name) => [name, from[name]])));
const loss = async (from) => Number((await feed(forward, from)).loss.data[0]);
const gradients = await feed(backward, { ...all, ...await feed(forward, all), 'loss.grad': new ort.Tensor('float64', [1], []) });
for (const name of ['w1', 'b1', 'w2', 'w3']) {
  let worst = 0, most = 0;
  for (let i = 0; i < all[name].data.length; i++) {
    const moved = [1e-6, -1e-6].map((by) => {
      const values = all[name].data.slice();
      values[i] += by;
      return { ...all, [name]: new ort.Tensor('float64', values, all[name].dims) };
    });
    const slope = (await loss(moved[0]) - await loss(moved[1])) / 2e-6, exact = gradients[`${name}.grad`].data[i];
    worst = Math.max(worst, Math.abs(slope - exact));
    most = Math.max(most, Math.abs(exact));
  }
  tap.ok(worst < 1e-6 * Math.max(most, 1) && most > 1e-3, `${name}: differences give the gradient`, `${worst} of ${most}`);
}

const { nodes } = readModel(readFileSync(join(work, 'forward.onnx')));
tap.none(nodes.filter(({ op }) => /Dropout|Random|Bernoulli/.test(op)).map(({ name }) => name), 'nothing draws by itself');
tap.ok(['d1', 'd2', 'd3', 'n1', 'u1', 'be', 'rn', 'ru'].every((name) => nodes.some((each) => each.name === name)), 'nodes keep their names');

// ---- each operator's formula ----
writeModel(`
<ir_version: 8, opset_import: ["": 17]>
main (double[3,4] x) => (double[3,2] y, double[3,4] d, bool[3,4] kept, float[3,4] b, double[3,4] u, float[3,4] n) <
  double[4,2] w = random(1), double ratio = {0.2}, bool yes = {1}
> {
  d, kept = Dropout (x, ratio, yes)
  b = Bernoulli <dtype = 1> (x)
  u = RandomUniformLike <low = 2.0, high = 6.0> (x)
  n = RandomNormalLike <mean = 10.0, scale = 3.0, dtype = 1> (x)
  y = MatMul (d, w)
}`, join(work, 'formulas.onnx'));
const formulas = JSON.parse(spawnSync(makeTraining, { input: `${join(work, 'formulas.onnx')}\t${work}\tmse:prediction=y\n`, encoding: 'utf8' }).stdout);
tap.ok(JSON.stringify(Object.values(formulas.masks)) === '[["#0 (Dropout)",0,0.2],["#1 (Bernoulli)",1,0],["#2 (RandomUniformLike)",1,0],["#3 (RandomNormalLike)",2,0]]',
  'masks say what draws', JSON.stringify(formulas));
const x = new ort.Tensor('float64', Array.from({ length: 12 }, random), [3, 4]);
const drawn = {
  'd.mask': new ort.Tensor('bool', Array.from({ length: 12 }, (_, i) => i % 3 !== 0), [3, 4]),
  'b.drawn': tensor('float32', [3, 4]), 'u.drawn': tensor('float32', [3, 4]), 'n.drawn': tensor('float32', [3, 4]),
};
const weights = await (await open('weights')).run({});
const given = await feed(await open('forward'), { ...weights, ...drawn, x, target: tensor('float64', [3, 2]) });
const expected = {
  d: [...x.data].map((value, i) => (drawn['d.mask'].data[i] ? value * (1 / (1 - 0.2)) : 0)),
  kept: [...drawn['d.mask'].data],
  b: [...x.data].map((value, i) => Number(drawn['b.drawn'].data[i] < value)),
  u: [...drawn['u.drawn'].data].map((value) => Math.fround(Math.fround(value * 4) + 2)),
  n: [...drawn['n.drawn'].data].map((value) => Math.fround(Math.fround(value * 3) + 10)),
};
tap.none(Object.keys(expected).filter((name) => [...given[name].data].some((value, i) => value !== expected[name][i]))
  .map((name) => `${name}: ${[...given[name].data]} is not ${expected[name]}`), 'each operator computes its formula');

// ---- what cannot be given a mask is told by name ----
const around = (middle, more = '', opset = 17, inputs = 'float[batch,4] x') => (...options) => {
  writeModel(`
<ir_version: 8, opset_import: ["": ${opset}, "com.microsoft": 1]>
main (${inputs}) => (float[batch,4] y) <float[4,4] w1 = random(1), float[4,4] w2 = random(2), bool yes = {1}, bool no = {0}, float half = {0.5}${more}> {
  a = MatMul (x, w1)
  ${middle}
  y = MatMul (b, w2)
}`, join(work, 'around.onnx'));
  return JSON.parse(spawnSync(makeTraining,
    { input: `${[join(work, 'around.onnx'), work, 'mse:prediction=y', ...options].join('\t')}\n`, encoding: 'utf8' }).stdout);
};
for (const [what, bytes, pattern, ...options] of [
  ['a mode that is fed', around('[drop] b = Dropout (a, half, mode)', '', 17, 'float[batch,4] x, bool mode'), /"drop" \(Dropout\), which uses the runtime/],
  ['a ratio that is fed', around('[drop] b = Dropout (a, p, yes)', '', 17, 'float[batch,4] x, float p'), /"drop" \(Dropout\).*ratio is not a constant/],
  ['a ratio of 1', around('[drop] b = Dropout (a, p, yes)', ', float p = {1}'), /"drop" \(Dropout\).*\[0, 1\)/],
  ['another generator', around('[pick] c = Multinomial (a)\n f = Cast <to = 1> (c)\n b = Add (a, f)'), /"pick" \(Multinomial\).*random generator/],
  ['one of com.microsoft', around('[drop] b, m = com.microsoft.BitmaskDropout (a, half, yes)'), /"drop" \(com.microsoft.BitmaskDropout\)/],
  ['a size that only a run can tell', around('nz = NonZero (x)\n i = Gather <axis = 0> (nz, zero)\n g = Gather <axis = 0> (a, i)\n[drop] d = Dropout (g, half, yes)\n s = ReduceMean <axes = [0]> (d)\n b = Add (a, s)',
    ', int64 zero = {0}'), /"drop" \(Dropout\).*sizes that do not follow/],
  ['an opset without Where', around('[drop] b = Dropout <ratio = 0.5> (a)', '', 8), /opset 9/, 'dropout=train'],
]) {
  const { error = 'accepted', code } = bytes(...options);
  tap.ok(pattern.test(error) && code === 'UNSUPPORTED', `${what} is refused`, `${code} ${error}`);
}
const named = (made) => Object.keys(made.masks ?? { [made.error]: 0 }).join();
for (const [what, got, want] of [
  ['training', named(around('b = Dropout (a, half, yes)')()), 'b.mask'],
  ['training, frozen', named(around('b = Dropout (a, half, yes)')('dropout=frozen')), ''],
  ['inference', named(around('b = Dropout (a, half, no)')()), ''],
  ['inference without inputs', named(around('b = Dropout (a)')()), ''],
  ['inference, told to train', named(around('b = Dropout (a)')('dropout=train')), 'b.mask'],
  ['opset 10, told to train', named(around('b = Dropout <ratio = 0.5> (a)', '', 10)('dropout=train')), 'b.mask'],
  ['fed, frozen', named(around('b = Dropout (a, half, mode)', '', 17, 'float[batch,4] x, bool mode')('dropout=frozen')), ''],
  ['fed, told to train', named(around('b = Dropout (a, half, mode)', '', 17, 'float[batch,4] x, bool mode')('dropout=train')), 'b.mask'],
  ['a ratio of 0', named(around('b = Dropout (a, p, yes)', ', float p = {0}')()), ''],
  ['off the path', named(around('b = Tanh (a)\n c = Multinomial (a)')()), ''],
  ['a name that is taken', named(around('b = Dropout ("b.mask", half, yes)\n "b.mask" = Tanh (a)')()), 'b.mask~1'],
]) {
  tap.ok(got === want, `${what}: ${want || 'no mask'}`, got);
}
tap.done();
