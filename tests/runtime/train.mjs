// onnx-pipeline-train: node train.mjs TRAIN SPLIT VERIFY [LAUNCHER]
//
// A small language model, written here, with a tied weight and values that skip stages, is cut into 1 to
// 4 stages. Ten steps of AdamW give the same losses and the same bits of all weights however it is cut,
// scheduled and recomputed, and the losses that samples/train_stages.mjs gets from onnxruntime-node. What
// is held of micro-batches is counted; what cannot be trained on ends in one line.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ort } from '../e2e/chain.mjs';
import { drawnTensors, model, node, random, tensor, value } from '../gradient/onnx.mjs';
import { Stages } from '../../samples/train_stages.mjs';
import { writeNpy, writeNpz } from './npy.mjs';
import { Runner, env } from './runner.mjs';

const [train, split, verify, launcher = ''] = process.argv.slice(2);
const r = new Runner(train, split, launcher);
const { tap } = r;
const path = (name) => join(r.tmp, name);

const WORDS = 19, WIDTH = 8, LENGTH = 5, ROWS = 48, BATCH = 8;
const next = random(3);
const numbers = drawnTensors(next);
const layer = (i, from, to) => [node('MatMul', [from, `w${i}`], [`p${i}`]),
  node('Add', [`p${i}`, `b${i}`], [`s${i}`]), node('Tanh', [`s${i}`], [to])];
writeFileSync(path('words.onnx'), model({
  nodes: [node('Gather', ['words', 'tokens'], ['x']), ...layer(1, 'x', 'h1'), ...layer(2, 'h1', 'h2'),
    node('Add', ['h2', 'x'], ['r2']), ...layer(3, 'r2', 'h3'), node('Mul', ['h3', 'h1'], ['r3']),
    ...layer(4, 'r3', 'h4'), node('Transpose', ['words'], ['turned'], { perm: [1n, 0n] }),
    node('MatMul', ['h4', 'turned'], ['y'])],
  initializers: Object.fromEntries([['words', numbers(WORDS, WIDTH)],
    ...[1, 2, 3, 4].flatMap((i) => [[`w${i}`, numbers(WIDTH, WIDTH)], [`b${i}`, numbers(WIDTH)]])]),
  inputs: [value('tokens', 'int64', ['n', LENGTH])], outputs: [value('y', 'float32', ['n', LENGTH, WORDS])],
}));
const whole = (rows, below) => tensor('int64', [rows, LENGTH], Array.from({ length: rows * LENGTH }, () => Math.floor(next() * below)));
const tokens = whole(ROWS, WORDS);
const target = { ...tokens, data: tokens.data.map((each) => (each * 7n + 3n) % BigInt(WORDS)) };
writeNpy(path('tokens.npy'), tokens);
writeNpy(path('target.npy'), target);

// Stages of the model by their number and way to recompute.
function stages(k, recompute = 'heavy', more = [], net = 'words') {
  const dir = path(`${net}-${k}-${recompute}-${more.join('')}`.replaceAll(/[^\w-]/g, ''));
  if (existsSync(dir)) return dir;
  const made = r.start(split, [path(`${net}.onnx`), '-k', `${k}`, '-o', dir, '--quiet', '--dim', 'n=2', '--depth', '0', '--training',
    '--loss', 'softmax-cross-entropy:labels=target,axis=-1,ignore=-100', '--trained-weights', 'input', '--recompute', recompute,
    ...(more.includes('--optimizer') ? [] : ['--optimizer', 'adamw']), ...more]);
  if (made.status !== 0) throw new Error(made.stderr);
  return dir;
}
const DATA = ['--data', `tokens=${path('tokens.npy')}`, '--data', `target=${path('target.npy')}`];
const USUAL = [...DATA, '--batch', `${BATCH}`, '-m', '4', '--optimization', '0', '--lr', '0.01'];

// The report; over MPI as many ranks as devices.
function trains(devices, dir, args) {
  r.ranks = devices;
  const done = r.run([dir, ...args, '--json']);
  if (done.status !== 0) return { status: done.status ?? done.signal, error: done.stderr };
  return JSON.parse(done.stdout);
}
const result = (report) => JSON.stringify([report.losses, report.weights_digest, report.error]);

