// onnx-pipeline-run --stream: micro-batches as they come, outputs as they are made.
//
//   node stream.mjs RUN SPLIT [LAUNCHER]
//
// The reference is a run of the same inputs as numbered files. What a run may hold of a stream whose
// outputs nobody takes is bounded, and it ends within seconds whoever goes away.
import { spawn, spawnSync } from 'node:child_process';
import {
  createReadStream, createWriteStream, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { npyBytes, writeNpy } from './npy.mjs';
import { Runner, endOf, env, letGo, sleep, until, within } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const { dir, manifest: { inputs: [{ name: input }] } } = each.split('fan_out');

const tensor = (rows, seed) => ({
  type: 'float32', dims: [rows, 8], data: Float32Array.from({ length: 8 * rows }, (_, i) => Math.sin(seed + i)),
});
const batches = [3, 1, 7, 2, 5].map((rows, i) => tensor(rows, i));
const records = Buffer.concat(batches.map(npyBytes));
mkdirSync(join(tmp, 'in'));
batches.forEach((batch, i) => writeNpy(join(tmp, 'in', `${i}.npy`), batch));
const numbered = ['--input', `${input}=${join(tmp, 'in', '{}.npy')}`];
const stdin = ['--stream', '--input', `${input}=-`];

const contents = (out) => readdirSync(join(tmp, out)).sort()
  .map((file) => `${file} ${readFileSync(join(tmp, out, file)).toString('base64')}`);
function runs(title, out, args, options) {
  const { status, stderr } = each.run([dir, '--quiet', '--output', join(tmp, out), ...args], options);
  return tap.ok(status === 0, title, `exit status ${status}\n${stderr}`);
}
function same(title, out) {
  const [got, wanted] = [contents(out), contents('reference')];
  tap.none(wanted.filter((line, i) => line !== got[i]).map((line) => line.slice(0, 60)), title);
}
runs('numbered files', 'reference', [...numbered, '-m', '5', '--warmup', '0']);
const wanted = Buffer.concat(batches.map((_, i) => readFileSync(join(tmp, 'reference', `${i}-0.npy`))));

if (runs('.npy after .npy on standard input', 'stdin', stdin, { input: records })) {
  same('they give what numbered files give', 'stdin');
}
if (runs('numbered files to the first that is not there', 'counted', ['--stream', ...numbered])) {
  same('they give the same', 'counted');
}
if (runs('at most three', 'three', [...stdin, '-m', '3'], { input: records })) {
  tap.ok(JSON.parse(readFileSync(join(tmp, 'three', 'outputs.json'))).micro_batches === 3 &&
    readdirSync(join(tmp, 'three')).length === 4, 'three are run');
}
each.fails('numbered files of which there is none', 3, /nowhere\/0\.npy: cannot be read: No such file/,
  [dir, '--quiet', '--stream', '--input', `${input}=${join(tmp, 'nowhere', '{}.npy')}`]);
runs('an empty stream', 'none', stdin, { input: '' });
const raw = Buffer.concat([0, 1].map((i) => Buffer.from(tensor(3, i).data.buffer)));
runs('raw numbers on standard input', 'raw',
  ['--stream', '--input', `${input}=/dev/stdin`, '--dim', 'n=3'], { input: raw });
tap.ok(JSON.parse(readFileSync(join(tmp, 'raw', 'outputs.json'))).micro_batches === 2, 'two of them');

const through = each.run([dir, ...stdin, '--output', '-'], { input: records, encoding: 'buffer' });
tap.ok(through.status === 0 && through.stdout.equals(wanted), 'outputs on standard output',
  `${through.status}: ${through.stdout.length} of ${wanted.length} bytes\n${through.stderr}`);
tap.ok(/5 micro-batches/.test(`${through.stderr}`), 'the table goes to standard error');
const files = each.run([dir, ...numbered, '-m', '5', '--output', '-', '-q'], { encoding: 'buffer' });
tap.ok(files.status === 0 && files.stdout.equals(wanted), 'also without a stream of inputs',
  `${files.status}: ${files.stdout.length} of ${wanted.length} bytes\n${files.stderr}`);

// Two inputs on one stream take turns, in the order of the model's inputs.
const two = each.split('two_inputs');
const pairs = [0, 1, 2].flatMap((i) => two.manifest.inputs.map((_, at) => tensor(3, 10 * i + at)));
const names = two.manifest.inputs.flatMap(({ name }) => ['--input', `${name}=-`]);
const taken = each.run([two.dir, '--stream', ...names, '-o', '-', '-q'],
  { input: Buffer.concat(pairs.map(npyBytes)), encoding: 'buffer' });
pairs.forEach((batch, i) => writeNpy(join(tmp, `pair${i % 2}-${Math.floor(i / 2)}.npy`), batch));
const apart = each.run([two.dir, '-m', '3', '-o', '-', '-q', ...two.manifest.inputs.flatMap(
  ({ name }, at) => ['--input', `${name}=${join(tmp, `pair${at}-{}.npy`)}`])], { encoding: 'buffer' });
tap.ok(taken.status === 0 && apart.status === 0 && taken.stdout.length > 0 &&
  taken.stdout.equals(apart.stdout), 'two inputs take turns', `${taken.stderr}${apart.stderr}`);
each.fails('one input ends before the other', 4, /micro-batch 1: .*has ended/,
  [two.dir, '--stream', ...names, '-q'], { input: Buffer.concat(pairs.slice(0, 3).map(npyBytes)) });

// Mistakes name the micro-batch.
const bad = (title, status, pattern, bytes) =>
  each.fails(title, status, pattern, [dir, ...stdin, '-q'], { input: bytes });
bad('a stream that breaks off', 4, /micro-batch 4: .*ends within a tensor/, records.subarray(0, -5));
bad('what is no .npy', 4, /micro-batch 5: .*not a \.npy/, Buffer.concat([records, Buffer.from('nonsense')]));
bad('another type', 4, /micro-batch 5: .*float32/, Buffer.concat(
  [records, npyBytes({ type: 'float64', dims: [1, 8], data: new Float64Array(8) })]));
bad('another shape', 4, /micro-batch 5: input \S+: - has shape \[8\], the input is \[n,8\]/, Buffer.concat(
  [records, npyBytes({ ...tensor(1, 0), dims: [8] })]));
each.fails('standard input without --stream', 2, /--stream/, [dir, '--input', `${input}=-`]);
each.fails('nothing ends it', 2, /--micro-batches/, [dir, '--stream', '--random', '--dim', 'n=3']);

// A run that is under way. Launchers of MPI do not hold back what they pass on, and some break off
// where a rank does not read as fast as it comes; so named pipes stand for the standard streams.
let n_runs = 0;
function start(...args) {
  const pipes = ['in.npy', 'out'].map((name) => join(tmp, `${n_runs++}-${name}`));
  spawnSync('mkfifo', pipes);
  const streams = launcher ? ['--stream', '--input', `${input}=${pipes[0]}`, '-o', pipes[1]]
    : [...stdin, '-o', '-'];
  const [program, ...rest] = each.command([dir, ...streams, '-q', ...args]);
  const child = spawn(program, rest, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const run = {
    child,
    stdin: launcher ? createWriteStream(pipes[0]) : child.stdin,
    stdout: launcher ? createReadStream(pipes[1]) : child.stdout,
    stderr: '',
  };
  child.stderr.on('data', (data) => { run.stderr += data; });
  run.stdin.on('error', () => {});
  run.ended = endOf(child);
  if (launcher) letGo(run.ended, pipes);
  run.drained = () => Promise.race([run.ended, new Promise((resolve) => { run.stdin.once('drain', resolve); })]);
  run.end = (ms = 20000) => within(ms, run.ended);
  return run;
}

// Each output comes before the next input goes in, however long that takes.
{
  const run = start('--timeout', '1');
  let n = 0;
  let got = 0;
  run.stdout.on('data', (data) => { got += data.length; });
  const sizes = batches.map((_, i) => readFileSync(join(tmp, 'reference', `${i}-0.npy`)).length);
  for (let i = 0; i < 3; i++) {
    n += sizes[i];
    run.stdin.write(npyBytes(batches[i]));
    await until(() => got >= n);
    if (i === 1) await sleep(2500); // longer than --timeout: a source may be slow
  }
  tap.ok(got === n, 'each output comes before the next input', `${got} bytes of ${n}\n${run.stderr}`);
  run.stdin.end();
  tap.ok((await run.end())?.status === 0, 'and the end of the stream ends the run', run.stderr);
}

// Nobody takes outputs: the stages stop, and with them the reading.
{
  const megabyte = npyBytes(tensor(32768, 1));
  const run = start('--depth', '1');
  let accepted = 0;
  let stalled = false;
  run.stdout.pause();
  const total = 200;
  (async () => {
    for (let i = 0; i < total; i++) {
      if (!run.stdin.write(megabyte)) await run.drained();
      accepted = i + 1;
    }
    run.stdin.end();
  })();
  for (let last = -1, quiet = 0; quiet < 15 && accepted < total; last = accepted) {
    await sleep(100);
    quiet = accepted === last && accepted > 0 ? quiet + 1 : 0;
    stalled = quiet >= 14;
  }
  tap.ok(stalled && accepted < 40, 'backpressure: reading stops when nobody takes outputs', `${accepted} MB`);
  let got = 0;
  run.stdout.on('data', (data) => { got += data.length; });
  run.stdout.resume();
  const end = await run.end(50000);
  tap.ok(end?.status === 0 && got > total * 1e6, 'and goes on when somebody does',
    `${JSON.stringify(end)} ${got}\n${run.stderr}`);
}

// Memory does not grow with the stream.
{
  const rows = npyBytes(tensor(4096, 1));
  const run = start();
  run.stdout.resume();
  const peak = () => {
    try {
      return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${run.child.pid}/status`))[1]);
    } catch {
      return 0;
    }
  };
  const push = async (n) => {
    for (let i = 0; i < n; i++) {
      if (!run.stdin.write(rows)) await run.drained();
    }
  };
  await push(400);
  const early = peak();
  await push(2000);
  const late = peak();
  run.stdin.end();
  tap.ok((await run.end())?.status === 0 && late < early + 30000, 'memory is bounded', `${early}, ${late} KB`);
}

// Who goes away.
{
  const run = start();
  await sleep(1500);
  run.child.kill('SIGINT');
  const end = await run.end();
  tap.ok(end && end.status !== 0, 'Ctrl-C while waiting for input', run.stderr);
  if (!end) run.child.kill('SIGKILL');
}
{
  const run = start();
  run.stdin.write(records);
  await new Promise((resolve) => { run.stdout.once('data', resolve); });
  run.stdout.destroy();
  for (let i = 0; i < 20; i++) {
    run.stdin.write(records);
    await sleep(20);
  }
  const end = await run.end();
  tap.ok(end && (end.status !== 0 || end.signal), 'nobody reads any more', `${JSON.stringify(end)}\n${run.stderr}`);
  if (!end) run.child.kill('SIGKILL');
}
if (!launcher) {
  const fifo = join(tmp, 'fifo.npy');
  spawnSync('mkfifo', [fifo]);
  const [program, ...rest] = each.command(
    [dir, '--stream', '--input', `${input}=${fifo}`, '-q', '-o', join(tmp, 'fifo')]);
  const child = spawn(program, rest, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  letGo(ended, [fifo]);
  await sleep(500);
  const writer = createWriteStream(fifo);
  writer.on('error', () => {});
  writer.end(records);
  tap.ok(await ended === 0, 'a named pipe that is written late');
  same('it gives the same', 'fifo');
}
rmSync(tmp, { recursive: true });
tap.done();
