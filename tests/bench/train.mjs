// What does a pipeline of two devices gain over one, in training?
//
//   node train.mjs BUILD_DIR [ROUNDS [WIDTH [STEPS]]]
//
// A chain of 8 layers of WIDTH, written here, is trained by AdamW in one stage and in two, 8 micro-batches a step, one
// thread a device: 1F1B over threads and over MPI (PSPLIT_MPIRUN, "mpirun -n"), fill-drain, zero-bubble H1, and two whole
// trainers at once that share nothing. Beside them what two threads do that share each operator, on whole batches: ONNX
// Runtime with the training graph in one stage, and torch, where /usr/bin/python3 has it (with a fast BLAS, if
// LD_LIBRARY_PATH says where that is). All in turn and again in each round; prints medians of steps a second, and of each
// round's ratios:
//
//   share       1F1B over the two whole trainers together, beside M / (M + K - 1), which the bubble leaves
//   ort, torch  1F1B over ONNX Runtime's and torch's two threads
//   bubble      measured over simulated, each as idle part of the devices' time; of H1 likewise
//
// and each rank's memory beside the whole trainer's. Two quiet cores are what it is meant for; it says how busy the
// machine was. No test: nothing fails.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { library } from '../e2e/places.mjs';
import { model, node, random, tensor, value } from '../gradient/onnx.mjs';
import { writeNpy } from '../runtime/npy.mjs';

const [build, rounds = '5', width = '256', steps = '20'] = process.argv.slice(2);
const WIDTH = Number(width), LAYERS = 8, M = 8, ROWS = 64 * M, K = 2;
const launcher = (process.env.PSPLIT_MPIRUN ?? 'mpirun -n').split(' ');
const tmp = mkdtempSync(join(tmpdir(), 'psplit-train-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const env = {
  ...process.env,
  PSPLIT_ONNXRUNTIME: process.env.PSPLIT_ONNXRUNTIME || library,
};
const tool = (name) => join(build, 'tools', `onnx-pipeline-${name}`);
const next = random(1);
const numbers = (...dims) => tensor('float32', dims,
  Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => (next() - 0.5) / Math.sqrt(dims[0])));
writeFileSync(join(tmp, 'chain.onnx'), model({
  nodes: Array.from({ length: LAYERS }, (_, i) => [node('MatMul', [i ? `y${i - 1}` : 'x', `w${i}`], [`p${i}`]),
    node('Add', [`p${i}`, `b${i}`], [`s${i}`]), node('Relu', [`s${i}`], [`y${i}`])]).flat(),
  initializers: Object.fromEntries(Array.from({ length: LAYERS }, (_, i) => [[`w${i}`, numbers(WIDTH, WIDTH)], [`b${i}`, numbers(WIDTH)]]).flat()),
  inputs: [value('x', 'float32', ['n', WIDTH])], outputs: [value(`y${LAYERS - 1}`, 'float32', ['n', WIDTH])] }));
for (const name of ['x', 'goal']) writeNpy(join(tmp, `${name}.npy`), numbers(ROWS, WIDTH));
for (const [k, name, more] of [[1, '1', []], [K, `${K}`, []], [K, 'apart', ['--weight-gradients', 'apart']]]) {
  const made = spawnSync(tool('split'), [join(tmp, 'chain.onnx'), '-k', `${k}`, '-o', join(tmp, name), '--quiet', '--dim', `n=${ROWS / M}`,
    '--training', '--loss', 'mse:target=goal', '--trained-weights', 'input', ...more], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
}

const usual = ['--data', `x=${join(tmp, 'x.npy')}`, '--data', `goal=${join(tmp, 'goal.npy')}`, '-m', `${M}`, '-n', steps, '--json'];
function trains(k, args = [], ranks = 0) {
  const [program, ...rest] = [...(ranks ? [...launcher, `${ranks}`] : []), tool('train'), join(tmp, `${k}`), ...usual, ...args];
  return new Promise((resolve, reject) => {
    const child = spawn(program, rest, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (data) => { text += data; });
    child.on('close', (status) => (status === 0 ? resolve(JSON.parse(text)) : reject(new Error(`${program}: ${status}`))));
  });
}
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const kinds = { whole: [], together: [], '1f1b': [], mpi: [], 'fill-drain': [], 'zb-h1': [], 'ort 2 threads': [], 'torch 2 threads': [] };
const shares = [], bubbles = [], bubblesH1 = [], overOrt = [], overTorch = [];
// The same chain, optimizer and loss in torch; the same number of whole batches.
const TORCH = `
import time, torch
torch.set_num_threads(2)
layers = [torch.nn.Sequential(torch.nn.Linear(${WIDTH}, ${WIDTH}), torch.nn.ReLU()) for _ in range(${LAYERS})]
net = torch.nn.Sequential(*layers)
x, goal = torch.randn(${ROWS}, ${WIDTH}), torch.randn(${ROWS}, ${WIDTH})
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(x), goal).backward()
    optimizer.step()
step()
start = time.perf_counter()
for _ in range(${steps}):
    step()
print(${steps} / (time.perf_counter() - start))
`;
function torchRate() {
  const done = spawnSync('/usr/bin/python3', ['-c', TORCH], { encoding: 'utf8', env: { ...env, OMP_NUM_THREADS: '2', OPENBLAS_NUM_THREADS: '2' } });
  return done.status === 0 ? Number(done.stdout) : NaN;
}
let memory = [];
for (let round = 0; round < Number(rounds); round++) {
  const whole = await trains(1);
  const both = await Promise.all([trains(1), trains(1)]);
  const pipe = await trains(K), mpi = await trains(K, [], K), drained = await trains(K, ['--schedule', 'fill-drain']);
  const h1 = await trains('apart', ['--schedule', 'zb-h1']);
  const shared = await trains(1, ['-m', '1', '--threads', '2']), torch = torchRate();
  const together = both[0].steps_per_s + both[1].steps_per_s;
  for (const [kind, rate] of Object.entries({ whole: whole.steps_per_s, together, '1f1b': pipe.steps_per_s, mpi: mpi.steps_per_s,
    'fill-drain': drained.steps_per_s, 'zb-h1': h1.steps_per_s, 'ort 2 threads': shared.steps_per_s, 'torch 2 threads': torch })) kinds[kind].push(rate);
  shares.push(pipe.steps_per_s / together);
  overOrt.push(pipe.steps_per_s / shared.steps_per_s);
  overTorch.push(pipe.steps_per_s / torch);
  bubbles.push(pipe.bubble_frac / pipe.simulated_bubble_frac);
  bubblesH1.push(h1.bubble_frac / h1.simulated_bubble_frac);
  memory = [whole.device[0].peak_resident_bytes, ...mpi.device.map((each) => each.peak_resident_bytes)];
}
for (const [kind, list] of Object.entries(kinds)) console.log(`${kind.padEnd(16)} ${median(list).toFixed(2).padStart(10)} steps/s`);
console.log(`share            ${median(shares).toFixed(3).padStart(10)} of two trainers; the bubble leaves ${(M / (M + K - 1)).toFixed(3)}`);
console.log(`ort              ${median(overOrt).toFixed(3).padStart(10)} of ONNX Runtime's two threads`);
console.log(`torch            ${median(overTorch).toFixed(3).padStart(10)} of torch's two threads`);
console.log(`bubble           ${median(bubbles).toFixed(2).padStart(10)} of the simulated one; ${median(bubblesH1).toFixed(2)} with zb-h1`);
console.log(`memory           ${memory.map((bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`).join(', ')}: whole, then each rank`);
console.log(`load ${loadavg()[0].toFixed(1)}`);