const one = trains(1, stages(1), [...USUAL, '--steps', '10']);
tap.ok(one.losses?.length === 10 && one.losses.at(-1) < 0.99 * one.losses[0], 'ten steps: the loss falls', JSON.stringify(one));
const again = trains(1, stages(1), [...USUAL, '--steps', '10']);
tap.ok(result(again) === result(one), 'again: the same bits', result(again));
for (const [k, recompute] of [[1, 'none'], [2, 'none'], [2, 'heavy'], [2, 'all'], [3, 'heavy'], [4, 'none'], [4, 'all']]) {
  const got = trains(k, stages(k, recompute), [...USUAL, '--steps', '10']);
  tap.ok(result(got) === result(one), `${k} stages, recompute ${recompute}: the same bits`, result(got));
  const held = got.device?.map(({ peak_stashes: n }) => n).join();
  const wanted = Array.from({ length: k }, (_, s) => Math.min(4, k - s)).join();
  tap.ok(held === wanted, `${k} stages: stage j holds K - j stashes`, held);
}
for (const [schedule, devices, held] of [['fill-drain', 4, '4,4,4,4'], ['interleaved', 2, '5,3'], ['interleaved:4', 1, '4']]) {
  const got = trains(devices, stages(4, 'none'), [...USUAL, '--steps', '10', '--schedule', schedule]);
  tap.ok(result(got) === result(one), `${schedule}: the same bits`, result(got));
  tap.ok(got.device?.map(({ peak_stashes: n }) => n).join() === held &&
    got.device.every((each) => each.peak_stashes === each.scheduled_stashes), `${schedule}: holds what the simulator says`, JSON.stringify(got.device));
}
// Who asks for no schedule gets what the split was planned for.
{
  const filled = stages(2, 'none', ['--objective', 'fill-drain']);
  for (const [dir, more, schedule, planned, held] of [[filled, [], 'fill-drain', 'fill-drain', '4,4'],
    [filled, ['--schedule', '1f1b'], '1f1b', 'fill-drain', '2,1'], [stages(2, 'none'), [], '1f1b', '1f1b', '2,1']]) {
    const got = trains(2, dir, [...USUAL, '--steps', '2', ...more]);
    tap.ok(got.schedule === schedule && got.planned_schedule === planned && got.device.map(({ peak_stashes: n }) => n).join() === held,
      `planned for ${planned}, ${more.join(' ') || 'no --schedule'}: ${schedule}`, JSON.stringify(got));
  }
  const told = r.run([filled, ...USUAL, '--steps', '2', '--schedule', '1f1b']).stdout;
  tap.ok(/^by 1F1B; the stages were planned for fill-drain$/m.test(told), 'which the table says', told);
}

// Gradients of weights apart from those of inputs, which zero-bubble schedules run later.
const APART = ['--weight-gradients', 'apart'];
for (const [k, recompute] of [[1, 'none'], [2, 'none'], [3, 'heavy'], [4, 'all']]) {
  const dir = stages(k, recompute, APART), files = readdirSync(dir);
  tap.ok(files.includes('stage0.weight_gradients.onnx') && !files.includes('stage0.backward.onnx') && files.includes(`stage${k - 1}.backward.onnx`) === k > 1,
    `${k} stages: nobody waits for gradients of the first one`, files);
  for (const schedule of ['zb-h1', '1f1b', 'fill-drain']) {
    const got = trains(k, dir, [...USUAL, '--steps', '10', '--schedule', schedule]);
    const held = got.device?.map(({ peak_stashes: n }) => n).join();
    const wanted = Array.from({ length: k }, (_, s) => (schedule === '1f1b' ? k - s : schedule === 'zb-h1' ? k : 4)).join();
    tap.ok(result(got) === result(one), `${k} stages, weights' gradients apart, recompute ${recompute}, ${schedule}: the same bits`, result(got));
    tap.ok(held === wanted && got.device.every((each) => each.peak_stashes === each.scheduled_stashes), `which hold ${wanted}`, held);
    tap.ok(got.device?.every((each) => each.weight_gradients_ns > 0 === (schedule === 'zb-h1')), 'and say how long these pieces take', JSON.stringify(got.device));
  }
}
const keptApart = path('kept-apart');
trains(3, stages(3, 'heavy', APART), [...USUAL, '--steps', '6', '--schedule', 'zb-h1', '--checkpoint', keptApart]);
const onApart = trains(2, stages(2, 'none', APART), [...USUAL, '--steps', '10', '--schedule', 'zb-h1', '--resume', keptApart]);
tap.ok(onApart.first_step === 6 && onApart.weights_digest === one.weights_digest, 'zb-h1 goes on from a checkpoint of zb-h1', result(onApart));
r.ranks = 2;
r.run([stages(2, 'none', APART), ...USUAL, '--steps', '2', '--schedule', 'zb-h1', '--trace', path('apart.json'), '--quiet']);
const apartSpans = JSON.parse(readFileSync(path('apart.json'))).traceEvents.filter(({ ph, tid }) => ph === 'X' && tid === 0);
tap.ok(apartSpans.filter(({ name }) => name.startsWith('weight gradients')).length === 2 * 2 * 4, 'the trace has its pieces', apartSpans.length);

for (const threads of ['1', '2']) {
  const got = trains(2, stages(2), [...USUAL, '--steps', '3', '--threads', threads]);
  tap.ok(result({ losses: got.losses }) === result({ losses: one.losses.slice(0, 3) }), `${threads} threads a stage: the same losses`, result(got));
}

