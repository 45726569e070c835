// What ends training, and what it leaves: node train_faults.mjs TRAIN SPLIT ODD [LAUNCHER]
//
// A stage that hangs, in ONNX Runtime as odd_onnxruntime.c makes it behave, ends a run within --timeout;
// over MPI a rank that is killed does. One line says what it was, and the last checkpoint is whole: a run
// goes on from it.
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawnTensors, model, node, random, value } from '../gradient/onnx.mjs';
import { writeNpy } from './npy.mjs';
import { Runner, Watch, endOf, env, library, processesBelow, settled, sleep, until, within } from './runner.mjs';

const [train, split, odd, launcher = ''] = process.argv.slice(2);
const r = new Runner(train, split, launcher, 2);
const { tap } = r;
const path = (name) => join(r.tmp, name);
const numbers = drawnTensors(random(7));
writeFileSync(path('net.onnx'), model({
  nodes: [node('MatMul', ['x', 'a'], ['p']), node('Tanh', ['p'], ['t']), node('MatMul', ['t', 'b'], ['q']),
    node('Tanh', ['q'], ['u']), node('MatMul', ['u', 'c'], ['y'])],
  initializers: { a: numbers(6, 16), b: numbers(16, 16), c: numbers(16, 3) },
  inputs: [value('x', 'float32', ['n', 6])], outputs: [value('y', 'float32', ['n', 3])] }));
writeNpy(path('x.npy'), numbers(64, 6));
writeNpy(path('t.npy'), numbers(64, 3));
const dir = path('stages');
const made = r.start(split, [path('net.onnx'), '-k', '2', '-o', dir, '--quiet', '--dim', 'n=4', '--training', '--loss', 'mse:target=goal',
  '--trained-weights', 'input', '--depth', '0']);
if (made.status !== 0) throw new Error(made.stderr);
const USUAL = [dir, '--data', `x=${path('x.npy')}`, '--data', `goal=${path('t.npy')}`, '-b', '16', '-m', '4', '--lr', '1e-6'];
const goesOn = (title, checkpoint) => {
  const read = r.run([...USUAL, '--steps', '1', '--resume', checkpoint, '--json']);
  tap.ok(read.status === 0 && JSON.parse(read.stdout).first_step > 0, title, read.stderr);
};

function start(args, more = {}) {
  const [program, ...rest] = r.command(args);
  const child = spawn(program, rest, { env: { ...env, ...more } });
  const run = { child, stderr: '', stdout: '', since: Date.now() };
  child.stderr.on('data', (data) => { run.stderr += data; });
  child.stdout.on('data', (data) => { run.stdout += data; });
  run.ended = endOf(child).then(({ status, signal, at }) => ({ status: status ?? signal, ms: at - run.since }));
  return run;
}

// A backward pass that never returns.
const ODD = (what) => ({ ODD: what, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd });
const hung = start([...USUAL, '--timeout', '1', '--quiet'], ODD('hang-run stage1.backward'));
const end = await within(30000, hung.ended);
tap.ok(end && end.status !== 0 && end.ms < 20000 && /^error: .*stage1\.backward\.onnx has been computed for more than 1 s/m.test(hung.stderr),
  'a stage that hangs is named', `${JSON.stringify(end)} ${hung.stderr}`);
const opening = start([...USUAL, '--timeout', '1', '--quiet'], ODD('hang-open stage0.update'));
const opened = await within(30000, opening.ended);
tap.ok(opened && opened.status !== 0 && /^error: .*stage0\.update\.onnx has been opened or closed for more than 1 s/m.test(opening.stderr),
  'one that does not open too', `${JSON.stringify(opened)} ${opening.stderr}`);

// Killed, with checkpoints at each step.
const kept = path('kept');
const killed = start([...USUAL, '--steps', '100000000', '--checkpoint', kept, '--checkpoint-every', '1', '--timeout', '2', '--quiet']);
await until(() => existsSync(join(kept, 'training.json')), 60);
await sleep(300);
const victim = launcher ? processesBelow(killed.child.pid, train).at(-1) : killed.child.pid;
tap.ok(victim > 0, 'there is a process to kill');
process.kill(victim, 'SIGKILL');
const rest = await within(30000, killed.ended);
tap.ok(rest && rest.status !== 0, launcher ? 'a rank that is killed ends all' : 'a run is killed', JSON.stringify(rest));
if (!rest) killed.child.kill('SIGKILL');
goesOn('its last checkpoint is whole', kept);

