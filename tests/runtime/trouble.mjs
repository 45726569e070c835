// What else onnx-pipeline-run promises, and onnx-pipeline-verify --run:
//
//   node trouble.mjs RUN SPLIT VERIFY NO_LIBRARY OLD_LIBRARY [LAUNCHER]
//
// Inputs of every kind of file, seeds, large tensors over an edge that skips a stage, and failures:
// each says what and where, ends soon and leaves nothing behind. With a LAUNCHER ("mpirun -n") the
// same over MPI, and a rank that is killed.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { readNpy, writeNpy, writeNpz } from './npy.mjs';
import { Runner, endOf, env, processesBelow, until, within } from './runner.mjs';

const [runner, splitter, verifier, noLibrary, oldLibrary, launcher = ''] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const { model, dir, manifest: { transfers, inputs } } = each.split('fan_out', { args: ['--message-latency', 'per-tensor',
  '--passes', 'infer-shapes,cost,mark,attach,fuse,coarsen,partition'] }); // nothing is computed twice instead
tap.ok(transfers.some(({ from, to }) => to - from === 2), 'a tensor skips a stage',
  JSON.stringify(transfers));
const [{ name: input }] = inputs;

const run = (...args) => each.run(args);
const fails = (title, status, pattern, ...args) => each.fails(title, status, pattern, args);
// A mistake that has nothing to do with who moves tensors is looked at once.
function mistake(...args) {
  if (!launcher) fails(...args);
}
const bytes = (out, file = '0-0.npy') => readFileSync(join(tmp, out, file));
const runs = (title, out, ...args) => {
  const result = run(dir, '--quiet', '--output', join(tmp, out), ...args);
  return tap.ok(result.status === 0, title, `exit status ${result.status}\n${result.stderr}`);
};

// Inputs: the same numbers from each kind of file give the same bits.
const tensor = {
  type: 'float32', dims: [3, 8], data: Float32Array.from({ length: 24 }, (_, i) => i / 24 - 0.4),
};
const raw = Buffer.from(tensor.data.buffer);
writeNpy(join(tmp, 'x.npy'), tensor);
writeNpz(join(tmp, 'x.npz'), { other: tensor, [input]: tensor });
writeFileSync(join(tmp, 'x.raw'), raw);
writeFileSync(join(tmp, 'x.pb'), // TensorProto: dims 3, 8; data_type 1; raw_data
  Buffer.concat([Buffer.from([8, 3, 8, 8, 16, 1, 0x4a, raw.length]), raw]));
if (runs('.npy', 'npy', '--input', `${input}=${join(tmp, 'x.npy')}`)) {
  for (const [kind, ...args] of launcher ? [] : [
    ['npz', '--input', join(tmp, 'x.npz')],
    ['pb', '--input', `${input}=${join(tmp, 'x.pb')}`],
    ['raw', '--input', `${input}=${join(tmp, 'x.raw')}`, '--dim', 'n=3'],
  ]) {
    tap.ok(runs(`.${kind}`, kind, ...args) && bytes(kind).equals(bytes('npy')),
      `.${kind} gives what .npy gives`);
  }
}

// Random numbers hang on the seed alone, not on the number of micro-batches.
const random = ['--random', '--dim', 'n=3'];
if (runs('seed 7', 'r7', ...random, '--seed', '7', '-m', '3') &&
    runs('seed 7 again', 'r7b', ...random, '--seed', '7', '-m', '2', '--depth', '1') &&
    runs('seed 8', 'r8', ...random, '--seed', '8')) {
  tap.ok(bytes('r7').equals(bytes('r7b')), 'a seed gives the same bits again');
  tap.ok(!bytes('r7').equals(bytes('r8')), 'another seed gives others');
  tap.ok(!bytes('r7').equals(bytes('r7', '1-0.npy')), 'so does another micro-batch');
}

// 16 MiB in each tensor, one place in each queue. A chunk is what one message may hold.
if (runs('16 MiB over an edge that skips a stage, with queues of one', 'big', '--random',
  '--shape', `${input}=524288,8`, '-m', '4', '--depth', '1')) {
  tap.ok(readNpy(join(tmp, 'big', '3-0.npy')).dims[0] === 524288, 'its outputs have that size');
}
rmSync(join(tmp, 'big'), { recursive: true, force: true });
if (launcher) {
  tap.ok(runs('in messages of 10 bytes', 'chunks', ...random, '--seed', '7', '--chunk', '10') &&
    bytes('chunks').equals(bytes('r7')), 'chunks give the same bits');
}