// Replicas share the micro-batches; one of each has the order of sums of one alone.
const two = trains(2, stages(1), [...USUAL, '--steps', '10', '--replicas', '2']);
tap.ok(two.losses?.length === 10 && two.losses.every((loss, i) => Math.abs(loss - one.losses[i]) < 1e-5), 'two replicas learn what one does', result(two));
for (const [devices, k, more] of [[4, 2, []], [4, 4, ['--schedule', 'interleaved']], [6, 3, []], [4, 2, ['--schedule', 'zb-h1']]]) {
  const got = trains(devices, stages(k, 'heavy', more.includes('zb-h1') ? APART : []), [...USUAL, '--steps', '10', '--replicas', '2', ...more]);
  tap.ok(result(got) === result(two), `in ${k} stages ${more.at(-1) ?? ''}: the same bits`, result(got));
}
const four = trains(8, stages(2), [...USUAL, '--steps', '10', '--replicas', '4']);
tap.ok(result(four) === result(one) && four.device.every((each) => each.peak_stashes === 1), 'a replica for each micro-batch: the bits of one', result(four));
const begun = path('begun');
trains(8, stages(2), [...USUAL, '--steps', '6', '--replicas', '4', '--checkpoint', begun]);
tap.ok(trains(1, stages(1), [...USUAL, '--steps', '10', '--resume', begun]).weights_digest === one.weights_digest, 'which goes on from their checkpoint');

// The sample, in the order of the file.
const level = { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4 };
const sample = await Stages.open(stages(2), ort, level);
const part = ({ type, data }, at, n) => new ort.Tensor(type, data.slice(at * LENGTH, (at + n) * LENGTH), [n, LENGTH]);
const expected = [];
for (let step = 0; step < 6; step++) {
  let loss = 0;
  for (let m = 0; m < 4; m++) {
    const at = step * BATCH + m * 2;
    const batch = await sample.forward({ tokens: part(tokens, at, 2), target: part(target, at, 2) });
    loss += Number(batch.outputs.loss.data[0]);
    await sample.backward(batch, 1 / 4);
  }
  await sample.update(0.01);
  expected.push(loss / 4);
}
const inOrder = trains(2, stages(2), [...USUAL, '--in-order']);
tap.ok(JSON.stringify(inOrder.losses) === JSON.stringify(expected), 'one epoch in order: the losses of onnxruntime-node, bit by bit',
  `${inOrder.losses ?? inOrder.error}\n${expected}`);

// Dropout: masks are drawn by counter, also where a stage reads nothing that tells their sizes.
const drop = (from, to) => node('Dropout', [from, 'ratio', 'yes'], [to]);
writeFileSync(path('noisy.onnx'), model({
  nodes: [node('Gather', ['words', 'tokens'], ['x']), drop('x', 'd0'), ...layer(1, 'd0', 'h1'), drop('h1', 'd1'), ...layer(2, 'd1', 'h2'),
    drop('h2', 'd2'), ...layer(3, 'd2', 'h3'), ...layer(4, 'h3', 'h4'), node('MatMul', ['h4', 'out'], ['y'])],
  initializers: { ...Object.fromEntries([1, 2, 3, 4].flatMap((i) => [[`w${i}`, numbers(WIDTH, WIDTH)], [`b${i}`, numbers(WIDTH)]])),
    words: numbers(WORDS, WIDTH), out: numbers(WIDTH, WORDS), ratio: tensor('float32', [], [0.25]), yes: tensor('bool', [], [1]) },
  inputs: [value('tokens', 'int64', ['n', LENGTH])], outputs: [value('y', 'float32', ['n', LENGTH, WORDS])],
}));
const noisy = (k, recompute = 'none') => stages(k, recompute, [], 'noisy');
const dropped = trains(1, noisy(1), [...USUAL, '--steps', '8']);
for (const [k, recompute] of [[2, 'all'], [3, 'none'], [4, 'heavy']]) {
  const got = trains(k, noisy(k, recompute), [...USUAL, '--steps', '8']);
  tap.ok(got.losses?.length === 8 && result(got) === result(dropped), `dropout in ${k} stages, recompute ${recompute}: the same bits`, result(got));
}
tap.ok(result(trains(8, noisy(2), [...USUAL, '--steps', '8', '--replicas', '4'])) === result(dropped), 'dropout in replicas: the same bits');
tap.ok(result(trains(1, noisy(1), [...USUAL, '--steps', '8', '--in-order'])) !== result(trains(1, noisy(1), [...USUAL, '--steps', '8', '--in-order', '--seed', '2'])),
  'another seed drops others');
trains(2, noisy(2), [...USUAL, '--steps', '5', '--checkpoint', path('noise')]);
tap.ok(trains(3, noisy(3), [...USUAL, '--steps', '8', '--resume', path('noise')]).weights_digest === dropped.weights_digest, 'resumed, it drops the same');
const drawn = await Stages.open(noisy(2), ort, level, 1);
const heard = [];
for (let step = 0; step < 3; step++) {
  let loss = 0;
  for (let m = 0; m < 4; m++) {
    const at = step * BATCH + m * 2;
    const batch = await drawn.forward({ tokens: part(tokens, at, 2), target: part(target, at, 2) }, m);
    loss += Number(batch.outputs.loss.data[0]);
    await drawn.backward(batch, 1 / 4);
  }
  await drawn.update(0.01);
  heard.push(loss / 4);
}
const noisyLosses = trains(2, noisy(2), [...USUAL, '--in-order', '--steps', '3']).losses;
tap.ok(JSON.stringify(noisyLosses) === JSON.stringify(heard), 'and what the sample drops', `${noisyLosses}\n${heard}`);

