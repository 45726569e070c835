// What ends training, and what it leaves: node train_faults.mjs TRAIN SPLIT ODD [LAUNCHER]
//
// A stage that hangs, in ONNX Runtime as odd_onnxruntime.c makes it behave, ends a run within --timeout;
// over MPI a rank that is killed does. One line says what it was, and the last checkpoint is whole: a run
// goes on from it.
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { model, node, random, tensor, value } from '../gradient/onnx.mjs';
import { writeNpy } from './npy.mjs';
import { Runner, env, library, processesBelow, sleep, within } from './runner.mjs';

const [train, split, odd, launcher = ''] = process.argv.slice(2);
const r = new Runner(train, split, launcher, 2);
const { tap } = r;
const path = (name) => join(r.tmp, name);
const next = random(7);
const numbers = (...dims) => tensor('float32', dims,
  Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => next() - 0.5));
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
  run.ended = new Promise((resolve) => {
    child.on('exit', (status, signal) => resolve({ status: status ?? signal, ms: Date.now() - run.since }));
  });
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
for (let i = 0; i < 200 && !existsSync(join(kept, 'training.json')); i++) await sleep(50);
await sleep(300);
const victim = launcher ? processesBelow(killed.child.pid, train).at(-1) : killed.child.pid;
tap.ok(victim > 0, 'there is a process to kill');
process.kill(victim, 'SIGKILL');
const rest = await within(30000, killed.ended);
tap.ok(rest && rest.status !== 0, launcher ? 'a rank that is killed ends all' : 'a run is killed', JSON.stringify(rest));
if (!rest) killed.child.kill('SIGKILL');
goesOn('its last checkpoint is whole', kept);
tap.done();
