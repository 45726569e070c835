// Training over ranks on two hosts, which talk over TCP:
//
//   node train_hosts.mjs TRAIN SPLIT mpich|openmpi MPIRUN
//
// Hosts are network namespaces (spaces.mjs). Losses and weights are those of threads, bit for bit, with
// 1F1B and with zero-bubble H1, from the beginning and from a checkpoint of threads. What the ranks
// send passes the network.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { skipAll } from '../e2e/tap.mjs';
import { drawnTensors, model, node, random, value } from '../gradient/onnx.mjs';
import { writeNpy } from './npy.mjs';
import { Runner, env, library, unlessItFalls } from './runner.mjs';
import { joinHosts, sent } from './spaces.mjs';

const [train, split, kind, mpirun] = process.argv.slice(2);
if (kind.startsWith('skip ')) skipAll(kind.slice(5));
const r = new Runner(train, split);
const { tap, tmp } = r;
const launch = joinHosts(2, kind, mpirun, tmp);

const WIDTH = 64, ROWS = 64, LAYERS = 4, STEPS = 6;
const numbers = drawnTensors(random(7), ([rows]) => 1 / Math.sqrt(rows));
writeFileSync(join(tmp, 'chain.onnx'), model({
  nodes: Array.from({ length: LAYERS }, (_, i) => [node('MatMul', [i ? `y${i - 1}` : 'x', `w${i}`], [`p${i}`]),
    node('Tanh', [`p${i}`], [`y${i}`])]).flat(),
  initializers: Object.fromEntries(Array.from({ length: LAYERS }, (_, i) => [`w${i}`, numbers(WIDTH, WIDTH)])),
  inputs: [value('x', 'float32', ['n', WIDTH])], outputs: [value(`y${LAYERS - 1}`, 'float32', ['n', WIDTH])] }));
for (const name of ['x', 'goal']) writeNpy(join(tmp, `${name}.npy`), numbers(ROWS, WIDTH));
const dir = join(tmp, 'stages');
const made = r.start(split, [join(tmp, 'chain.onnx'), '-k', '2', '-o', dir, '--quiet', '--dim', 'n=8', '--training', '--loss', 'mse:target=goal',
  '--trained-weights', 'input', '--weight-gradients', 'apart']);
if (!tap.ok(made.status === 0, 'a model in two stages', made.stderr)) process.exit(1);

const usual = [dir, '--data', `x=${join(tmp, 'x.npy')}`, '--data', `goal=${join(tmp, 'goal.npy')}`, '-m', '8', '--optimization', '0', '--json'];
// MPICH 4.0 may hang in MPI_Finalize, when all is done: what was printed counts. How a rank that leaves then ended its
// launcher may say behind it.
const LAUNCHER_SAYS = /^(=+\n= {3}BAD TERMINATION|YOUR APPLICATION TERMINATED)[^]*/m;
function run(program, args) {
  const { status, stdout, stderr } = unlessItFalls(() =>
    spawnSync(program, args, { encoding: 'utf8', env, timeout: 60000, killSignal: 'SIGKILL' }));
  try {
    const report = JSON.parse(stdout.replace(LAUNCHER_SAYS, ''));
    return { ...report, result: JSON.stringify([report.losses, report.weights_digest]) };
  } catch {
    return { result: `${status} ${stderr}${stdout}` };
  }
}
const byThreads = (...args) => run(train, [...usual, ...args]);
const byHosts = (...args) => run('ip', [...launch, train, ...usual, '--onnxruntime', library, ...args]);

const whole = byThreads('-n', `${STEPS}`);
tap.ok(whole.losses?.length === STEPS && whole.losses.at(-1) < whole.losses[0], 'threads: the loss falls', whole.result);
for (const schedule of ['1f1b', 'zb-h1']) {
  const before = sent(0);
  const got = byHosts('-n', `${STEPS}`, '--schedule', schedule);
  tap.ok(got.result === whole.result && got.transport === 'mpi', `two hosts, ${schedule}: the bits of threads`, got.result);
  const moved = sent(0) - before, least = STEPS * ROWS * WIDTH * 4;
  tap.ok(moved > least, 'what they send passes the network', `${moved} bytes, ${least} of activations`);
}
const half = join(tmp, 'half');
byThreads('-n', `${STEPS / 2}`, '--checkpoint', half);
const on = byHosts('-n', `${STEPS}`, '--resume', half, '--schedule', 'zb-h1');
tap.ok(on.first_step === STEPS / 2 && on.weights_digest === whole.weights_digest, 'two hosts go on from a checkpoint of threads', on.result);
const state = JSON.parse(readFileSync(join(half, 'training.json')));
tap.ok(state.step === STEPS / 2, 'which stays as it was', JSON.stringify(state));
tap.done();