// Where gradients are scaled down, the step is that of a smaller rate.
const sgd = stages(2, 'none', ['--optimizer', 'sgd']), wide = stages(3, 'none', ['--optimizer', 'sgd']);
const CLIP = 0.05;
const clipped = trains(2, sgd, [...USUAL, '--steps', '2', '--clip-norm', `${CLIP}`]);
r.ranks = 2;
const norm = Number(/gradient ([\d.e+-]+)/.exec(r.run([sgd, ...USUAL, '--steps', '1']).stdout)?.[1]);
const scaled = trains(2, sgd, [...USUAL, '--steps', '2', '--lr', `${0.01 * CLIP / (norm + 1e-6)}`]);
tap.ok(norm > CLIP && Math.abs(clipped.losses[1] - scaled.losses[1]) < 1e-6, 'clipping is torch\'s', `${norm}: ${clipped.losses} ${scaled.losses}`);
tap.ok(result(trains(3, wide, [...USUAL, '--steps', '2', '--clip-norm', `${CLIP}`])) === result(clipped), 'and the same bits whatever the cut');

// Gradients of 16 bits are counted: a norm of 0 would neither be clipped nor told from one that is not finite.
const ODD = numbers(4, 2).data.map((each) => Math.fround(Math.round(each * 8) / 8));
const bits = (each) => each === 0 ? 0 : (each < 0 ? 0x8000 : 0) | ((Math.floor(Math.log2(Math.abs(each))) + 15) << 10) | Math.round((Math.abs(each) / 2 ** Math.floor(Math.log2(Math.abs(each))) - 1) * 1024);
const narrow = (type, to) => model({
  nodes: [node('Cast', ['x'], ['h'], { to }), node('MatMul', ['h', 'w'], ['p']), node('Cast', ['p'], ['y'], { to: 1n })],
  initializers: { w: type === 'float16' ? { type, dims: [4, 2], data: Uint16Array.from(ODD, bits) } : { type, dims: [4, 2], data: Float32Array.from(ODD) } },
  inputs: [value('x', 'float32', ['n', 4])], outputs: [value('y', 'float32', ['n', 2])],
});
writeNpy(path('x.npy'), numbers(ROWS, 4));
writeNpy(path('y.npy'), numbers(ROWS, 2));
const norms = [['float16', 10n], ['float32', 1n]].map(([type, to]) => {
  writeFileSync(path(`${type}.onnx`), narrow(type, to));
  const made = r.start(split, [path(`${type}.onnx`), '-k', '1', '-o', path(type), '--quiet', '--dim', 'n=2', '--training', '--loss', 'mse:target=t', '--optimizer', 'sgd', '--trained-weights', 'input']);
  r.ranks = 1;
  const done = r.run([path(type), '--data', `x=${path('x.npy')}`, '--data', `t=${path('y.npy')}`, '--batch', `${BATCH}`, '-m', '4', '--lr', '0.01', '--steps', '1']);
  return Number(/gradient ([\d.e+-]+)/.exec(done.stdout)?.[1]) || made.stderr + done.stderr;
});
tap.ok(norms[1] > 0 && Math.abs(norms[0] / norms[1] - 1) < 0.01, 'gradients in float16 are as large as in float32', `${norms}`);

// Learning rates as they are printed.
r.ranks = 2;
for (const [kind, last, at] of [['constant', 0, () => 1], ['linear', 0.1, (p) => 1 - 0.9 * p], ['cosine', 0, (p) => (1 + Math.cos(Math.PI * p)) / 2]]) {
  const { stdout } = r.run([sgd, ...USUAL, '--lr', '1', '--lr-last', `${last}`, '--steps', '12', '--warmup-steps', '4', '--lr-schedule', kind, '--log-every', '1']);
  const rates = [...stdout.matchAll(/rate ([\d.e+-]+)/g)].map(([, x]) => Number(x));
  const wanted = Array.from({ length: 12 }, (_, s) => (s < 4 ? (s + 1) / 4 : at((s - 4) / 8)));
  tap.ok(rates.length === 12 && rates.every((x, i) => Math.abs(x - wanted[i]) < 1e-3), `the ${kind} rate`, `${rates}\n${wanted}`);
}

// Evaluations: each sample once, also those that fill no micro-batch.
writeNpy(path('few.npy'), { ...tokens, dims: [7, LENGTH], data: tokens.data.slice(0, 7 * LENGTH) });
writeNpy(path('few-target.npy'), { ...target, dims: [7, LENGTH], data: target.data.slice(0, 7 * LENGTH) });
const evaluated = ['--eval-every', '2', '--eval-data', `tokens=${path('few.npy')}`, '--eval-data', `target=${path('few-target.npy')}`];
const seen = trains(2, stages(2), [...USUAL, ...evaluated, '--steps', '10']);
const fresh = await Stages.open(stages(1), ort, level);
let mean = 0;
for (const [at, n] of [[0, 2], [2, 2], [4, 2], [6, 1]]) {
  const { outputs } = await fresh.forward({ tokens: part(tokens, at, n), target: part(target, at, n) });
  mean += Number(outputs.loss.data[0]) * n / 7;
}
tap.ok(result(seen) === result(one) && seen.eval_loss < mean, 'evaluations change nothing', result(seen));
const first = trains(2, stages(2), [...USUAL, ...evaluated, '--lr', '0', '--steps', '2']);
tap.ok(Math.abs(first.eval_loss - mean) < 1e-6, 'and are the mean over samples', `${first.eval_loss} ${mean}`);

