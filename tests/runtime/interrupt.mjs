// A run ends when it is told to, whatever it is doing:
//
//   node interrupt.mjs RUN SPLIT [LAUNCHER]
//
// A stage in a node that computes for minutes, files that nobody writes or reads. The first signal ends
// it within a second and says what did not end; the second at once. So does the failure of another stage.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Runner, Watch, endOf, env, hasEnded, processesBelow, rankBelow, settled, sleep, until, within } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher, 2);
const { tap, tmp } = each;
const { model, dir, manifest: { inputs: [{ name: input }] } } = each.split('long_node');
const N = 200000; // boxes, of 16 bytes each: 2e10 pairs
const SOON_MS = 1500; // 1 s, and what the machine takes to end a process
const AT_ONCE_MS = 1500;
const STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

function start(program, args, options = {}) {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const run = { child, stderr: '' };
  child.stdout?.resume();
  child.stderr.on('data', (data) => { run.stderr += data; });
  run.ended = endOf(child);
  return run;
}
const startRun = (...args) => {
  const [program, ...rest] = each.command(args);
  return start(program, rest);
};
// Seconds of a processor that a process has used.
const used = (pid) => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
};
// Until the process is in its long node.
async function busy(pid) {
  await until(() => used(pid) >= 2 || hasEnded(pid), 120);
}
// Sends signals, 0.3 s apart, and says how long after the last the process has ended: a launcher may take longer.
async function endBy(run, pid, signals) {
  for (const [i, signal] of signals.entries()) {
    if (i) await sleep(300);
    process.kill(pid, signal);
  }
  const watch = new Watch(pid);
  const ms = await watch.untilEnded();
  const end = await within(10000, run.ended);
  if (!end) run.child.kill('SIGKILL');
  return { ...end, ms };
}
async function ends(title, run, pid, signals, { pattern, most = SOON_MS, status = STATUS[signals.at(-1)] }) {
  const { status: got, ms } = await endBy(run, pid, signals);
  const good = launcher ? got !== 0 && got !== undefined : got === status;
  tap.ok(good && ms < most && pattern.test(run.stderr), title, `exit status ${got} after ${ms} ms\n${run.stderr}`);
}

const long = [dir, '--random', '--dim', `n=${N}`, '--warmup', '0', '-q'];
// Stage 0 may have been slow to hear of it on a busy machine.
const stuck = /^error: interrupted; not ended within 0.4 s: (stage 0 \(stage0\.onnx\), )?stage 1 \(stage1\.onnx\)$/m;
async function computing(title, signals, options) {
  const run = startRun(...long);
  let pid = run.child.pid;
  if (launcher) { // the rank that works
    for (let i = 0; i < 2400; i++) {
      pid = processesBelow(run.child.pid, runner).sort((a, b) => used(b) - used(a))[0];
      if (pid && used(pid) > 1) break;
      await sleep(50);
    }
  }
  await busy(pid);
  await ends(title, run, pid, signals, options);
}
for (const signal of launcher ? ['SIGTERM'] : Object.keys(STATUS)) {
  await computing(`a stage that computes: ${signal}`, [signal], { pattern: stuck });
}
await computing('a stage that computes: the second signal', ['SIGINT', 'SIGTERM'],
  { pattern: /^error: interrupted again/m, most: AT_ONCE_MS });

// Another stage fails meanwhile: what was accepted before is computed all the same, but not against a signal.
const raw = (i, bytes) => {
  writeFileSync(join(tmp, `${i}.raw`), '');
  truncateSync(join(tmp, `${i}.raw`), bytes); // all zero, and takes no room on the disk
};
raw(0, N * 16);
raw(1, 8);
{
  const failing = [dir, '--input', `${input}=${join(tmp, '{}.raw')}`, '--dim', `n=${N}`, '-m', '2', '--warmup', '0'];
  const run = startRun(...failing);
  const early = await within(4000, run.ended);
  // The rank of stage 1; the other one may use more of a busy machine while it waits.
  const pid = launcher ? rankBelow(run.child.pid, runner, 1) : run.child.pid;
  tap.ok(!early, 'a failure beside a stage that computes: that is waited for', run.stderr);
  await busy(pid ?? run.child.pid);
  await ends('and interrupted', run, pid ?? run.child.pid, ['SIGTERM'], { pattern: stuck });
  const timed = startRun(...failing, '--timeout', '2');
  const since = Date.now();
  const end = await within(30000, timed.ended);
  if (!end) timed.child.kill('SIGKILL');
  tap.ok(end?.status === 3 && /^error: stage 1 .*micro-batch 0.*not ended within 2 s: stage 1/m.test(timed.stderr),
    'and not for longer than --timeout', `${JSON.stringify(end)} after ${Date.now() - since} ms\n${timed.stderr}`);
}

if (!launcher) {
  const fifo = join(tmp, 'fifo.npy');
  spawnSync('mkfifo', [fifo]);
  const waits = async (title, args, pattern, most) => {
    const run = startRun(...args);
    await settled(run.child.pid);
    await ends(title, run, run.child.pid, ['SIGTERM'], { pattern, most });
  };
  const unread = ['--random', '--dim', 'n=3', '-o', fifo];
  // Arrays are regular files: nobody waits for a writer.
  const refused = each.start(runner, [dir, '-i', `${input}=${fifo}`]);
  tap.ok(refused.status === 3 && /^error: .*fifo\.npy: cannot be read: it is a pipe/m.test(refused.stderr),
    'an input that nobody writes', `${refused.status}\n${refused.stderr}`);
  await waits('a stream that nobody writes', [dir, '--stream', '-i', `${input}=${fifo}`, '-q'], /^error: interrupted$/m,
    AT_ONCE_MS);
  await waits('an output that nobody reads', [dir, ...unread], /^error: /m, AT_ONCE_MS);

  const profile = start(runner, ['--profile', join(tmp, 'costs.json'), model, '--dim', `n=${N}`, '-m', '1']);
  await busy(profile.child.pid);
  await ends('--profile', profile, profile.child.pid, ['SIGINT'], { pattern: /^error: interrupted/m });

  // The whole model runs before its stages do, and no run of it can be stopped.
  const verifier = join(dirname(splitter), 'onnx-pipeline-verify');
  for (const [title, signals] of [['verify --run', ['SIGINT']], ['verify --run, twice', ['SIGHUP', 'SIGTERM']]]) {
    const verifying = start(verifier, [dir, '--model', model, '--run', '--dim', `n=${N}`]);
    await busy(verifying.child.pid);
    await ends(title, verifying, verifying.child.pid, signals, { pattern: /^error: interrupted/m });
  }

  // Stages that run to be measured; nothing stays beside the output.
  const place = join(tmp, 'tuned');
  mkdirSync(place);
  const costs = join(tmp, 'table.json');
  const made = each.start(runner, ['--profile', costs, model, '--dim', 'n=3']);
  tap.ok(made.status === 0 && existsSync(costs), 'a table of costs', made.stderr);
  const tuning = start(splitter,
    [model, '-k', '2', '-o', join(place, 'out'), '--autotune', '1', '--costs', costs, '--dim', `n=${N}`]);
  await busy(tuning.child.pid);
  await ends('--autotune', tuning, tuning.child.pid, ['SIGINT'], { pattern: stuck });
  tap.none(readdirSync(place), '--autotune leaves nothing behind');
}
tap.done();
