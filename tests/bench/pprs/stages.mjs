// ReLU nets through real stages, by gradient descent, by Nesterov's method and by PPRS:
//
//   node stages.mjs BUILD_DIR [SEEDS [DEPTH...]]
//
// Nets of DEPTH layers (4 8 16 32) of 12 on 10 samples, L1 loss, as `pprs relu` has them, here in stages of
// onnx-pipeline-train: four threads, --smooth for PPRS. Each method has the time that 60 gradients take in a pipeline of
// DEPTH stages, of one micro-batch each: a step takes 2 (P + DEPTH - 1), P the samples of PPRS (DEPTH of them) or 1. Each is
// tuned over the same learning rates, PPRS over two sizes of its perturbations as well; the mean loss of the last fifth of
// the steps counts. Medians [least, most] of SEEDS (3; 0: what follows alone).
//
// Then how long a step of PPRS takes on two threads, beside what no schedule beats with the times that its stages took
// (docs/limits.md): a wider net in two stages, 8 samples of one micro-batch. No test: nothing fails.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { model, node, random, tensor, value } from '../../gradient/onnx.mjs';
import { writeNpy } from '../../runtime/npy.mjs';
import { env } from '../../runtime/runner.mjs';

const [build, seeds = '3', ...depths] = process.argv.slice(2);
const tool = (name) => join(build, 'tools', `onnx-pipeline-${name}`);
const tmp = mkdtempSync(join(tmpdir(), 'psplit-pprs-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

function run(name, args) {
  const done = spawnSync(tool(name), args, { encoding: 'utf8', env, maxBuffer: 1 << 26 });
  if (done.status !== 0) throw new Error(`${name} ${args.join(' ')}: ${done.stderr}`);
  return done.stdout;
}

// A net with its loss, and data; the stages' directory.
function stages(title, { depth, width, rows, k, seed, optimizer, micro }) {
  const next = random(seed), dir = join(tmp, title);
  const numbers = (scale, ...dims) => tensor('float32', dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => scale * (next() - 0.5)));
  const nodes = Array.from({ length: depth }, (_, i) => [node('MatMul', [i ? `y${i - 1}` : 'x', `w${i}`], [`p${i}`]),
    node('Add', [`p${i}`, `b${i}`], [`s${i}`]), ...(i < depth - 1 ? [node('Relu', [`s${i}`], [`y${i}`])] : [])]).flat();
  writeFileSync(`${dir}.onnx`, model({
    nodes: [...nodes, node('Sub', [`s${depth - 1}`, 't'], ['d']), node('Abs', ['d'], ['a']), node('ReduceMean', ['a'], ['loss'], { keepdims: 0n })],
    initializers: Object.fromEntries(Array.from({ length: depth }, (_, i) => // He: a variance of 2 / width
      [[`w${i}`, numbers(Math.sqrt(24 / width), width, width)], [`b${i}`, numbers(0, width)]]).flat()),
    inputs: ['x', 't'].map((name) => value(name, 'float32', ['n', width])), outputs: [value('loss', 'float32', [])] }));
  writeNpy(`${dir}-x.npy`, numbers(2, rows, width));
  writeNpy(`${dir}-t.npy`, numbers(2, rows, width));
  run('split', [`${dir}.onnx`, '-k', `${k}`, '-o', dir, '--quiet', '--dim', `n=${micro}`, '--training', '--loss-output', 'loss',
    '--optimizer', optimizer, '--trained-weights', 'input']);
  return [dir, '--data', `x=${dir}-x.npy`, '--data', `t=${dir}-t.npy`, '-b', `${rows}`, '-m', `${rows / micro}`, '--seed', `${seed}`, '--json'];
}

const sorted = (list) => [...list].sort((a, b) => a - b);
const median = (list) => sorted(list)[Math.floor(list.length / 2)];
const told = (list) => `${median(list).toFixed(3)} [${Math.min(...list).toFixed(3)}, ${Math.max(...list).toFixed(3)}]`;
const RATES = [0.003, 0.01, 0.03, 0.1], GAMMAS = [0.003, 0.03], GRADIENTS = 60, ROWS = 10;
const NESTEROV = 'momentum:momentum=0.9,nesterov=1';
if (seeds !== '0') console.log('depth  gradient descent         Nesterov                 PPRS                     the best other has more by');
for (const depth of seeds === '0' ? [] : (depths.length ? depths : ['4', '8', '16', '32']).map(Number)) {
  const losses = { sgd: [], nesterov: [], pprs: [] };
  for (let seed = 1; seed <= Number(seeds); seed++) {
    const net = { depth, width: 12, rows: ROWS, micro: ROWS, k: 4, seed };
    const plain = stages(`sgd-${depth}-${seed}`, { ...net, optimizer: 'sgd' }), fast = stages(`nesterov-${depth}-${seed}`, { ...net, optimizer: NESTEROV });
    const reached = (dir, lr, samples, gamma) => {
      const steps = Math.floor(GRADIENTS * depth / (samples + depth - 1));
      const report = JSON.parse(run('train', [...dir, '-n', `${steps}`, '--lr', `${lr}`, '--nan', 'skip', ...(gamma ? ['--smooth', `gamma=${gamma},samples=${samples}`] : [])]));
      const last = report.losses.slice(-Math.max(1, Math.floor(steps / 5)));
      const mean = last.reduce((sum, each) => sum + each / last.length, 0);
      return Number.isFinite(mean) ? mean : Infinity;
    };
    losses.sgd.push(Math.min(...RATES.map((lr) => reached(plain, lr, 1, 0))));
    losses.nesterov.push(Math.min(...RATES.map((lr) => reached(fast, lr, 1, 0))));
    losses.pprs.push(Math.min(...RATES.flatMap((lr) => GAMMAS.map((gamma) => reached(fast, lr, depth, gamma)))));
  }
  const gains = losses.pprs.map((loss, i) => Math.min(losses.sgd[i], losses.nesterov[i]) / loss);
  console.log(`${`${depth}`.padStart(5)}  ${[losses.sgd, losses.nesterov, losses.pprs].map((list) => told(list).padEnd(24)).join(' ')} ${told(gains)}`);
}

const SAMPLES = 8;
const wide = stages('wide', { depth: 8, width: 512, rows: 64, micro: 64, k: 2, seed: 1, optimizer: NESTEROV });
const ratios = Array.from({ length: 3 }, () => {
  const { device, bubble_frac: bubble } = JSON.parse(run('train', [...wide, '-n', '12', '--lr', '0.001', '--smooth', `gamma=0.01,samples=${SAMPLES}`]));
  const work = device.map(({ forward_ns: f, backward_ns: b }) => f + b);
  const step = SAMPLES * (work[0] + work[1]) / (2 * (1 - bubble)); // from its first piece to its last
  return step / Math.max(SAMPLES * work[0], work[0] + SAMPLES * work[1]);
});
console.log(`a step of ${SAMPLES} samples on two threads takes ${median(ratios).toFixed(3)} times the least; load ${loadavg()[0].toFixed(1)}`);