// Checkpoints: what is resumed is what runs through, with any number of stages.
const kept = path('kept');
trains(2, stages(2), [...USUAL, '--steps', '3', '--checkpoint', kept]);
for (const [k, until] of [[4, 5], [1, 8], [3, 10]]) {
  const got = trains(k, stages(k), [...USUAL, '--steps', `${until}`, '--checkpoint', kept, '--resume', kept]);
  const before = until === 5 ? 3 : until === 8 ? 5 : 8;
  tap.ok(got.first_step === before && result({ losses: got.losses }) === result({ losses: one.losses.slice(before, until) }),
    `resumed by ${k} stages at step ${before}: the same losses`, result(got));
  if (until === 10) tap.ok(got.weights_digest === one.weights_digest, 'and in the end the same bits', result(got));
}
const over = trains(3, stages(3), [...USUAL, '--steps', '10', '--resume', kept]);
tap.ok(over.steps === 0 && over.first_step === 10 && over.weights_digest === one.weights_digest, 'resumed at its end: nothing is left to do', JSON.stringify(over));
r.ranks = 2;
const late = r.run([stages(2), ...USUAL, '--epochs', '1', '--resume', kept, '--quiet']);
tap.ok(late.status === 0 && /^warning: \S*kept is at step 10, and --epochs asks for 6 in all: nothing was left to do$/m.test(late.stderr),
  'behind its end it says so in one line', late.stderr);
tap.ok(readdirSync(kept).sort().join() === 'stage0.safetensors,stage1.safetensors,stage2.safetensors,training.json' &&
  !readdirSync(r.tmp).some((name) => name.startsWith('.kept')), 'it holds these stages and nothing else', readdirSync(kept));
r.ranks = 2;
// The trained model.
r.ranks = 1;
const exported = r.run(['--resume', kept, '--model', path('words.onnx'), '--export', path('trained.onnx')]);
const proof = r.start(verify, [path('trained.onnx'), '--weights-of', path('words.onnx')]);
tap.ok(exported.status === 0 && proof.status === 0, 'the model with the trained weights', exported.stderr + proof.stderr);
r.fails('which replaces no file', 3, /force/, ['--resume', kept, '--model', path('words.onnx'), '--export', path('trained.onnx')]);
r.fails('before it trains', 3, /trained\.onnx exists; --force/, [stages(1), ...USUAL, '--steps', '1000000000', '--checkpoint', path('never'), '--model', path('words.onnx'), '--export', path('trained.onnx')]);
r.fails('nor without the model', 3, /nothing\.onnx/, [stages(1), ...USUAL, '--steps', '1000000000', '--checkpoint', path('never'), '--model', path('nothing.onnx'), '--export', path('new.onnx')]);
r.fails('nor over data', 3, /is read, as/, [stages(1), ...USUAL, '--steps', '1000000000', '--checkpoint', path('never'), '--model', path('words.onnx'), '--export', DATA[1].replace(/^\w+=/, ''), '--force']);
r.fails('nor into a checkpoint', 2, /kept/, ['--resume', kept, '--model', path('words.onnx'), '--export', join(kept, 'stage0.safetensors'), '--force']);
const more = r.run([stages(1), ...USUAL, '--steps', '12', '--resume', kept, '--checkpoint', path('more'), '--model', path('words.onnx'), '--export', path('more.onnx'), '--quiet']);
tap.ok(more.status === 0 && existsSync(path('more.onnx')), 'at the end of a run', more.stderr);
r.ranks = 2;
r.fails('a checkpoint of another seed', 2, /is of a run with seed 1/, [stages(2), ...USUAL, '--resume', kept, '--seed', '2']);
r.fails('of another optimizer', 1, /optimizer/, [stages(2, 'none', ['--optimizer', 'sgd']), ...USUAL, '--resume', kept]);
truncateSync(join(kept, 'stage1.safetensors'), 500);
r.fails('cut short', 4, /stage1\.safetensors/, [stages(2), ...USUAL, '--resume', kept]);
mkdirSync(path('other'));
writeFileSync(path('other/mine.txt'), 'mine');
r.fails('in place of something else', 3, /other/, [stages(2), ...USUAL, '--checkpoint', path('other')]);
tap.ok(readFileSync(path('other/mine.txt'), 'utf8') === 'mine', 'which stays');

