// Every command that runs stages ends at a signal, and at once at the second, while a stage never returns:
//
//   node interrupt_twice.mjs SPLIT TRAIN GENERATE LEARN ODD [LAUNCHER]
//
// ODD: see hang.mjs. The exit status is 128 and the number of the last signal, a line says why. The first leaves
// nothing, the second what `onnx-pipeline-split --clean` removes.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { decoders } from '../generate/decoder.mjs';
import { writeNpy } from './npy.mjs';
import { Runner, Watch, env, hasEnded, library, rankBelow, settled, sleep, until, within } from './runner.mjs';

const [splitter, train, generator, learn, odd, launcher = ''] = process.argv.slice(2);
const r = new Runner(train, splitter, launcher, 2);
const { tap, tmp } = r;
const SOON_MS = 1700, AT_ONCE_MS = 700; // 1 s and 0, and what the machine takes to end a process
const STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };
const place = join(tmp, 'place');
mkdirSync(place);

function split(name, text, ...args) {
  const model = join(tmp, `${name}.onnx`), dir = join(tmp, name);
  writeModel(text, model);
  const made = r.start(splitter, [model, '-k', '2', '-o', dir, '--quiet', ...args]);
  if (made.status !== 0) throw new Error(made.stderr);
  return { model, dir };
}
const net = split('net', `(float[n,4] x) => (float[n,4] y) <float[4,4] w = random(1), float[4,4] w2 = random(2)> {
  a = MatMul (x, w) b = Tanh (a) c = MatMul (b, w2) y = Tanh (c) }`, '--dim', 'n=2', '--training', '--loss', 'mse:', '--optimizer', 'sgd',
'--trained-weights', 'input');
const decoder = split('decoder', decoders.plain(2), '--dim', 'b=1', '--dim', 's=1', '--dim', 't=33', '--dim', 'p=32');
for (const name of ['x', 'target']) writeNpy(join(tmp, `${name}.npy`), { type: 'float32', dims: [8, 4], data: new Float32Array(32) });
writeModel('(float[1,16] x) => (float[1,16] y) { [n0] a = Relu (x) [n1] b = Exp (a) [n2] c = Neg (b) [n3] y = Tanh (c) }', join(tmp, 'chain.onnx'));
writeFileSync(join(tmp, 'costs'), JSON.stringify({ format: 'onnx-pipeline-split-costs', version: 1,
  costs: [0, 1, 2, 3].map((i) => ({ nodes: [`n${i}`], ns: 2e7 })) }));

const training = [net.dir, '--data', `x=${join(tmp, 'x.npy')}`, '--data', `target=${join(tmp, 'target.npy')}`, '--batch', '4', '-m', '2', '--lr', '0.1',
  '--steps', '9', '--checkpoint', join(place, 'kept')];
const commands = [
  { title: 'train', program: train, args: training, ranks: true },
  { title: 'generate', program: generator, args: [decoder.dir, '--prompt-ids', '1,2,3', '-n', '9'], ranks: true },
  { title: 'split --autotune', program: splitter,
    args: [join(tmp, 'chain.onnx'), '-k', '2', '-o', join(place, 'out'), '--autotune', '3', '--costs', join(tmp, 'costs'), '-q'] },
  { title: 'learn --reward measured', program: learn, args: [join(tmp, 'chain.onnx'), '-k', '2', '--costs', join(tmp, 'costs'), '--reward', 'measured',
    '--warm-steps', '1', '--steps', '9', '-o', join(place, 'policy.onnx'), '-q'] },
];

// Processes of this test that have not ended.
function ranksOfThis() {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && !hasEnded(name) && readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(tmp);
    } catch { return false; /* it has ended since it was listed */ }
  });
}

