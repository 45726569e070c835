// What a run holds where nobody takes its outputs:
//
//   node bounded.mjs RUN SPLIT [LAUNCHER]
//
// However small tensors are, so that a transport may take them before anybody wants them, and however
// large: no process grows, no more is read than all queues and stages hold, and no thread spins.
import { spawn, spawnSync } from 'node:child_process';
import { createWriteStream, readFileSync, readdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { npyBytes } from './npy.mjs';
import { Runner, env, letGo, processesBelow, sleep, within } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const { dir, manifest: { inputs: [{ name: input }], stages } } = each.split('fan_out');
const ROW_BYTES = 8 * 4;
const DEPTH = 2; // without --depth
// Beside 20 MiB: where a run's first outputs come before its queues are full, these fill behind.
const places = (DEPTH + 1) * stages.reduce((sum, { inputs, outputs }) => sum + inputs.length + outputs.length, 0);
const mostGrowthKib = (bytes) => (20 << 10) + (places * bytes) / 1024;
const [FEWEST_LOOKS, MOST_LOOKS, MOST_WAKES] = [4, 30, 1000]; // a second each

let n_runs = 0;
// A run whose output is a pipe of which so far only the first bytes were read.
async function start(...args) {
  const pipe = join(tmp, `${n_runs++}-out`);
  spawnSync('mkfifo', [pipe]);
  const [program, ...rest] = each.command([dir, '--stream', '-q', '-o', pipe, ...args]);
  const child = spawn(program, rest, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const run = { child, pipe, stderr: '' };
  child.stderr.on('data', (data) => { run.stderr += data; });
  run.ended = new Promise((resolve) => { child.on('exit', (status) => resolve(status ?? -1)); });
  letGo(run.ended, [pipe]);
  return run;
}
async function firstBytes(run) {
  run.reader = await Promise.race([open(run.pipe), run.ended.then(() => undefined)]);
  if (run.reader) await run.reader.read(Buffer.alloc(64));
}
// The reader goes, which ends the run.
async function end(run) {
  await run.reader?.close();
  if (await within(20000, run.ended) === undefined) {
    run.child.kill('SIGKILL');
    tap.ok(false, 'it ends when the reader goes', run.stderr);
  }
}

const residentKib = (pid) => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`))[1]);
  } catch {
    return NaN;
  }
};
// How often its threads have gone to sleep by themselves.
const wakes = (pids) => pids.map((pid) => {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce((sum, task) => sum + Number(
      /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/task/${task}/status`))[1]), 0);
  } catch {
    return NaN;
  }
});
const sizes = launcher ? [32, 1 << 10, 8 << 10, 64 << 10, 1 << 20] : [32, 1 << 20];
for (const bytes of sizes) {
  const run = await start('--random', '--shape', `${input}=${bytes / ROW_BYTES},8`, '-m', '10000000');
  await firstBytes(run);
  const pids = launcher ? processesBelow(run.child.pid, runner) : [run.child.pid];
  const before = pids.map(residentKib);
  // Once all queues are full they leave the core to others: at the latest then is when to look. A machine that is busy,
  // or code that counts what it does, takes its time to fill them.
  let [growth, rates] = [[0], [Infinity]];
  for (let look = 0; look < MOST_LOOKS && (look < FEWEST_LOOKS || !rates.every((n) => n < MOST_WAKES)) &&
      Math.max(...growth) < mostGrowthKib(bytes); look++) {
    const first = wakes(pids);
    await sleep(1000);
    rates = wakes(pids).map((n, i) => n - first[i]);
    growth = pids.map((pid, i) => residentKib(pid) - before[i]);
  }
  tap.ok(pids.length === (launcher ? each.ranks : 1) && growth.every((kib) => kib < mostGrowthKib(bytes)),
    `tensors of ${bytes} bytes: no process grows`, `${growth} KiB\n${run.stderr}`);
  tap.ok(rates.every((n) => n < MOST_WAKES), `tensors of ${bytes} bytes: processes that wait sleep`,
    `${rates} wakes/s`);
  await end(run);
}

// Tensors so large that a pipe holds none whole: what was written was read. The last stage takes the
// input too, so on the shortest way the feeder, that stage and the collector have one at hand each,
// and the two queues between them `depth`.
const last = each.ranks - 1;
tap.ok(stages[last].inputs.some(({ from }) => from === 'model'), 'the last stage takes the input',
  JSON.stringify(stages[last]));
for (const depth of [1, 3]) {
  const most = 3 + 2 * depth;
  const pipe = join(tmp, `in${depth}.npy`);
  spawnSync('mkfifo', [pipe]);
  const run = await start('--input', `${input}=${pipe}`, '--depth', `${depth}`);
  letGo(run.ended, [pipe]);
  const source = createWriteStream(pipe);
  source.on('error', () => {});
  const record = npyBytes({ type: 'float32', dims: [32768, 8], data: new Float32Array(32768 * 8) });
  let accepted = 0;
  const write = () => source.write(record, (error) => {
    accepted += error ? 0 : 1;
    if (!error && accepted < 2 * most) write();
  });
  write();
  await firstBytes(run);
  for (let before = -1, quiet = 0; quiet < 15; before = accepted) {
    await sleep(100);
    quiet = accepted === before ? quiet + 1 : 0;
  }
  tap.ok(accepted >= depth && accepted <= most, `--depth ${depth}: what is under way is bounded`,
    `${accepted} were read, at most ${most} have a place\n${run.stderr}`);
  await end(run);
  source.destroy();
}
tap.done();
