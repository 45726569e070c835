// One bad micro-batch is one bad micro-batch:
//
//   node errors.mjs RUN SPLIT ODD [LAUNCHER]
//
// Files and streams with something wrong in the middle, stages that fail or are late (ODD: odd_onnxruntime.c). What
// was before it is delivered, to the bit; with --on-error skip also what comes behind, and the report names it.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npyBytes, writeNpy } from './npy.mjs';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env, library } from './runner.mjs';

const [runner, splitter, odd, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const oddly = (what) => ({ env: { ...env, ODD: what, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd } });
const tensor = (rows, seed) => ({
  type: 'float32', dims: [rows, 8], data: Float32Array.from({ length: 8 * rows }, (_, i) => Math.sin(seed + i)),
});
const M = 12;
const BAD = 5;
const batches = Array.from({ length: M }, (_, i) => tensor(1 + i % 4, i));
const flat = { ...batches[BAD], dims: [batches[BAD].data.length] }; // of another rank
const doubles = { type: 'float64', dims: [1, 8], data: new Float64Array(8) };

for (const name of ['good', 'bad']) {
  mkdirSync(join(tmp, name));
  batches.forEach((batch, i) => writeNpy(join(tmp, name, `${i}.npy`), name === 'bad' && i === BAD ? flat : batch));
}
const without = (i) => Array.from({ length: M }, (_, m) => m).filter((m) => m !== i);
const before = (i) => Array.from({ length: i }, (_, m) => m);

function suite(model) {
  const { dir, manifest: { inputs: [{ name: input }], outputs } } = each.split(model);
  const of = (name) => ['-i', `${input}=${join(tmp, name, '{}.npy')}`];
  const wanted = join(tmp, `${model}-wanted`);
  const made = each.run([dir, ...of('good'), '-m', `${M}`, '-o', wanted, '-q']);
  tap.ok(made.status === 0, `${model}: the bits of good micro-batches`, made.stderr);

  for (const place of launcher ? [] : [join(dir, 'results'), dir]) {
    const ran = each.run([dir, ...of('good'), '-m', '1', '-o', place, '-q']);
    const told = (ran.stderr.match(/results would be in a split|outputs\.json would be in a split/g) ?? []).length;
    tap.ok(ran.status === 0 && told === 1, `${model}: results that come into a split are told once`, ran.stderr);
    outputs.forEach((_, o) => rmSync(join(place, `0-${o}.npy`)));
    rmSync(join(place, 'outputs.json'));
    if (place !== dir) rmSync(place, { recursive: true });
  }

  // Runs it; exactly these micro-batches are delivered, each of them whole.
  let n = 0;
  function delivers(title, status, pattern, which, args, options) {
    const out = join(tmp, `${model}-${n++}`);
    const result = each.run([dir, '-o', out, '--warmup', '0', '--json', ...args], options);
    const problems = [];
    const files = new Set(readdirSync(out).filter((file) => file !== 'outputs.json'));
    for (const m of which) {
      outputs.forEach((_, o) => {
        const file = `${m}-${o}.npy`;
        if (!files.delete(file)) problems.push(`${file} is missing`);
        else if (!readFileSync(join(out, file)).equals(readFileSync(join(wanted, file)))) problems.push(`${file} differs`);
      });
    }
    files.forEach((file) => problems.push(`${file} is there`));
    tap.ok(result.status === status && pattern.test(result.stderr) && !problems.length, `${model}: ${title}`,
      `exit status ${result.status}\n${result.stderr}\n${problems.join('\n')}`);
    return result.status === 1 ? JSON.parse(result.stdout) : {};
  }
  const names = (title, report, failures) =>
    tap.ok(report.failed === failures.length && failures.every(([m, pattern], i) =>
      report.failures[i].micro_batch === m && pattern.test(report.failures[i].message)),
    `${model}: the report names ${title}`, JSON.stringify(report.failures));
  const skip = ['--on-error', 'skip'];

  // The last stage is slow, so that others are on their way when it happens.
  const late = oddly(`slow-run stage${each.ranks - 1} 30`);
  const numbered = ['-m', `${M}`, ...of('bad')];
  const why = new RegExp(`stage \\d \\(stage\\d\\.onnx\\): micro-batch ${BAD}: `);
  delivers('stops behind what was accepted before', 4, new RegExp(`^error: ${why.source}`, 'm'), before(BAD), numbered, late);
  names('what was skipped', delivers('skips', 1, new RegExp(`^warning: skipped: ${why.source}`, 'm'), without(BAD),
    [...numbered, ...skip], late), [[BAD, why]]);
  names('a stage that failed', delivers('a stage that fails once', 1, /^warning: skipped: stage 1/m, without(3),
    ['-m', `${M}`, ...of('good'), ...skip], oddly('fail-run stage1 3')),
  [[3, /stage 1 \(stage1\.onnx\): micro-batch 3: .*it fails, as it was told/]]);
  const warm = each.run([dir, ...of('bad'), '-m', `${M}`, '--warmup', '7', '-q', ...skip]);
  tap.ok(warm.status === 1, `${model}: a bad one in the warm-up`, warm.stderr);

  // Streams.
  const stdin = ['--stream', '-i', `${input}=-`];
  const records = batches.map(npyBytes);
  const torn = Buffer.concat(records.slice(0, 8)).subarray(0, -5);
  delivers('a torn stream', 4, /^error: reading inputs: micro-batch 7: .*ends within a tensor/m, before(7), stdin,
    { ...late, input: torn });
  names('where a stream was torn', delivers('a torn stream, skipping', 1, /^warning: skipped: reading inputs/m, before(7),
    [...stdin, ...skip], { input: torn }), [[7, /reading inputs: micro-batch 7: .*ends within a tensor/]]);
  const mixed = Buffer.concat(records.map((record, i) => (i === BAD ? npyBytes(doubles) : record)));
  delivers('another type in a stream', 4, /^error: reading inputs: micro-batch 5: .*float32/m, before(BAD), stdin,
    { ...late, input: mixed });
  names('another type', delivers('another type in a stream, skipping', 1, /^warning: skipped: reading inputs/m,
    without(BAD), [...stdin, ...skip], { input: mixed }), [[BAD, /reading inputs: micro-batch 5: .*float32/]]);
  if (!launcher) {
    const through = each.run([dir, ...stdin, ...skip, '-o', '-', '-q'], { input: mixed, encoding: 'buffer' });
    const bytes = Buffer.concat(without(BAD).flatMap((m) => outputs.map((_, o) =>
      readFileSync(join(wanted, `${m}-${o}.npy`)))));
    tap.ok(through.status === 1 && through.stdout.equals(bytes), `${model}: into a stream`, `${through.stderr}`);
  }

  // Deadlines.
  delivers('a deadline that all meet', 0, /^/, without(-1), ['-m', `${M}`, ...of('good'), '--deadline', '20000'], late);
  delivers('a deadline that none meets', 6, /^error: .*micro-batch 0: its deadline has passed/m, [],
    ['-m', `${M}`, ...of('good'), '--deadline', '10'], late);
  const out = join(tmp, `${model}-deadline`);
  const result = each.run([dir, '-m', '40', '--warmup', '0', '-i', `${input}=${join(tmp, 'good', '3.npy')}`, '-o', out,
    '--json', '--deadline', '400', ...skip], oddly('slow-once stage1 3'));
  const { failures = [] } = result.status === 1 ? JSON.parse(result.stdout) : {};
  const failed = failures.map(({ micro_batch: m }) => m);
  tap.ok(failed.includes(3) && failed.length < 20 && failures.every(({ message }) => /deadline/.test(message)) &&
    before(40).every((m) => existsSync(join(out, `${m}-0.npy`)) !== failed.includes(m)),
  `${model}: one that is late`, `${result.status} ${failed}\n${result.stderr}`);
}
suite('fan_out'); // ends in one stage
suite('several_outputs'); // in two

// Two inputs on one stream stay in step.
const two = each.split('two_inputs');
const pair = (i, bad) => two.manifest.inputs.map((_, at) => npyBytes(bad && at === 0 ? doubles : tensor(3, 10 * i + at)));
const names = two.manifest.inputs.flatMap(({ name }) => ['-i', `${name}=-`]);
const run = (pairs, ...args) => each.run([two.dir, '--stream', ...names, '-o', '-', '-q', ...args],
  { input: Buffer.concat(pairs.flat()), encoding: 'buffer' });
if (!launcher) {
  const [some, all] = [run([pair(0), pair(2)]), run([pair(0), pair(1, true), pair(2)], '--on-error', 'skip')];
  tap.ok(some.status === 0 && all.status === 1 && all.stdout.length > 0 && all.stdout.equals(some.stdout),
    'inputs of one stream stay in step', `${some.stderr}${all.stderr}`);
  const ended = run([pair(0), pair(1), pair(2).slice(0, 1)], '--on-error', 'skip');
  tap.ok(ended.status === 1 && /micro-batch 2: .*has ended before others/.test(`${ended.stderr}`) &&
    ended.stdout.length === some.stdout.length, 'one input ends before the other', `${ended.stderr}`);
}
// Memory that cannot be had is a limit (6), not a fault of the model (4).
if (!launcher) {
  const [model, dir] = [join(tmp, 'huge.onnx'), join(tmp, 'huge')];
  writeModel('(float[n] x) => (float[m] y) { k = Constant <value_ints = [1000000000000000]> () a = Expand (x, k) y = Exp (a) }', model);
  const made = each.start(splitter, [model, '-k', '1', '-o', dir, '-q']);
  tap.ok(made.status === 0, 'a model that asks for too much is split', made.stderr);
  each.fails('a run for which there is no memory', 6, /micro-batch 0: .*Failed to allocate memory/, [dir, '--random', '--dim', 'n=1', '-m', '1']);
  each.fails('a profile for which there is no memory', 6, /Failed to allocate memory/,
    ['--profile', join(tmp, 'costs.json'), model, '--dim', 'n=1', '-m', '1']);
}
each.fails('another word', 2, /--on-error.*stop.*skip/, [two.dir, '--on-error', 'ignore']);
writeFileSync(join(tmp, 'done'), '');
tap.done();