// Ctrl-C ends the run behind its step; what it leaves goes on.
if (!launcher) {
  const left = path('left');
  const child = spawn(train, [stages(2), ...USUAL, '--steps', '1000000', '--checkpoint', left, '--log-every', '1'], { env });
  let error = '';
  child.stderr.on('data', (text) => { error += text; });
  child.stdout.once('data', () => child.kill('SIGINT'));
  const status = await new Promise((resolve) => { child.on('close', resolve); });
  const at = Number(/^error: interrupted after step (\d+), which is in /.exec(error)?.[1]);
  tap.ok(status === 130 && at > 0, 'Ctrl-C: one line, exit status 130', `${status} ${error}`);
  const on = trains(1, stages(1), [...USUAL, '--steps', `${at + 2}`, '--resume', left]);
  const through = trains(1, stages(1), [...USUAL, '--steps', `${at + 2}`]);
  // A launcher and a terminal may both tell of the same Ctrl-C; a second one later leaves.
  const twice = spawn(train, [stages(2), ...USUAL, '--steps', '1000000', '--checkpoint', path('twice'), '--log-every', '1'], { env });
  let said = '';
  twice.stderr.on('data', (text) => { said += text; });
  twice.stdout.once('data', () => [1, 2, 3].forEach(() => twice.kill('SIGINT')));
  const ended = await new Promise((resolve) => { twice.on('close', resolve); });
  tap.ok(ended === 130 && /^error: interrupted after step \d+, which is in /.test(said), 'one Ctrl-C that is told three times', `${ended} ${said}`);
  tap.ok(on.first_step === at && on.weights_digest === through.weights_digest, 'and a checkpoint to go on from', result(on));
}

// Random smoothing: what is drawn depends neither on the cut nor on the order of pieces.
const SMOOTH = [...USUAL, '--steps', '6', '--smooth', 'gamma=0.05,samples=3'];
const smooth = trains(1, stages(1), SMOOTH);
tap.ok(smooth.losses?.length === 6 && smooth.samples === 3 && smooth.gamma === 0.05 && smooth.losses[0] !== one.losses[0] &&
  smooth.losses.every((loss, i) => Math.abs(loss - one.losses[i]) < 0.1), 'smoothing moves weights a little', result(smooth));
tap.ok(smooth.device?.[0].weight_bytes * 3 === one.device[0].weight_bytes * 4, 'and holds them once more, beside two moments of AdamW', JSON.stringify(smooth.device));
for (const [k, devices, recompute, more] of [[2, 2, 'none', []], [3, 3, 'heavy', []], [4, 4, 'all', []], [4, 2, 'none', ['--schedule', 'interleaved']],
  [2, 2, 'all', ['--schedule', 'fill-drain']], [3, 3, 'all', ['--schedule', 'zb-h1']]]) {
  const got = trains(devices, stages(k, recompute, more.includes('zb-h1') ? APART : []), [...SMOOTH, ...more]);
  tap.ok(got.losses?.length === 6 && result(got) === result(smooth), `smoothed in ${k} stages, recompute ${recompute} ${more.at(-1) ?? ''}: the same bits`, result(got));
}
trains(2, stages(2), [...SMOOTH, '--steps', '4', '--checkpoint', path('smooth')]);
tap.ok(trains(3, stages(3), [...SMOOTH, '--resume', path('smooth')]).weights_digest === smooth.weights_digest, 'resumed, it draws the same');
const shared = trains(2, stages(1), [...SMOOTH, '--replicas', '2']);
tap.ok(shared.losses?.every((loss, i) => Math.abs(loss - smooth.losses[i]) < 1e-5), 'two replicas draw what one does', result(shared));
tap.ok(result(trains(4, stages(2), [...SMOOTH, '--replicas', '2'])) === result(shared), 'and the same bits in 2 stages');
tap.ok(result(trains(2, stages(2), [...USUAL, '--steps', '10', '--smooth', 'samples=1,gamma=0'])) === result(one), 'gamma 0: the run without it');
const still = trains(2, stages(2), [...USUAL, ...evaluated, '--lr', '0', '--steps', '2', '--smooth', 'gamma=0.5,samples=2']);
tap.ok(still.eval_loss === first.eval_loss && still.losses[0] !== first.losses[0], 'evaluations are of the weights themselves', `${still.eval_loss} ${first.eval_loss}`);

// Four samples of a micro-batch are four micro-batches of the same rows, which fill the pipeline.
const alike = (all) => ({ ...all, data: all.data.map((_, i) => all.data[i % (2 * LENGTH)]) });
writeNpy(path('alike.npy'), alike(tokens));
writeNpy(path('alike-target.npy'), alike(target));
const ALIKE = ['--data', `tokens=${path('alike.npy')}`, '--data', `target=${path('alike-target.npy')}`, '--in-order', '--optimization', '0',
  '--lr', '0.01', '--steps', '3', '--smooth'];
const many = trains(1, stages(1), [...ALIKE, 'gamma=0.05,samples=1', '-b', '8', '-m', '4']);
const filled = trains(3, stages(3), [...ALIKE, 'gamma=0.05,samples=4', '-b', '2', '-m', '1']);
tap.ok(filled.losses?.length === 3 && result(filled) === result(many), 'samples are micro-batches of the same rows', `${result(filled)}\n${result(many)}`);
tap.ok(filled.device?.map(({ peak_stashes: n }) => n).join() === '3,2,1', 'that fill the pipeline', JSON.stringify(filled.device));
tap.ok(result(trains(1, stages(1), [...ALIKE, 'gamma=0.05,samples=4', '-b', '2', '-m', '1', '--seed', '2'])) !== result(many), 'another seed draws others');