// The report and the trace.
const report = run(dir, ...random, '-m', '5', '--json', '--trace', join(tmp, 'trace.json'));
tap.ok(report.status === 0, '--json and --trace', report.stderr);
const told = JSON.parse(report.stdout);
tap.ok(told.micro_batches === 5 && told.stages.length === 3 && told.throughput_per_s > 0 &&
  told.transport === (launcher ? 'mpi' : 'threads'), 'the report has what was run', report.stdout);
tap.ok(Math.abs(told.bubble_fill_frac - 2 / 7) < 1e-9, '(K-1)/(M+K-1) is 2/7');
const [busy, planned] = ['busy_ns', 'predicted_compute_ns'].map((key) => told.stages.map((stage) => stage[key]));
const [all, most] = [busy, planned].map((list) => list.reduce((a, b) => a + b, 0));
tap.ok(Math.abs(told.drift.ratio - all / most) < 1e-3 * told.drift.ratio && Math.abs(told.drift.worst_ratio -
  Math.max(...busy.map((ns, i) => ns / planned[i])) / told.drift.ratio) < 1e-3, 'drift from the plan', report.stdout);
const manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
tap.ok(told.cost_source === manifest.plan.cost_source &&
  told.predicted_bottleneck_ns === manifest.plan.bottleneck_ns && told.stages.every((stage, s) => stage.replicas === 1 &&
  ['compute', 'recv', 'send', 'load'].every((part) => stage[`predicted_${part}_ns`] ===
    manifest.stages[s][`${part}_ns`])), 'what was predicted is the plan\'s', report.stdout);
const trace = JSON.parse(readFileSync(join(tmp, 'trace.json'))).traceEvents;
tap.ok(trace.filter(({ name }) => name === 'compute').length === 15, 'the trace has 15 runs');

// What is written costs nothing that was there: planted links, files that are read, a FIFO.
writeFileSync(join(tmp, 'victim'), 'mine');
mkdirSync(join(tmp, 'planted'));
for (const name of ['trace.json.part', '0-0.npy.part', 'outputs.json.part']) {
  symlinkSync(join(tmp, 'victim'), join(tmp, 'planted', name));
}
tap.ok(runs('planted links', 'planted', ...random, '--trace', join(tmp, 'planted', 'trace.json')) &&
  readFileSync(join(tmp, 'victim'), 'utf8') === 'mine' && readdirSync(join(tmp, 'planted')).length === 6,
  'links that are in the way are not followed');
writeFileSync(join(tmp, 'devices.json'), JSON.stringify({ devices: ['cpu0', 'cpu1', 'cpu2'].map(
  (name) => ({ name, preset: 'cpu' })) }));
for (const [what, file, ...args] of [
  ['a stage', join(dir, 'stage1.onnx')], ['the manifest', join(dir, 'pipeline.json')],
  ['an input', join(tmp, 'x.npy'), '--input', `${input}=${join(tmp, 'x.npy')}`],
  ['the devices', join(tmp, 'devices.json'), '--devices', join(tmp, 'devices.json')],
]) {
  const before = readFileSync(file);
  mistake(`a trace over ${what}`, 3, /is read/, dir, ...random, ...args, '--trace', file);
  tap.ok(readFileSync(file).equals(before), `${what} is as it was`);
}
mistake('a trace in no directory', 3, /nix\/t\.json/, dir, ...random, '--onnxruntime', '/nix', '--trace',
  join(tmp, 'nix', 't.json'));
writeNpy(join(tmp, 'planted', '0-1.npy'), tensor);
mistake('outputs over inputs', 3, /is read/, dir, '--input', `${input}=${join(tmp, 'planted', '{}-1.npy')}`,
  '-o', join(tmp, 'planted'));
