// Stages train as the whole model does, bit for bit: node stages.mjs SPLIT MAKE_TRAINING [DIR [NAME...]]
//
// Each model of ../gradient/families.py is split for training, in one stage and in several: by the
// default pipeline, and by random costs without groups, so that cuts go through residuals and between
// readers of one tensor. Over two steps of two micro-batches every loss, gradient and weight has to
// be the same bits, at optimisation level 0. One stage is held against the files of make_training.
// The sample of a trainer runs them all, by pipeline.json alone, which is held against its schema.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { difference, ort } from '../e2e/chain.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';
import { readModel } from '../e2e/wire.mjs';
import { Stages } from '../../samples/train_stages.mjs';

const Ajv = createRequire(new URL('../e2e/index.js', import.meta.url))('ajv/dist/2020.js');
const [split, makeTraining, given, ...chosen] = process.argv.slice(2);
const names = chosen.length ? chosen : ['gpt', 'bert', 'resnet', 'unet_bilinear', 'lstm_both', 'mlp'];
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-training-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const families = given ?? work;
if (!existsSync(join(families, names[0]))) {
  const script = fileURLToPath(new URL('../gradient/families.py', import.meta.url));
  if (spawnSync('/usr/bin/python3', ['-c', 'import torch, onnx']).status !== 0) {
    skipAll('there is no /usr/bin/python3 with torch; Debian has python3-torch');
  }
  const made = spawnSync('/usr/bin/python3', [script, families, ...names], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
}

const schema = JSON.parse(readFileSync(new URL('../../docs/manifest.schema.json', import.meta.url)));
const valid = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true }).compile(schema);
const levels = {
  graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
};
const views = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };

function read(blob, { dtype, dims, offset }) {
  const View = views[dtype];
  const n = dims.reduce((a, b) => a * b, 1);
  return new ort.Tensor(dtype, new View(blob.buffer.slice(offset, offset + n * View.BYTES_PER_ELEMENT)), dims);
}

// The same numbers in another order, for another micro-batch.
const turned = ({ type, data, dims }) => new ort.Tensor(type, data.slice().reverse(), dims);

// Numbers in (0, 1), the same in every run.
function random(seed) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