// Where v and w are 0, nothing but their draws d and e is left of x + v + w - x, and of x v w with x = 1. The means of squares are 2 gamma^2 and
// gamma^4, gradients 2 / N times the means of d + e, and of d e^2 and d^2 e, over samples. If two of these were drawn alike, or a backward
// piece had other weights than its forward piece, that would not hold.
const WIDE = 4096, GAMMA = 0.5, SAMPLES = 16;
const filledWith = (x, ...dims) => tensor('float32', dims, Array(dims.reduce((a, b) => a * b)).fill(x));
writeNpy(path('ones.npy'), filledWith(1, 2, WIDE));
writeNpy(path('zeros.npy'), filledWith(0, 2, WIDE));
for (const [op, at, square, variance] of [['Add', 'ones', 2 * GAMMA ** 2, 2 * GAMMA ** 2], ['Mul', 'zeros', GAMMA ** 4, 3 * GAMMA ** 6]]) {
  const what = path(op);
  writeFileSync(`${what}.onnx`, model({ nodes: [node(op, ['x', 'v'], ['s']), node(op, ['s', 'w'], ['y'])],
    initializers: { v: filledWith(0, WIDE), w: filledWith(0, WIDE) }, inputs: [value('x', 'float32', ['n', WIDE])], outputs: [value('y', 'float32', ['n', WIDE])] }));
  r.start(split, [`${what}.onnx`, '-k', '2', '-o', what, '--quiet', '--dim', 'n=1', '--training', '--loss', 'mse:target=t', '--optimizer', 'sgd', '--trained-weights', 'input']);
  r.ranks = 2;
  const drawing = r.run([what, '--data', `x=${path('ones.npy')}`, '--data', `t=${path(`${at}.npy`)}`, '-m', '2', '--in-order', '--lr', '0', '--steps', '2', '--log-every', '1',
    '--smooth', `gamma=${GAMMA},samples=${SAMPLES}`]);
  const steps = [...drawing.stdout.matchAll(/loss ([\d.e+-]+) {2}gradient ([\d.e+-]+)/g)].map(([, ...pair]) => pair.map(Number));
  const norm = 2 * Math.sqrt(2 * variance / (WIDE * 2 * SAMPLES));
  tap.ok(steps.length === 2 && steps.every(([loss, found]) => Math.abs(loss / square - 1) < 0.03 && Math.abs(found / norm - 1) < 0.06),
    `${op}: draws are normal, differ by weight and sample, and are those of both passes`, `${JSON.stringify(steps)} ${square} ${norm}\n${drawing.stderr}`);
  tap.ok(steps[0]?.[0] !== steps[1]?.[0], 'and differ by step', JSON.stringify(steps));
}

// A trace has all pieces.
r.ranks = 2;
r.run([stages(2), ...USUAL, '--steps', '2', '--trace', path('trace.json'), '--quiet']);
const spans = JSON.parse(readFileSync(path('trace.json'))).traceEvents.filter(({ ph, tid }) => ph === 'X' && tid === 0);
tap.ok(spans.length === 2 * 2 * (2 * 4 + 1) && spans.filter(({ name }) => name === 'update').length === 4, 'the trace has every piece', spans.length);

