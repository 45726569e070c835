// What never returns does not hold a run for ever:
//
//   node hang.mjs RUN SPLIT ODD FINALIZE [LAUNCHER]
//
// ODD is an ONNX Runtime whose sessions hang where they are told to (odd_onnxruntime.c), FINALIZE an MPI_Finalize
// that does (endless_finalize.c). A run ends within 5 s of --timeout or of a signal, and says which stage or file it
// was; who takes its time, but is there, may.
import { spawn, spawnSync } from 'node:child_process';
import { createWriteStream, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { npyBytes } from './npy.mjs';
import { Runner, Watch, endOf, env, launcherFell, letGo, library, processesBelow, settled, sleep, until, within } from './runner.mjs';

const [runner, splitter, odd, finalize, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher, 2);
const { tap, tmp } = each;
const { model, dir, manifest: { inputs: [{ name: input }] } } = each.split('long_node');
const TIMEOUT_S = 1;
const SOON_MS = 5500; // 5 s, and what the machine takes to start and to end processes
const oddly = (what) => ({ ...env, ODD: what, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd });

function start(what, ...args) {
  const [program, ...rest] = each.command([dir, '-q', ...args]);
  const child = spawn(program, rest, { env: what ? oddly(what) : env, stdio: ['ignore', 'ignore', 'pipe'] });
  const run = { child, stderr: '', since: Date.now() };
  child.stderr.on('data', (data) => { run.stderr += data; });
  run.ended = endOf(child).then(({ status, signal, at }) => ({ status, signal, ms: at - run.since }));
  return run;
}
async function ends(title, run, good, pattern, most = SOON_MS) {
  const end = await within(30000, run.ended);
  if (!end) run.child.kill('SIGKILL');
  tap.ok(end && good(end.status) && end.ms < most && pattern.test(run.stderr), title,
    `${JSON.stringify(end)}\n${run.stderr}`);
}
// Where others want the cores another stage may take a second too, or a rank may say nothing for one, which is told instead,
// or all end late: one of a few runs has to show it.
async function endsTimed(title, begin, good, pattern, most) {
  let run = begin();
  for (let more = 4; more > 0; more--) {
    const end = await within(30000, run.ended);
    const late = end?.ms >= most || launcherFell({ ...end, stderr: run.stderr }) ||
      /the rank of stage \d did not respond for|has computed micro-batch 0 for/.test(run.stderr);
    if (!late || (end.ms < most && pattern.test(run.stderr))) break;
    run = begin();
  }
  await ends(title, run, good, pattern, most);
}
const some = ['--random', '--dim', 'n=3', '-m', '3'];
const timed = [...some, '--timeout', `${TIMEOUT_S}`];
const most = 1000 * TIMEOUT_S + SOON_MS;
const fails = (status) => (launcher ? status > 0 : status === 3);

// A node that computes for minutes, sessions that hang.
await endsTimed('a stage that computes on', () => start('', '--random', '--dim', 'n=200000', '--warmup', '0', '--timeout', '1'),
  fails, /^error: stage 1 \(stage1\.onnx\) has computed micro-batch 0 for more than 1 s/m, most + 2000);
for (const [what, pattern] of [
  ['hang-open stage0', /^error: stage 0 \(stage0\.onnx\) has been opened for more than 1 s/m],
  ['hang-run stage1', /^error: stage 1 \(stage1\.onnx\) has computed micro-batch 0 for more than 1 s/m],
  ['hang-close stage0', /^error: stage 0 \(stage0\.onnx\) has been closed for more than 1 s/m],
]) {
  await endsTimed(what, () => start(what, ...timed), fails, pattern, most);
  // By a signal, at whatever time it comes.
  const run = start(what, ...some);
  let pid = run.child.pid;
  if (launcher) {
    await until(() => processesBelow(run.child.pid, runner).length >= 2);
    pid = processesBelow(pid, runner)[Number(what.includes('stage1'))];
  }
  await settled(pid, 2);
  run.since = Date.now();
  process.kill(pid, 'SIGTERM');
  await ends(`${what}: a signal`, run, (status) => (launcher ? status !== 0 : status === 143),
    launcher ? /^/ : new RegExp(`^error: interrupted; not ended within 0.4 s: .*stage ${what.at(-1)}`, 'm'));
}
const slow = each.run([dir, '-q', ...some, '--timeout', '1'], { env: oddly('slow-run stage1 400') });
tap.ok(slow.status === 0, 'micro-batches that take long together may', slow.stderr);

// A profile, which leaves nothing in TMPDIR either.
if (!launcher) {
  for (const [what, pattern, by] of [
    ['hang-open long_node', /^error: .*the model has been opened for more than 1 s.*\(see --timeout\)/m],
    ['hang-run long_node', /^error: .*the model has computed for more than 1 s/m],
    ['hang-close long_node', /^error: .*the model has been closed for more than 1 s/m],
    ['hang-run long_node', /^error: .*interrupted/m, 'SIGTERM'],
  ]) {
    const place = join(tmp, 'place');
    rmSync(place, { recursive: true, force: true });
    mkdirSync(place);
    const child = spawn(runner, ['--profile', join(tmp, 'costs.json'), model, '--dim', 'n=3', '-m', '2', ...(by ? [] : ['--timeout', '1'])],
      { env: { ...oddly(what), TMPDIR: place }, stdio: ['ignore', 'ignore', 'pipe'] });
    const run = { child, stderr: '', since: Date.now() };
    child.stderr.on('data', (data) => { run.stderr += data; });
    run.ended = endOf(child).then(({ status, signal, at }) => ({ status, signal, ms: at - run.since }));
    if (by) {
      await settled(child.pid);
      run.since = Date.now();
      child.kill(by);
    }
    await ends(`--profile: ${what}${by ? `: ${by}` : ''}`, run, (status) => status === (by ? 143 : 3), pattern, most);
    tap.ok(readdirSync(place).length === 0, 'it leaves nothing behind', readdirSync(place).join());
  }
  const { status, stderr } = each.start(runner, ['--profile', join(tmp, 'costs.json'), model, '--dim', 'n=3', '-m', '4', '--timeout', '1'],
    { env: oddly('slow-run long_node 400') });
  tap.ok(status === 0, '--profile: runs that take long together may', `${status} ${stderr}`);
}

// A signal ends the rounds of --autotune, and the best one is what is written. Stage 1 is slow whatever it is given, so
// that there always is another round.
if (!launcher) {
  const place = join(tmp, 'tuned');
  mkdirSync(place);
  const chain = join(place, 'chain.onnx');
  const ops = ['Relu', 'Exp', 'Neg', 'Sqrt', 'Abs', 'Tanh'];
  writeModel(`(float[1,16] x) => (float[1,16] v5) {${ops.map((op, i) =>
    `[n${i}] v${i} = ${op} (${i ? `v${i - 1}` : 'x'})`).join(' ')}}`, chain);
  writeFileSync(join(tmp, 'costs'), JSON.stringify({ format: 'onnx-pipeline-split-costs', version: 1,
    costs: ops.map((_, i) => ({ nodes: [`n${i}`], ns: 2e7 })) }));
  const made = join(place, 'out');
  for (const [title, extra, number] of [['a signal ends --autotune', [], 'SIGINT'], ['--json', ['--json', '--force'], 'SIGTERM']]) {
    const child = spawn(splitter, [chain, '-k', '2', '-o', made, '--autotune', '9', '--costs', join(tmp, 'costs'), ...extra],
      { env: oddly('slow-run stage1 60') });
    let stderr = '', told = '', stdout = '';
    child.stderr.on('data', (data) => { stderr += data; });
    child.stdout.on('data', (data) => { stdout += data; });
    const ended = new Promise((resolve) => { child.on('close', (status) => resolve(status)); });
    for (let i = 0; i < 1200 && !/^ +1 /m.test(told) && child.exitCode === null; i++) {
      await sleep(50);
      told = extra.length ? stderr : stdout;
    }
    child.kill(number);
    const ms = await new Watch(child.pid).untilEnded();
    const status = await within(20000, ended);
    tap.ok(status === (number === 'SIGINT' ? 130 : 143) && ms < 1500 &&
      /^error: interrupted after \d rounds?; .*chain\.onnx is split as in the best of them$/m.test(stderr),
    `${title}: status and line`, `${status} after ${ms} ms\n${stderr}`);
    tap.ok(readdirSync(place).sort().join() === 'chain.onnx,out' &&
      spawnSync(join(dirname(splitter), 'onnx-pipeline-verify'), [made, '-m', chain, '-q']).status === 0,
    `${title}: the best round is written, and nothing beside it`, readdirSync(place).join());
    tap.ok(extra.length ? JSON.parse(stdout).stages.length === 2 : /^bottleneck /m.test(stdout), `${title}: what it is`, stdout);
  }
}

// Pipes with nobody at the other end; not those of a slow source.
const fifo = join(tmp, 'fifo.npy');
spawnSync('mkfifo', [fifo]);
const stream = ['--stream', '-i', `${input}=${fifo}`, '--timeout', '1'];
await endsTimed('a stream that nobody writes', () => start('', ...stream), fails,
  /^error: reading inputs: .*fifo\.npy: nobody has opened it for writing for 1 s/m, most);
await endsTimed('an output that nobody reads', () => start('', ...timed, '-o', fifo), fails,
  /^error: .*fifo\.npy: nobody has opened it for reading for 1 s/m, most);
{
  const run = start('', ...stream);
  letGo(run.ended, [fifo]);
  const source = createWriteStream(fifo);
  source.on('error', () => {});
  await sleep(2500);
  source.end(npyBytes({ type: 'float32', dims: [1, 3, 4], data: new Float32Array(12) }));
  await ends('a source that is slow', run, (status) => status === 0, /^/, 20000);
}

// Providers whose sessions must not be at work side by side.
const alone = [dir, '-q', '--random', '--dim', 'n=3', '-m', '20', '--provider', 'WebGPU'];
const left = each.run([...alone, '--assert-placement'], { env: oddly('alone') });
tap.ok(left.status === 4 && /stage \d .*WebGPU leaves \d+ nodes? to the CPU: \S+ \(\w+\)/.test(left.stderr),
  'a provider that leaves nodes to the CPU is an error where that is asked for',
  `${left.status}: ${left.stderr}`);
const good = each.run(alone, { env: oddly('alone') });
tap.ok(good.status === 0, 'sessions that cannot work side by side take turns', `${good.status}\n${good.stderr}`);

if (launcher && existsSync(finalize)) {
  const out = join(tmp, 'out');
  const run = start('', ...some, '-o', out);
  await run.ended;
  const [program, ...rest] = each.command([dir, '-q', ...some, '-o', join(tmp, 'last')]);
  // The best of a few: what starts and ends ranks waits for cores, too.
  let last, ms = Infinity;
  for (let more = 4; more > 0 && ms > SOON_MS + 1000; more--) {
    const since = Date.now();
    last = spawnSync(program, rest, { env: { ...env, LD_PRELOAD: finalize }, timeout: 30000, killSignal: 'SIGKILL' });
    ms = last.signal === 'SIGPIPE' ? Infinity : Date.now() - since;
  }
  tap.ok(existsSync(join(tmp, 'last', '2-0.npy')) && last.signal === null && ms < SOON_MS + 1000,
    'MPI that does not end', `${last.status} ${last.signal} after ${ms} ms`);
}
tap.done();