mistake('outputs into a file', 3, /victim.*[Nn]ot a directory/, dir, ...random, '-o', join(tmp, 'victim'));
if (!launcher) {
  mistake('a profile over the devices', 3, /is read/, '--profile', join(tmp, 'devices.json'), model,
    ...random, '--devices', join(tmp, 'devices.json'));
  const fifo = join(tmp, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const reader = spawn('sh', ['-c', 'cat "$0" > "$0.copy"', fifo]);
  const read = new Promise((resolve) => { reader.on('close', resolve); });
  const through = run(dir, ...random, '--quiet', '--trace', fifo);
  await within(20000, read);
  tap.ok(through.status === 0 && JSON.parse(readFileSync(`${fifo}.copy`)).traceEvents &&
    lstatSync(fifo).isFIFO(), 'a trace into a FIFO, which stays', through.stderr);
}
// A stage that is no file is neither waited for nor read without end.
{
  const odd = join(tmp, 'odd');
  cpSync(dir, odd, { recursive: true });
  for (const [what, make] of [['a FIFO', (file) => execFileSync('mkfifo', [file])], ['a device', (file) => symlinkSync('/dev/zero', file)]]) {
    rmSync(join(odd, 'stage1.onnx'));
    make(join(odd, 'stage1.onnx'));
    mistake(`${what} as a stage`, 3, /stage1\.onnx: .*a regular file is needed/, odd, ...random);
  }
}

// Numbers beside the proof.
function verify(file, split, ...args) {
  return spawnSync(verifier, [split, '--model', file, '--run', '--dim', 'n=3', ...args],
    { encoding: 'utf8', timeout: 60000, env });
}
if (!launcher) {
  const same = verify(model, dir, '-i', `${input}=${join(tmp, 'x.npy')}`);
  tap.ok(same.status === 0 && /output y: 48 elements, the same bits/.test(same.stdout),
    'verify --run: the same bits', `${same.status}\n${same.stdout}${same.stderr}`);
  const other = each.split('unseeded', { stages: 2 });
  const differ = verify(other.model, other.dir);
  tap.ok(differ.status === 1 &&
    /^error: output y: \d+ of 48 elements differ.*; the whole model differs from itself/m.test(differ.stderr),
    'verify --run: other bits, of random numbers', `${differ.status}\n${differ.stdout}${differ.stderr}`);
  const told99 = verify(other.model, other.dir, '--optimization', '99');
  tap.ok(told99.status === 0 && /output y: \d+ of 48 elements differ, by at most \d/.test(told99.stdout),
    'verify --run with optimisation: the differences', `${told99.status}\n${told99.stderr}`);
  // Why float16 differs is said of what follows from float16 that crossed, and of nothing else.
  const half = each.split('half_crosses', { stages: 2, args: ['--pin', 'n_z=0', '--pin', 'n_t0=0', '--pin', 'n_m1=1'] });
  const says = (text, output) => new RegExp(`output ${output}: \\d+ of \\d+ elements differ.*; float16 tensors crossed`)
    .test(text);
  for (const level of ['0', '99']) {
    const told = verify(half.model, half.dir, '--optimization', level);
    tap.ok(told.status === (level === '0' ? 1 : 0) && says(told.stdout, 'y') && !says(told.stdout, 'z') &&
      /output z: \d+ of \d+ elements differ/.test(told.stdout) && says(told.stderr, 'y') === (level === '0'),
      `verify --run with --optimization ${level}: float16 that crossed`, `${told.status}\n${told.stdout}${told.stderr}`);
  }
  tap.ok(!/float16/.test(`${differ.stdout}${differ.stderr}${told99.stdout}`), 'where none crosses, nothing is said of it');

  // Sequences value by value, maps by their keys and values. A draw hangs on the node's place in its file, so those of a
  // later stage are others than the whole model's.
  const lists = (name, noise) => {
    const file = join(tmp, `${name}.onnx`);
    const made = join(tmp, name);
    writeModel(`<ir_version: 8, opset_import: [{version: 17}, "ai.onnx.ml": 1]>
lists (float[n,8] x) => (seq(float[n,1]) s, seq(map(int64, float)) p, seq(map(string, float)) q, optional(float[n,8]) o,
  optional(seq(float[n,8])) t)
<float[8,8] w0 = random(1), float[8,8] w1 = random(2)> {
  [n_a] a0 = MatMul (x, w0)
  [n_p] p = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2, 3, 4, 5, 6, 7]> (a0)
  [n_b] b = ${noise}
  [n_c] y = MatMul (b, w1)
  [n_s] s = SplitToSequence <axis = 1> (y)
  [n_q] q = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b", "c", "d", "e", "f", "g", "h"]> (y)
  [n_o] o = Optional (y)
  [n_e] e = SequenceConstruct (y, y)
  [n_t] t = Optional (e)
}`, file);
    const { status, stderr } = spawnSync(splitter, [file, '-k', '2', '-o', made, '-q', '--dim', 'n=3', '--pin', 'n_a=0',
      '--pin', 'n_b=1', '--pin', 'n_p=0'], { encoding: 'utf8' });
    tap.ok(status === 0, `${name} is split`, stderr);
    return verify(file, made);
  };
  const listed = lists('lists', 'Tanh (a0)');
  const elements = { s: 48, p: 96, q: 96, o: 48, t: 96 }; // of two micro-batches; of maps with their keys
  tap.ok(listed.status === 0 && Object.entries(elements).every(([output, n]) =>
    listed.stdout.includes(`output ${output}: ${n} elements, the same bits`)),
  'verify --run: sequences, maps and optional values', `${listed.status}\n${listed.stdout}${listed.stderr}`);
  const drawn = lists('drawn', 'RandomNormalLike (a0)');
  tap.ok(drawn.status === 1 && /^error: output s: 48 of 48 elements differ.*; the whole model differs/m.test(drawn.stderr) &&
    /output p: 96 elements, the same bits/.test(drawn.stdout) && /output q: 48 of 96 elements differ/.test(drawn.stdout),
  'verify --run: values of sequences and maps that differ', `${drawn.status}\n${drawn.stdout}${drawn.stderr}`);
  const many = join(tmp, 'many.onnx');
  writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
many (float[n,8] x) => (seq(int64[1,1]) s) <float half = raw {0.5}> {
  [n_a] a = Tanh (x)
  [n_b] b = Tanh (a)
  [n_r] r = RandomUniform <shape = [20000]> ()
  [n_g] g = Greater (r, half)
  [n_z] z = NonZero (g)
  [n_f] f = ReduceMax <keepdims = 0> (b)
  [n_i] i = Cast <to = 7> (f)
  [n_m] m = Add (z, i)
  [n_s] s = SplitToSequence <axis = 1> (m)
}`, many);
  const cut = spawnSync(splitter, [many, '-k', '2', '-o', join(tmp, 'many'), '-q', '--dim', 'n=3', '--pin', 'n_a=0',
    '--pin', 'n_r=1'], { encoding: 'utf8' });
  const more = verify(many, join(tmp, 'many'), '--micro-batches', '4');
  tap.ok(cut.status === 0 && more.status === 1 && /^error: .*output s has another type or number of values/m.test(more.stderr),
    'verify --run: sequences that have another length', `${cut.stderr}${more.status}\n${more.stdout}${more.stderr}`);
}

// Failures.
mistake('no size', 2, /--dim/, dir, '--random');
mistake('no input', 2, /--random/, dir);
mistake('an input that is none', 2, /no input nix/, dir, ...random, '--input', 'nix=x.npy');
execFileSync('mkfifo', [join(tmp, 'x-fifo.npy')]);
mistake('an input that is a pipe', 3, /x-fifo\.npy.*is a pipe/, dir, '--input',
  `${input}=${join(tmp, 'x-fifo.npy')}`);
mistake('an input that is a directory', 3, /is a directory/, dir, '--input', `${input}=${tmp}`);
fails('a file that is not there', 3, /nix\.npy/, dir, '--input', `${input}=nix.npy`);
writeNpy(join(tmp, 'double.npy'), { ...tensor, type: 'float64', data: Float64Array.from(tensor.data) });
mistake('a file of another type', 4, /input \S+: \S+double\.npy holds <f8, the input is float32/, dir, '--input', `${input}=${join(tmp, 'double.npy')}`);
// A shape that the input does not take is told before ONNX Runtime would, whoever reads the file.
for (const [what, dims, args] of [['rank', [24], [dir]], ['size', [6, 4], [dir]],
  ['size, given to a whole model', [6, 4], ['--profile', join(tmp, 'never.json'), model]]]) {
  writeNpy(join(tmp, 'odd.npy'), { ...tensor, dims });
  mistake(`a file of another ${what}`, 4, new RegExp(`input ${input}: \\S+odd\\.npy has shape \\[${dims}\\], the input is \\[n,8\\]`),
    ...args, '--input', `${input}=${join(tmp, 'odd.npy')}`);
}
mistake('a raw file of another size', 4, /bytes/, dir, '--input', `${input}=${join(tmp, 'x.raw')}`,
  '--dim', 'n=4');
writeFileSync(join(tmp, 'cut.npy'), readFileSync(join(tmp, 'x.npy')).subarray(0, 150));
mistake('a file that is cut off', 4, /size/, dir, '--input', `${input}=${join(tmp, 'cut.npy')}`);
mistake('no library', 3, /onnxruntime-node/, dir, ...random, '--onnxruntime', '/nix/libonnxruntime.so');
mistake('another library', 5, /not ONNX Runtime/, dir, ...random, '--onnxruntime', noLibrary);
cpSync(noLibrary, join(tmp, 'beside.so'));
const beside = spawnSync(resolve(runner), [dir, ...random, '--onnxruntime', 'beside.so'], { cwd: tmp, encoding: 'utf8' });
tap.ok(beside.status === 5 && /beside\.so is not ONNX Runtime/.test(beside.stderr), 'a library of the working directory',
  `exit status ${beside.status}\n${beside.stderr}`);
mistake('an old library', 5, /1\.16\.3.* too old/, dir, ...random, '--onnxruntime', oldLibrary);
mistake('no directory', 3, /nix: cannot be read: No such file/, join(tmp, 'nix'), ...random);
for (let i = 0; i < 9; i++) {
  writeNpy(join(tmp, `m${i}.npy`), i === 5 ? { ...tensor, dims: [24] } : tensor);
}
fails('a micro-batch that fails', 4, /stage \d.*micro-batch 5: input \S+: \S+m5\.npy has shape \[24\]/, dir, '-m', '9', '--warmup', '0',
  '--input', `${input}=${join(tmp, 'm{}.npy')}`, '--output', join(tmp, 'failing'));
tap.none(readdirSync(join(tmp, 'failing')).filter((name) => !/^\d+-0\.npy$|^outputs\.json$/.test(name)),
  'no file is left in part');
rmSync(join(dir, 'stage2.onnx'));
fails('a stage that cannot be opened', 3, /stage 2 \(stage2\.onnx\)/, dir, ...random);

// Stopped from outside: ends within seconds, and all of it.
const { dir: again } = each.split('fan_out', { as: 'again' });
async function stopped(title, stop, good, ...more) {
  const out = join(tmp, `stop${Math.random()}`);
  const [program, ...rest] = each.command([again, ...random, '-m', '10000000', '--quiet', '--output', out,
    ...more]);
  const child = spawn(program, rest, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (data) => { stderr += data; });
  const ended = endOf(child);
  await until(() => existsSync(join(out, '9-0.npy')), 60);
  const pids = launcher ? processesBelow(child.pid, runner) : [child.pid];
  tap.ok(pids.length === (launcher ? 3 : 1), `${title}: it runs`, `${pids}`);
  const start = Date.now();
  stop(child, pids);
  const end = await within(20000, ended);
  tap.ok(end && good(end) && Date.now() - start < 10000, `${title}: it ends within seconds`,
    `${JSON.stringify(end)} after ${Date.now() - start} ms\n${stderr}`);
  if (!end) child.kill('SIGKILL');
  await until(() => !pids.some((pid) => existsSync(`/proc/${pid}`)), 3);
  tap.none(pids.filter((pid) => existsSync(`/proc/${pid}`)), `${title}: no process is left`);
  tap.none(readdirSync(out).filter((name) => name.endsWith('.part') && end?.status === 130),
    `${title}: no file is left in part`);
}
await stopped('Ctrl-C', (child) => child.kill('SIGINT'),
  ({ status, signal }) => launcher || status === 130 || signal === 'SIGINT');
if (launcher) {
  await stopped('a killed rank', (_, pids) => process.kill(pids[1], 'SIGKILL'),
    ({ status, signal }) => status !== 0 || signal);
  await stopped('a rank that falls silent', (_, pids) => process.kill(pids[1], 'SIGSTOP'),
    ({ status, signal }) => status !== 0 || signal, '--timeout', '1');
}
tap.done();