// What cannot be trained on.
r.ranks = 2;
const dir = stages(2);
const bad = (name, what) => { writeNpy(path(name), what); return path(name); };
const broken = (label) => ({ ...target, data: target.data.map((each, i) => (i === 42 ? label : each)) });
r.fails('a label that is no class', 4, /row 8: the label 19 is not one of the 19 classes/, [dir, '--data', DATA[1], '--data', `target=${bad('l1.npy', broken(19n))}`, '-b', '8', '-m', '4']);
r.fails('a negative one', 4, /row 8: the label -1 is not one of/, [dir, '--data', DATA[1], '--data', `target=${bad('l2.npy', broken(-1n))}`, '-b', '8', '-m', '4']);
const ignored = trains(2, dir, ['--data', DATA[1], '--data', `target=${bad('l3.npy', broken(-100n))}`, '-b', '8', '-m', '4']);
tap.ok(ignored.losses?.length === 6, 'one that is ignored is fine', JSON.stringify(ignored));
r.fails('another type', 4, /f\.npy holds <f4, the input is int64/, [dir, '--data', DATA[1], '--data', `target=${bad('f.npy', tensor('float32', [ROWS, LENGTH], Array(ROWS * LENGTH).fill(1)))}`]);
r.fails('another shape', 4, /shape|dimension|\[/, [dir, '--data', DATA[1], '--data', `target=${bad('s.npy', tensor('int64', [ROWS, 3], Array(ROWS * 3).fill(1)))}`]);
r.fails('another number of rows', 4, /7 rows for \S*few-target\.npy and 48 for \S*tokens\.npy/, [dir, '--data', DATA[1], '--data', `target=${path('few-target.npy')}`]);
r.fails('no file for an input', 2, /there is no data for input target: --data target=FILE/, [dir, '--data', DATA[1]]);
r.fails('an input that there is not', 2, /the model has no input tokenz/, [dir, ...DATA, '--data', `tokenz=${path('few.npy')}`]);
r.fails('a batch that is not so many micro-batches', 2, /micro-batch/, [dir, ...DATA, '-b', '10', '-m', '4']);
r.fails('a schedule for other files', 5, /compute gradients of inputs and of weights together.*--weight-gradients apart/, [dir, ...USUAL, '--schedule', 'zb-h1']);
r.fails('stages that are not enough for all chunks', 2, /2 stages cannot be given to devices 3 to each: .* a multiple of it/, [dir, ...DATA, '--schedule', 'interleaved:3']);
r.ranks = 6;
r.fails('micro-batches that replicas cannot share', 2, /4 micro-batches cannot be divided evenly among 3 replicas/, [dir, ...DATA, '-b', '8', '-m', '4', '--replicas', '3']);
r.ranks = 2;
r.fails('smoothing by less than nothing', 2, /smooth gamma/, [dir, ...USUAL, '--smooth', 'gamma=-0.1,samples=2']);
r.fails('smoothing without samples', 2, /smooth samples/, [dir, ...USUAL, '--smooth', 'gamma=0.1,samples=0']);
for (const text of ['gamma=0.1', 'samples=2', 'gamma=0.1,gamma=0.2', 'gamma=0.1,samples=2,', 'sigma=1,samples=2', ''])
  r.fails(`smoothing by "${text}"`, 2, /--smooth takes/, [dir, ...USUAL, '--smooth', text]);
r.fails('more samples than a step holds', 2, /from 1 to 1048576 samples/, [dir, ...USUAL, '--smooth', 'gamma=0.1,samples=1048576']);
writeFileSync(path('norm.onnx'), model({ nodes: [node('BatchNormalization', ['x', 'a', 'b', 'mean', 'var'], ['y', 'm', 'v'], { training_mode: 1n })],
  initializers: Object.fromEntries(['a', 'b', 'mean', 'var'].map((name) => [name, numbers(WIDE)])),
  inputs: [value('x', 'float32', ['n', WIDE])], outputs: [value('y', 'float32', ['n', WIDE])] }));
const norm1 = path('norm');
r.start(split, [path('norm.onnx'), '-k', '1', '-o', norm1, '--quiet', '--dim', 'n=2', '--training', '--loss', 'mse:target=t', '--optimizer', 'sgd', '--trained-weights', 'input']);
r.ranks = 1;
const normal = ['--data', `x=${path('ones.npy')}`, '--data', `t=${path('zeros.npy')}`, '-m', '1', '--smooth'];
r.fails('smoothing of stages with states', 5, /passes from one micro-batch to the next, and smoothing/, [norm1, ...normal, 'gamma=0,samples=2']);
tap.ok(trains(1, norm1, [...normal, 'gamma=0,samples=1']).steps === 1, 'which train without it');
// Zeros, compressed: a thousandth of their size. Only so much is unpacked as is asked for.
writeNpz(path('flat.npz'), { x: filledWith(0, 4200, WIDE), t: filledWith(0, 4200, WIDE) }, { deflate: true });
const flat = [norm1, '--data', path('flat.npz'), '-b', '2', '-m', '1', '--steps', '1'];
if (!/without zlib/.test(r.run(flat).stderr)) {
  r.fails('zeros that unpack to too much', 6, /flat\.npz: an array of 688129\d\d bytes .*; the limit is lifted by --max-unpacked MIB$/, flat);
  tap.ok(trains(1, norm1, [...flat.slice(1), '--max-unpacked', '66']).steps === 1, 'unless that is asked for');
}
r.ranks = 2;
r.fails('a file that is not there', 3, /nowhere/, [dir, '--data', 'nowhere.npz']);
const inference = path('inference');
r.start(split, [path('words.onnx'), '-k', '2', '-o', inference, '--quiet', '--dim', 'n=2']);
r.fails('stages that do not train', 5, /were not made for training; onnx-pipeline-split --training --loss LOSS --optimizer adamw --trained-weights input makes stages that do/, [inference, ...DATA]);
r.fails('stages without updates', 5, /no updates/, [stages(2, 'none', ['--optimizer', 'none']), ...DATA]);

// Not finite: with a rate so large the weights are soon not.
const wild = [...USUAL, '--lr', '1e38', '--steps', '8'];
r.fails('a loss that is not finite', 4, /step \d+: the (loss|gradient) is not finite/, [dir, ...wild]);
const skipped = trains(2, dir, [...wild, '--nan', 'skip']);
r.fails('and its checkpoint stays', 4, /is not finite/, [dir, ...wild, '--checkpoint', path('wild'), '--checkpoint-every', '1']);
tap.ok(existsSync(path('wild', 'training.json')), 'that of the steps before');
tap.ok(skipped.skipped > 0 && skipped.losses.length === 8, '--nan skip goes on without such updates', JSON.stringify(skipped));
tap.done();
