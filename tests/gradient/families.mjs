// Gradients of exported models against torch: node families.mjs MAKE_TRAINING DIR [NAME...]
//
// DIR holds what families.py wrote; where it does not exist, a temporary one is filled. For each
// weight |g - g64| <= 4 |g32 - g64| + 1e-6 |g64|, where g64 and g32 are torch's gradients in float64
// and float32; a weight whose true gradient is below 1e-6 of the largest is held to 1e-6 of that.
// Where torch trained the model, forward, backward and update are run in turn, and each step's loss
// is held against torch's.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ort } from '../e2e/chain.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';

const [tool, given, ...names] = process.argv.slice(2);
const tap = new Tap();
let dir = given;
if (!dir || !existsSync(dir)) {
  dir = mkdtempSync(join(tmpdir(), 'psplit-families-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  const script = fileURLToPath(new URL('families.py', import.meta.url));
  const probe = spawnSync('/usr/bin/python3', ['-c', 'import torch, onnx']);
  if (probe.status !== 0) skipAll('there is no /usr/bin/python3 with torch; Debian has python3-torch');
  const made = spawnSync('/usr/bin/python3', [script, dir, ...names], { encoding: 'utf8' });
  if (made.status !== 0) {
    tap.ok(false, 'families.py ends well', made.stderr.split('\n').slice(-15).join('\n'));
    tap.done();
    process.exit();
  }
}

const open = (file, level = 'disabled') => ort.InferenceSession.create(file, {
  graphOptimizationLevel: level, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
});
const views = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };

function read(blob, { dtype, dims, offset }) {
  const View = views[dtype];
  const n = dims.reduce((a, b) => a * b, 1);
  return new ort.Tensor(dtype, new View(blob.buffer.slice(offset, offset + n * View.BYTES_PER_ELEMENT)), dims);
}
const norm = (list) => Math.sqrt(list.reduce((sum, x) => sum + x * x, 0));
const distance = (a, b) => Math.sqrt(a.reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0));
const feedsFor = (session, all) =>
  Object.fromEntries(session.inputNames.map((name) => [name, all[name]]));

async function examine(name) {
  const folder = join(dir, name);
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json')));
  const blob = Uint8Array.from(readFileSync(join(folder, 'expected.bin')));
  const line = [join(folder, 'model.onnx'), folder, expected.loss].join('\t');
  const made = spawnSync(tool, { input: `${line}\n`, encoding: 'utf8' });
  if (made.status !== 0) return tap.ok(false, name, `make_training: ${made.signal} ${made.stderr}`);
  const info = JSON.parse(made.stdout);
  if (info.error) return tap.ok(false, name, info.error);
  const run = async (file, all) => {
    const session = await open(join(folder, file));
    try {
      return await session.run(feedsFor(session, all));
    } finally {
      await session.release();
    }
  };
  const all = Object.fromEntries(Object.entries(expected.inputs).map(([k, v]) => [k, read(blob, v)]));
  Object.assign(all, await run('weights.onnx', {}));
  Object.assign(all, await run('forward.onnx', all));
  const loss = all[info.loss].data[0];
  all[info.loss_gradient] = new ort.Tensor('float32', Float32Array.of(1), []);
  const got = await run('backward.onnx', all);

  const problems = [];
  const bound = 4 * Math.abs(expected.value32 - expected.value) + 3e-6 * Math.abs(expected.value);
  if (!(Math.abs(loss - expected.value) <= bound)) problems.push(`loss ${loss}, torch says ${expected.value}`);
  const truth = Object.entries(expected.gradients).map(([weight, each]) =>
    [weight, read(blob, each.float64).data, read(blob, each.float32).data]);
  const largest = Math.max(...truth.map(([, g64]) => norm(g64)));
  let worst = 0;
  for (const [weight, g64, g32] of truth) {
    const g = got[info.weights[weight]];
    if (!g) {
      problems.push(`${weight}: no gradient`);
      continue;
    }
    const size = norm(g64);
    const error = distance(g.data, g64);
    const allowed = size < 1e-6 * largest ? 1e-6 * largest : 4 * distance(g32, g64) + 1e-6 * size;
    if (!(error <= allowed)) {
      problems.push(`${weight}: error ${(error / size).toExponential(2)} of its norm, torch's ` +
        `${(distance(g32, g64) / size).toExponential(2)}, norm ${size.toExponential(2)}`);
    }
    if (size >= 1e-6 * largest) worst = Math.max(worst, error / size);
  }
  return tap.none(problems, `${name}: ${truth.length} weights, ${info.nodes[0]} -> ${info.nodes[1]} nodes ` +
    `in ${info.seconds.toFixed(3)} s, ${info.stash.length} stashed, largest error ${worst.toExponential(1)}`);
}

// Forward, backward, update, as often as torch did; the largest distance of the losses.
async function train(name, option, { lr, float32, float64 }) {
  const folder = join(dir, name);
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json')));
  const blob = Uint8Array.from(readFileSync(join(folder, 'expected.bin')));
  const line = [join(folder, 'model.onnx'), folder, expected.loss, `update=${option}`].join('\t');
  const made = JSON.parse(spawnSync(tool, { input: `${line}\n`, encoding: 'utf8' }).stdout);
  if (made.error) return tap.ok(false, `${name} ${option}`, made.error);
  const sessions = {};
  for (const part of ['weights', 'forward', 'backward', 'update']) sessions[part] = await open(join(folder, `${part}.onnx`));
  const all = Object.fromEntries(Object.entries(expected.inputs).map(([k, v]) => [k, read(blob, v)]));
  Object.assign(all, await sessions.weights.run({}));
  const scalar = (type, x) => new ort.Tensor(type, views[type].of(x), []);
  Object.assign(all, { [made.loss_gradient]: scalar('float32', 1), lr: scalar('float64', lr), scale: scalar('float64', 1) });
  for (const state of sessions.update.inputNames.filter((each) => /[.](momentum|m|v)$/.test(each))) {
    const like = all[state.replace(/[.][a-z]+$/, '')];
    all[state] = new ort.Tensor('float32', new Float32Array(like.data.length), like.dims);
  }
  const problems = [];
  let worst = 0;
  for (const [step, torch] of float32.entries()) {
    all.step = scalar('int64', BigInt(step + 1));
    for (const part of ['forward', 'backward', 'update']) {
      Object.assign(all, await sessions[part].run(feedsFor(sessions[part], all)));
    }
    for (const next of sessions.update.outputNames) all[next.replace(/[.]new$/, '')] = all[next];
    const error = Math.abs(all[made.loss].data[0] - torch);
    worst = Math.max(worst, error);
    const allowed = 1e-4 + 2 * Math.abs(torch - float64[step]);
    if (!(error <= allowed)) problems.push(`step ${step}: loss ${all[made.loss].data[0]}, torch says ${torch}`);
  }
  for (const session of Object.values(sessions)) await session.release();
  if (!(float32.at(-1) < float32[0])) problems.push('the loss did not fall');
  return tap.none(problems.slice(0, 3), `${name} ${option}: ${float32.length} steps, loss ${float32[0].toFixed(3)} -> ` +
    `${float32.at(-1).toFixed(3)}, at most ${worst.toExponential(1)} from torch`);
}

for (const name of names.length ? names : readdirSync(dir).sort()) {
  try {
    await examine(name);
    const { curves } = JSON.parse(readFileSync(join(dir, name, 'expected.json')));
    for (const [option, curve] of Object.entries(curves ?? {})) await train(name, option, curve);
  } catch (error) {
    tap.ok(false, name, error.stack);
  }
}
tap.done();
