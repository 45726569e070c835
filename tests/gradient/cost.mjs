// What training costs beside torch, one thread each: node cost.mjs MAKE_TRAINING DIR [NAME...]
//
// DIR holds what `families.py DIR cost_gpt cost_vit ...` wrote. Least CPU time of twelve runs, in
// milliseconds.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ort } from '../e2e/chain.mjs';

const [tool, dir, ...names] = process.argv.slice(2);
const views = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };

async function least(session, feeds, times = 12) {
  let best = Infinity;
  for (let i = 0; i < times; i++) {
    const start = process.cpuUsage();
    await session.run(feeds);
    const { user, system } = process.cpuUsage(start);
    best = Math.min(best, (user + system) / 1e3);
  }
  return best;
}
const feedsFor = (session, all) =>
  Object.fromEntries(session.inputNames.map((name) => [name, all[name]]));

console.log('model'.padEnd(16), 'forward', 'backward', ' torch f', ' torch f+b', ' ratio', ' nodes');
for (const name of names.length ? names : readdirSync(dir).filter((each) => each.startsWith('cost_')).sort()) {
  const folder = join(dir, name);
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json')));
  const blob = Uint8Array.from(readFileSync(join(folder, 'expected.bin')));
  const info = JSON.parse(spawnSync(tool, { encoding: 'utf8',
    input: `${[join(folder, 'model.onnx'), folder, expected.loss].join('\t')}\n` }).stdout);
  const open = (part) => ort.InferenceSession.create(join(folder, `${part}.onnx`), {
    graphOptimizationLevel: 'all', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
    enableProfiling: Boolean(process.env.PSPLIT_PROFILE),
    profileFilePrefix: join(process.env.PSPLIT_PROFILE ?? '.', `${name}-${part}`) });
  const all = {};
  for (const [k, { dtype, dims, offset }] of Object.entries(expected.inputs)) {
    const n = dims.reduce((a, b) => a * b, 1);
    all[k] = new ort.Tensor(dtype, new views[dtype](blob.buffer.slice(offset, offset + n * views[dtype].BYTES_PER_ELEMENT)), dims);
  }
  const weights = await open('weights');
  Object.assign(all, await weights.run({}));
  const forward = await open('forward');
  const feeds = feedsFor(forward, all);
  Object.assign(all, await forward.run(feeds));
  all[info.loss_gradient] = new ort.Tensor('float32', Float32Array.of(1), []);
  const f = await least(forward, feeds);
  const backward = await open('backward');
  const b = await least(backward, feedsFor(backward, all));
  const { forward: tf, both } = expected.milliseconds;
  console.log(name.padEnd(16), ...[f, b, tf, both].map((x) => x.toFixed(1).padStart(8)),
    ((f + b) / both).toFixed(2).padStart(6), `${info.nodes.join(' -> ')}`);
  for (const session of [weights, forward, backward]) {
    if (process.env.PSPLIT_PROFILE) session.endProfiling();
    await session.release();
  }
}