function run(...args) {
  const done = spawnSync(split, args, { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.signal ?? done.stderr}`);
}

// Costs that differ a thousandfold from node to node.
function randomCosts(model, seed) {
  const next = random(seed);
  const costs = readModel(readFileSync(model)).nodes.filter(({ name }) => name).map(({ name }) =>
    ({ nodes: [name], ns: Math.round(1000 ** (1 + next())) }));
  const file = join(work, `costs-${seed}.json`);
  writeFileSync(file, JSON.stringify({ format: 'onnx-pipeline-split-costs', version: 1, complete: true, costs }));
  return file;
}

// Losses, gradients and weights of a split, by name.
async function train(dir, batches) {
  const stages = await Stages.open(dir, ort, levels);
  const results = {};
  for (let step = 0; step < 2; step++) {
    for (const [m, data] of batches.entries()) {
      const batch = await stages.forward(data);
      results[`loss ${step}.${m}`] = batch.outputs[stages.training.loss.tensor];
      await stages.backward(batch, 0.5);
      for (const [name, tensor] of Object.entries(batch.gradients)) results[`${name} ${step}.${m}`] = tensor;
    }
    for (const { gradient, before } of stages.parts) if (gradient) results[`${gradient} ${step}`] = stages.sums[before];
    await stages.update(0.01);
    for (const { name } of stages.training.weights) results[`${name} ${step}`] = stages.weights[name];
  }
  for (const { sessions } of stages.stages) {
    for (const session of Object.values(sessions)) await session?.release();
  }
  return { results, stages };
}

const compare = (whole, parts) => Object.keys(whole).flatMap((name) => {
  const why = difference(whole[name], parts[name]);
  return why ? [`${name}: ${why}`] : [];
}).slice(0, 5);

// What the files of make_training give for the first micro-batch.
async function plain(model, loss, data) {
  const dir = mkdtempSync(join(work, 'plain-'));
  spawnSync(makeTraining, { input: `${model}\t${dir}\t${loss}\n` });
  const all = { ...data, 'loss.grad': new ort.Tensor('float32', Float32Array.of(0.5), []) };
  for (const part of ['weights', 'forward', 'backward']) {
    const session = await ort.InferenceSession.create(join(dir, `${part}.onnx`), levels);
    Object.assign(all, await session.run(Object.fromEntries(session.inputNames.map((name) => [name, all[name]]))));
  }
  return all;
}

// Running statistics after two micro-batches: what the forward file gives, fed with what it gave before.
async function checkStates(name, model, loss, dir, batches) {
  const folder = mkdtempSync(join(work, 'states-'));
  spawnSync(makeTraining, { input: `${model}\t${folder}\t${loss}\n` });
  const stages = await Stages.open(dir, ort, levels), states = stages.training.weights.filter(({ next }) => next);
  const [first, forward] = [await ort.InferenceSession.create(join(folder, 'weights.onnx'), levels),
    await ort.InferenceSession.create(join(folder, 'forward.onnx'), levels)];
  const all = await first.run({}), began = { ...all };
  for (const data of batches) {
    Object.assign(all, data);
    const got = await forward.run(Object.fromEntries(forward.inputNames.map((each) => [each, all[each]])));
    for (const { name: state, next } of states) all[state] = got[next];
    await stages.forward(data);
  }
  const problems = states.flatMap(({ name: state }) => [difference(all[state], stages.weights[state]),
    difference(all[state], began[state]) ? null : 'stays as it was'].filter(Boolean).map((why) => `${state}: ${why}`));
  if (states.length !== { resnet: 14, unet_bilinear: 6 }[name]) problems.push(`${states.length} states`);
  tap.none(problems.slice(0, 5), `${name}: ${states.length} running means and variances go on from micro-batch to micro-batch`);
}

async function checkWhole(name, model, loss, dir, data) {
  const all = await plain(model, loss, data);
  const stages = await Stages.open(dir, ort, levels);
  await stages.backward(await stages.forward(data), 0.5);
  const problems = stages.training.weights.flatMap(({ gradient, before, more = [] }) => {
    if (!gradient) return [];
    const sum = stages.sums[before]; // of all parts, in their order, as the update adds them
    for (const part of more) stages.sums[part.before].data.forEach((value, i) => (sum.data[i] += value));
    all[gradient].data.forEach((value, i) => (all[gradient].data[i] = value + 0)); // 0 + -0 is 0
    const why = difference(all[gradient], sum);
    return why ? [`${gradient}: ${why}`] : [];
  });
  tap.none(problems.slice(0, 5), `${name}: one stage gives the gradients of the model`);
}

async function examine(name) {
  const folder = join(families, name), model = join(folder, 'model.onnx');
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json')));
  const blob = Uint8Array.from(readFileSync(join(folder, 'expected.bin')));
  const data = Object.fromEntries(Object.entries(expected.inputs).map(([k, v]) => [k, read(blob, v)]));
  const batches = [data, Object.fromEntries(Object.entries(data).map(([k, v]) => [k, turned(v)]))];
  const input = Object.keys(expected.inputs).find((each) => expected.inputs[each].dtype === 'float32' && each !== 'target');
  const options = ['--force', '--quiet', '--verify', '--training', '--loss', expected.loss, '--trained-weights', 'input',
    ...(input ? ['--gradient-of', input] : [])];
  const one = join(work, `${name}-1`);
  run(model, '-k', '1', '-o', one, ...options);
  await checkWhole(name, model, expected.loss, one, data);
  if (['resnet', 'unet_bilinear'].includes(name)) await checkStates(name, model, expected.loss, one, batches);
  const whole = (await train(one, batches)).results;
  const cases = [[1, 'heavy'], [1, 'all', 'io', 0, 'apart'], [3, 'none', 'sendrecv', 0, 'apart'], [4, 'heavy', 'io', 15, 'apart'], [1, 'all'], [2, 'none', 'io'], [3, 'heavy'], [4, 'all', 'io'], [2, 'heavy', 'io', 11],
    [3, 'all', 'sendrecv', 12], [4, 'none', 'io', 13], [4, 'heavy', 'sendrecv', 14]];
  for (const [k, recompute, boundary = 'sendrecv', seed, gradients = 'together'] of cases) {
    const dir = join(work, `${name}-${k}`);
    const cuts = seed ? ['--costs', randomCosts(model, seed), '--passes', 'infer-shapes,cost,mark,partition'] : [];
    run(model, '-k', String(k), '-o', dir, '--boundary', boundary, '--recompute', recompute, '--weight-gradients', gradients, ...options, ...cuts);
    const { results, stages } = await train(dir, batches);
    const problems = compare(whole, results);
    for (const { name: weight, shape, more } of stages.training.weights.filter((each) => each.more)) {
      if (stages.training.transfers.some((each) => each.from !== each.to && `${each.shape}` === `${shape}`)) problems.push(`${weight}: its gradient is sent`);
      if (more.length !== 1) problems.push(`${weight}: ${more.length + 1} parts`);
    }
    const tied = { gpt: true, lstm_both: false }[name]; // slices of one weight are one use of it
    if (tied === !stages.training.weights.some((each) => each.more)) problems.push('other weights are tied');
    if (!valid(stages.manifest)) problems.push(...valid.errors.slice(0, 3).map((each) => `${each.instancePath} ${each.message}`));
    tap.none(problems, `${name}: ${k} stages, ${boundary}, recompute ${recompute}, weights' gradients ${gradients}${seed ? `, costs ${seed}` : ''}: ` +
      `${stages.training.weights.length} weights, ${stages.manifest.transfers.length} tensors forward, ` +
      `${stages.training.transfers.length} back, ${stages.stages.flatMap(({ stash }) => stash).length} kept`);
  }
}

for (const name of names) {
  try {
    await examine(name);
  } catch (error) {
    tap.ok(false, name, error.stack);
  }
}
tap.done();