// A signal in a step that takes seconds: it is given up, and the checkpoint is of those before it, running statistics
// included. The same in an evaluation. Stage 1 sleeps before it computes.
writeFileSync(path('norm.onnx'), model({
  nodes: [node('MatMul', ['x', 'a'], ['p']), node('BatchNormalization', ['p', 's', 'z', 'mean', 'var'], ['n', 'm', 'v'], { training_mode: 1n }),
    node('MatMul', ['n', 'b'], ['q']), node('Tanh', ['q'], ['u']), node('MatMul', ['u', 'c'], ['y'])],
  initializers: { a: numbers(6, 16), b: numbers(16, 16), c: numbers(16, 3), s: numbers(16), z: numbers(16), mean: numbers(16), var: numbers(16) },
  inputs: [value('x', 'float32', ['n', 6])], outputs: [value('y', 'float32', ['n', 3])] }));
const norm = path('norm');
const split2 = r.start(split, [path('norm.onnx'), '-k', '2', '-o', norm, '--quiet', '--dim', 'n=4', '--training', '--loss', 'mse:target=goal',
  '--trained-weights', 'input', '--depth', '0']);
if (split2.status !== 0) throw new Error(split2.stderr);
const DATA = USUAL.slice(1), DIGEST = '"weights_digest"';
const digest = (title, args, stages = norm) => {
  const read = r.run([stages, ...DATA, ...args, '--json']);
  tap.ok(read.status === 0 && read.stdout.includes(DIGEST), title, read.stderr);
  return JSON.parse(read.stdout || '{}');
};
async function givenUp(title, more, shown, at, stages = norm, always = []) {
  const checkpoint = path(title.replace(/ /g, '-'));
  const run = start([stages, ...DATA, '--steps', '100', '--log-every', '1', '--checkpoint', checkpoint, ...more, ...always], ODD('slow-run stage1 120'));
  await until(() => run.stdout.includes(shown), 60);
  await sleep(at);
  const pids = launcher ? processesBelow(run.child.pid, train) : [run.child.pid];
  const watch = new Watch(pids[0]);
  for (const pid of pids) process.kill(pid, 'SIGINT');
  const ms = await watch.untilEnded();
  const over = await within(20000, run.ended);
  if (!over) run.child.kill('SIGKILL');
  const steps = Number(/^error: interrupted after step (\d+), which is in /m.exec(run.stderr)?.[1]);
  tap.ok(over?.status === 130 && ms < 1700 + (launcher ? 1000 : 0) && steps > 0, `${title}: it ends`, `${JSON.stringify(over)} after ${ms} ms ${run.stderr}${run.stdout}`);
  const on = digest(`${title}: it goes on`, ['--steps', `${steps + 2}`, '--resume', checkpoint, ...always], stages);
  const through = digest(`${title}: a run without a break`, ['--steps', `${steps + 2}`, ...always], stages);
  tap.ok(on.first_step === steps && on.weights_digest === through.weights_digest, `${title}: to the same weights`, `${on.weights_digest} ${through.weights_digest}`);
  return { steps, stdout: run.stdout };
}
const step = await givenUp('a long step', [], 'step 2/', 500);
tap.ok(!step.stdout.includes(`step ${step.steps + 1}/`) && step.steps < 5, 'a long step: it does not count', step.stdout);
r.ranks = 4;
await givenUp('a long step of replicas', [], 'step 2/', 300, dir, ['--replicas', '2']);
r.ranks = 2;
const evaluation = await givenUp('a long evaluation', ['--eval-every', '2', '--eval-data', `x=${path('x.npy')}`, '--eval-data', `goal=${path('t.npy')}`], 'step 1/', 1900);
tap.ok(evaluation.steps === 2 && /^step 2\/100 (?!.*evaluation)/m.test(evaluation.stdout), 'a long evaluation: the step before it counts', evaluation.stdout);
// Without a step there is nothing to keep, and an older checkpoint stays.
const first = start([norm, ...DATA, '--steps', '100', '--checkpoint', path('a-long-step')], ODD('slow-run stage1 400'));
if (launcher) await until(() => processesBelow(first.child.pid, train).length >= 2);
for (const pid of launcher ? processesBelow(first.child.pid, train) : [first.child.pid]) await settled(pid, 2);
for (const pid of launcher ? processesBelow(first.child.pid, train) : [first.child.pid]) process.kill(pid, 'SIGTERM');
const none = await within(20000, first.ended);
if (!none) first.child.kill('SIGKILL');
tap.ok(none?.status === 143 && /^error: interrupted/m.test(first.stderr), 'in the first step', `${JSON.stringify(none)} ${first.stderr}`);
tap.ok(digest('an older checkpoint', ['--steps', `${step.steps}`, '--resume', path('a-long-step')]).first_step === step.steps, 'stays');
tap.done();
