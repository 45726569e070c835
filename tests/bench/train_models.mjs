// Do models learn, in stages, by threads and by ranks of two hosts, stopped in between?
//
//   node train_models.mjs BUILD_DIR [mpich|openmpi MPIRUN]
//
// A GPT (2 layers of 48) and a ResNet-18 (64 x 64), which torch exports (../gradient/families.py), are trained in two
// stages on data that is made here: sequences in which each word says which is next, and pictures of four kinds of waves
// in noise. The first half of the steps are threads' by 1F1B; ranks go on from their checkpoint by zero-bubble H1: in two
// network namespaces with a launcher (root and iproute2 wanted, see ../runtime/spaces.mjs), else by threads as well. It
// exits with 1 unless each arrives at the loss that is stated below, which a model that knows nothing is far from. Five
// minutes on two cores.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { random, tensor } from '../gradient/onnx.mjs';
import { writeNpy } from '../runtime/npy.mjs';
import { env, library } from '../runtime/runner.mjs';
import { joinHosts } from '../runtime/spaces.mjs';

const [build, kind, mpirun] = process.argv.slice(2);
const tool = (name) => join(resolve(build), 'tools', `onnx-pipeline-${name}`);
const tmp = mkdtempSync(join(tmpdir(), 'psplit-models-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const hosts = kind ? joinHosts(2, kind, mpirun, tmp) : null;
const next = random(11);
const below = (n) => Math.floor(next() * n);
const fill = (type, dims, make) => tensor(type, dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => make(i)));

const WORDS = 61, LENGTH = 24, ROWS = 64, SIDE = 64, KINDS = 4, PICTURES = 32;
const sentences = Array.from({ length: ROWS }, () => {
  const list = [below(WORDS)];
  while (list.length <= LENGTH) list.push((list.at(-1) * 7 + 3) % WORDS);
  return list;
});
const labels = Array.from({ length: PICTURES }, (_, i) => i % KINDS);
const wave = (label, y, x) => Math.sin((label % 2 ? x : y) * (label < 2 ? 0.3 : 0.9));
const models = {
  gpt: { most: 0.5, steps: 120, lr: '0.01', batch: 32, micro: 4, loss: 'softmax-cross-entropy:labels=target,ignore=-100,axis=-1',
    split: ['--dim', 'batch=8', '--dim', `length=${LENGTH}`], data: {
      tokens: fill('int64', [ROWS, LENGTH], (i) => sentences[Math.floor(i / LENGTH)][i % LENGTH]),
      target: fill('int64', [ROWS, LENGTH], (i) => sentences[Math.floor(i / LENGTH)][i % LENGTH + 1]) } },
  resnet18: { most: 0.5, steps: 24, lr: '0.001', batch: 8, micro: 4, loss: 'softmax-cross-entropy:labels=target', split: [], data: {
    image: fill('float32', [PICTURES, 3, SIDE, SIDE], (i) => wave(labels[Math.floor(i / (3 * SIDE * SIDE))], Math.floor(i / SIDE) % SIDE, i % SIDE) + next() - 0.5),
    target: fill('int64', [PICTURES], (i) => labels[i]) } },
};

function run(program, args) {
  const done = spawnSync(program, args, { encoding: 'utf8', env });
  try {
    return JSON.parse(done.stdout);
  } catch {
    throw new Error(`${program} ${args.join(' ')}: ${done.status ?? done.signal} ${done.stderr}`);
  }
}
const made = spawnSync('/usr/bin/python3', [fileURLToPath(new URL('../gradient/families.py', import.meta.url)), tmp, ...Object.keys(models)], { encoding: 'utf8' });
if (made.status !== 0) throw new Error(made.stderr);
for (const [name, { most, steps, lr, batch, micro, loss, split, data }] of Object.entries(models)) {
  const dir = join(tmp, `${name}-stages`), kept = join(tmp, `${name}-checkpoint`);
  const cut = spawnSync(tool('split'), [join(tmp, name, 'model.onnx'), '-k', '2', '-o', dir, '--quiet', '--training', '--loss', loss,
    '--trained-weights', 'input', '--weight-gradients', 'apart', ...split], { encoding: 'utf8' });
  if (cut.status !== 0) throw new Error(cut.stderr);
  for (const [input, array] of Object.entries(data)) writeNpy(join(tmp, `${name}-${input}.npy`), array);
  const usual = [dir, ...Object.keys(data).flatMap((input) => ['--data', `${input}=${join(tmp, `${name}-${input}.npy`)}`]), '-b', `${batch}`,
    '-m', `${micro}`, '--lr', lr, '--clip-norm', '1', '--checkpoint', kept, '--json'];
  const first = run(tool('train'), [...usual, '-n', `${steps / 2}`]);
  const later = [...usual, '-n', `${steps}`, '--resume', kept, '--schedule', 'zb-h1'];
  const second = hosts ? run('ip', [...hosts, tool('train'), ...later, '--onnxruntime', library]) : run(tool('train'), later);
  const last = second.losses.slice(-4).reduce((sum, each) => sum + each / 4, 0);
  if (last > most || second.first_step !== steps / 2) process.exitCode = 1;
  console.log(`${name.padEnd(10)} loss ${first.losses[0].toFixed(3)} -> ${first.losses.at(-1).toFixed(3)} (threads, ${steps / 2} steps) -> ${last.toFixed(3)} ` +
    `(${hosts ? 'ranks of two hosts' : 'threads'}, ${steps} steps); at most ${most} is wanted`);
}
