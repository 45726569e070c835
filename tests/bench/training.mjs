// What training costs: node training.mjs SPLIT MAKE_TRAINING [ROUNDS [NAME...]]
//
// CPU time of a forward and a backward pass, one thread each, in ONNX Runtime and in torch, in turns, so that
// what else the machine does meets both; the least of ROUNDS (12) runs counts. Then one stage that keeps all
// that its backward pass reads beside one that keeps results of heavy operators alone, and how long
// densenet121 takes to be differentiated. A figure over its limit is marked, and the exit status is 1 then.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir, loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ort } from '../e2e/chain.mjs';
import { Stages } from '../../samples/train_stages.mjs';

const [split, makeTraining, rounds = '12', ...chosen] = process.argv.slice(2);
const limits = { cost_gpt: 1.3, cost_vit: 1.3, cost_resnet18: 1.3, cost_resnet50: 1.3, cost_mobilenet: 1.6 };
const HEAVY = { time: 1.08, stash: 0.55 };
const names = chosen.length ? chosen : [...Object.keys(limits), 'densenet121'];
const views = { float32: Float32Array, int64: BigInt64Array };
const families = fileURLToPath(new URL('../gradient/families.py', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'psplit-bench-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const options = (level) => ({ graphOptimizationLevel: level, intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4 });

let missed = 0;
const held = (value, limit) => (value > limit ? (missed++, `${value.toFixed(2)} (over ${limit})`) : value.toFixed(2));

async function cpu(run) {
  const start = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e3;
}

// Least times of things that take turns.
async function inTurns(runs) {
  const best = runs.map(() => Infinity);
  for (let i = 0; i <= Number(rounds); i++) {
    for (const [k, run] of runs.entries()) {
      const took = await run();
      if (i) best[k] = Math.min(best[k], took); // the first warms up
    }
  }
  return best;
}

function read(name) {
  const folder = join(work, name), expected = JSON.parse(readFileSync(join(folder, 'expected.json')));
  const blob = Uint8Array.from(readFileSync(join(folder, 'expected.bin'))), data = {};
  for (const [key, { dtype, dims, offset }] of Object.entries(expected.inputs)) {
    const n = dims.reduce((a, b) => a * b, 1);
    data[key] = new ort.Tensor(dtype, new views[dtype](blob.buffer.slice(offset, offset + n * views[dtype].BYTES_PER_ELEMENT)), dims);
  }
  const info = JSON.parse(spawnSync(makeTraining, { encoding: 'utf8', input: `${[join(folder, 'model.onnx'), folder, expected.loss].join('\t')}\n` }).stdout);
  return { folder, data, info, loss: expected.loss };
}

async function besideTorch(name) {
  const { folder, data, info } = read(name), all = { ...data, [info.loss_gradient]: new ort.Tensor('float32', [1], []) };
  const [weights, forward, backward] = await Promise.all(['weights', 'forward', 'backward'].map((part) =>
    ort.InferenceSession.create(join(folder, `${part}.onnx`), options('all'))));
  Object.assign(all, await weights.run({}));
  const feeds = ({ inputNames }) => Object.fromEntries(inputNames.map((each) => [each, all[each]]));
  const torch = spawn('/usr/bin/python3', [families, '--clock', name], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: torch.stdout });
  const [ours, theirs] = await inTurns([
    () => cpu(async () => { Object.assign(all, await forward.run(feeds(forward))); await backward.run(feeds(backward)); }),
    async () => { torch.stdin.write('\n'); return Number((await once(lines, 'line'))[0]); }]);
  torch.stdin.end();
  console.log(`${name.padEnd(15)} ${ours.toFixed(1).padStart(7)} ms, torch ${theirs.toFixed(1).padStart(7)} ms, ratio ${held(ours / theirs, limits[name])}`);
  for (const session of [weights, forward, backward]) await session.release();
}

// A step of one stage, at the level at which all models run.
async function besideAll(name) {
  const { folder, data, loss } = read(name);
  const ways = [];
  for (const recompute of ['none', 'heavy']) {
    const dir = join(work, `${name}-${recompute}`);
    const done = spawnSync(split, [join(folder, 'model.onnx'), '-k', '1', '-o', dir, '--quiet', '--training', '--loss', loss,
      '--optimizer', 'none', '--trained-weights', 'input', '--recompute', recompute], { encoding: 'utf8' });
    if (done.status !== 0) throw new Error(done.stderr);
    const stages = await Stages.open(dir, ort, options('basic')), batch = await stages.forward(data);
    const bytes = Object.values(batch.stash[0]).reduce((sum, { data: { byteLength } }) => sum + byteLength, 0);
    ways.push({ bytes, run: () => cpu(async () => stages.backward(await stages.forward(data), 1)) });
  }
  const [none, heavy] = await inTurns(ways.map(({ run }) => run));
  console.log(`${name.padEnd(15)} keeping all ${none.toFixed(1)} ms, ${(ways[0].bytes / 1e6).toFixed(1)} MB; heavy alone: time ${held(heavy / none, HEAVY.time)}, `
    + `bytes ${held(ways[1].bytes / ways[0].bytes, HEAVY.stash)}`);
}

for (const name of names) {
  const made = spawnSync('/usr/bin/python3', [families, work, name], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
  if (name in limits) {
    await besideTorch(name);
    await besideAll(name);
  } else {
    const seconds = Math.min(...[0, 1, 2].map(() => read(name).info.seconds));
    console.log(`${name.padEnd(15)} differentiated and written: ${held(seconds, 1)} s`);
  }
}
console.log(`load of the machine: ${loadavg()[0].toFixed(1)}`);
process.exitCode = missed ? 1 : 0;