// One run: signals, to the rank that hangs, until it has ended; what became of it.
async function run({ program, args, ranks }, signals, gapMs) {
  const command = ranks && launcher ? [...launcher.split(' '), '2', program, ...args] : [program, ...args];
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...env, ODD: 'hang-run stage1', ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd } });
  let stderr = '';
  child.stderr.on('data', (data) => { stderr += data; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  let pid = child.pid;
  if (ranks && launcher) {
    pid = await until(() => rankBelow(child.pid, program, 1), 60);
    await sleep(1000);
  }
  await settled(pid, 2);
  let watch = new Watch(pid);
  for (const [i, signal] of signals.entries()) {
    if (i) await sleep(gapMs);
    watch = new Watch(pid);
    try {
      if (pid) process.kill(pid, signal);
    } catch { /* the first one has ended it */ }
  }
  const ms = await watch.untilEnded(), status = await within(20000, ended);
  if (status === undefined) child.kill('SIGKILL');
  // The launcher may be gone before what it has killed.
  let ranksLeft = [];
  if (launcher) await until(() => { ranksLeft = ranksOfThis(); return !ranksLeft.length; }, 20);
  return { status, ms, stderr, ranksLeft, again: /^error: interrupted again; what was under way was left$/m.test(stderr) };
}
const told = (got) => `exit status ${got.status} after ${got.ms} ms, left: ${got.ranksLeft}\n${got.stderr}`;

async function endsByOne(command, signal) {
  const got = await run(command, [signal]), { title } = command;
  // Of ranks one that has got no signal may be the first to end all: to it the run was interrupted, by nothing it knows.
  const good = got.status === STATUS[signal] || (launcher && got.status === STATUS.SIGINT);
  tap.ok(good && got.ms < SOON_MS && /^error: .*interrupted/m.test(got.stderr) && !got.again, `${title}: ${signal}`, told(got));
  tap.none(got.ranksLeft, `${title}: ${signal}: no process is left`);
  tap.none(readdirSync(place), `${title}: ${signal}: nothing is left`);
}

async function endsByTwo(command) {
  const { title } = command;
  let got;
  // Where other ranks ended the run before the second was sent, once more.
  for (let more = launcher ? 6 : 1; more > 0 && !got?.again; more--) {
    got = await run(command, ['SIGINT', 'SIGTERM'], launcher ? 100 : 300);
    tap.none(got.ranksLeft, `${title}: twice: no process is left`);
    tap.none(readdirSync(place).filter((name) => !/^\..*\.psplit-/.test(name)), `${title}: twice: what is left is hidden`);
    r.start(splitter, ['--clean', place, '--quiet']);
    tap.none(readdirSync(place), `${title}: twice: and goes by --clean`);
  }
  // A launcher may tell of the ranks that it has killed since (9) instead of the one that ended them all.
  const ended = got.status === STATUS.SIGTERM || (launcher && got.status === constants.signals.SIGKILL);
  tap.ok(got.again && ended && got.ms < AT_ONCE_MS, `${title}: twice`, told(got));
}
for (const command of commands) {
  if (launcher && !command.ranks) continue;
  for (const signal of Object.keys(STATUS)) await endsByOne(command, signal);
  await endsByTwo(command);
}

// Rounds that have ended are not thrown away: what is under way behind them, here a file that waits for its reader,
// goes on to its end.
if (!launcher) {
  const fifo = join(tmp, 'rule'), out = join(place, 'kept');
  spawnSync('mkfifo', [fifo]);
  const child = spawn(splitter, [join(tmp, 'chain.onnx'), '-k', '2', '-o', out, '--autotune', '1', '--costs', join(tmp, 'costs'), '--depfile', fifo],
    { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '', stdout = '';
  child.stderr.on('data', (data) => { stderr += data; });
  child.stdout.on('data', (data) => { stdout += data; });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  await until(() => /^ +1 /m.test(stdout) || child.exitCode !== null, 60);
  await settled(child.pid);
  child.kill('SIGINT');
  await sleep(1200);
  const waits = child.exitCode === null;
  const rule = spawnSync('timeout', ['10', 'cat', fifo], { encoding: 'utf8' }).stdout;
  const status = await within(20000, ended);
  if (status === undefined) child.kill('SIGKILL');
  tap.ok(waits && status === 130 && /^error: interrupted after 1 round; .*chain\.onnx is split as in the best of them$/m.test(stderr) &&
    rule.includes('pipeline.json:') && existsSync(join(out, 'pipeline.json')),
  'behind the rounds of --autotune', `${waits} ${status}\n${stderr}${rule}`);
}
tap.done();
