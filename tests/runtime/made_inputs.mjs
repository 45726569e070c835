// Inputs whose numbers are made: ranges that are asked for, and masks, lengths and positions that fit the other inputs:
//
//   node made_inputs.mjs RUN SPLIT VERIFY [LAUNCHER]
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { readNpy } from './npy.mjs';
import { Runner, env } from './runner.mjs';

const [runner, splitter, verifier, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher, 2);
const { tap, tmp } = each;

// Inputs as decoders have them, each handed out again.
const INPUTS = {
  input_ids: 'int64[b,s]', attention_mask: 'int64[b,t]', position_ids: 'int64[b,s]', seqlens_k: 'int32[b]', token_type_ids: 'int64[b,s]', input_type_ids: 'int32[b,s]', segment_ids: 'int64[b,s]',
  total_sequence_length: 'int32[1]', input_lengths: 'int64[b]', 'past_key_values.0.key': 'float[b,2,p,4]',
  pixel_mask: 'bool[b,s]', text_mask: 'string[b,s]', tiny_length: 'uint8[b]', numbers: 'float16[b,s]', bytes: 'uint8[b,s]',
};
const model = join(tmp, 'decoder.onnx');
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
decoder (float[n,8] x, ${Object.entries(INPUTS).map(([name, type]) => `${type} "${name}"`).join(', ')})
  => (float[n,8] y, ${Object.entries(INPUTS).map(([name, type]) => `${type} "${name}_out"`).join(', ')})
<float[8,8] w0 = random(1), float[8,8] w1 = random(2)> {
  [n_a] a0 = MatMul (x, w0)
  [n_b] a1 = Tanh (a0)
  [n_c] a2 = MatMul (a1, w1)
  [n_d] y = Tanh (a2)
  ${Object.keys(INPUTS).map((name, i) => `[o_${i}] "${name}_out" = Identity ("${name}")`).join('\n  ')}
}`, model);
const dir = join(tmp, 'split');
const made = spawnSync(splitter, [model, '-k', '2', '-o', dir, '--quiet', '--dim', 'n=3'], { encoding: 'utf8' });
tap.ok(made.status === 0, 'is split', made.stderr);
const { outputs } = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
const SIZES = ['n=3', 'b=2', 's=5', 't=12', 'p=7'].flatMap((size) => ['--dim', size]);

// Indices that nothing says the limit of.
const few = join(tmp, 'few.onnx');
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
few (float[10,8] x, int64[n] which, int32[n] more) => (float[n,8] y, int32[n] z) <float[8,8] w = random(1)> {
  [a] a = MatMul (x, w) [b] b = Gather (a, which) [c] y = Tanh (b) [d] z = Identity (more)
}`, few);
const fewDir = join(tmp, 'few');
spawnSync(splitter, [few, '-k', '2', '-o', fewDir, '--quiet', '--dim', 'n=30', '--pin', 'a=0', '--pin', 'b=0', '--pin', 'c=1', '--pin', 'd=0']);
const unfit = /^error: .* must be within the inclusive range \[-10,9\]; the numbers of inputs which, more were made, from 0 to 99, and may not suit the model: give a range or a file$/m;
const ranFew = each.run([fewDir, '--dim', 'n=30', '--random', '-m', '1', '--quiet']);
const lines = ranFew.stderr.trim().split('\n').length;
tap.ok(unfit.test(ranFew.stderr) && (launcher || (ranFew.status === 4 && lines === 1)), 'made numbers that are no indices are told, in one line', ranFew.stderr);
if (!launcher) {
  const whole = spawnSync(runner, ['--profile', join(tmp, 'costs.json'), few, '--dim', 'n=30', '-m', '1'], { encoding: 'utf8', env });
  tap.ok(whole.status === 4 && unfit.test(whole.stderr), 'in a profile as well', whole.stderr);
  const proved = spawnSync(verifier, [fewDir, '--model', few, '--run', '--dim', 'n=30'], { encoding: 'utf8', env });
  tap.ok(proved.status === 4 && unfit.test(proved.stderr), 'and where runs are compared', proved.stderr);
}
const fits = each.run([fewDir, '--dim', 'n=30', '--random', '-m', '1', '--quiet', '--input', 'which=0..9']);
tap.ok(fits.status === 0, 'a range of indices does', fits.stderr);
const asked = launcher ? null : each.run([fewDir, '--dim', 'n=30', '--random', '-m', '1', '--quiet', '--input', 'which=0..99', '--input', 'more=0..99']);
tap.ok(!asked || asked.status === 4 && !asked.stderr.includes('were made'), 'a range that was asked for is not', asked?.stderr);

let runs = 0;
function gets(args) {
  const out = join(tmp, `out${runs++}`);
  mkdirSync(out);
  const ran = each.run([dir, ...SIZES, '-m', '2', '-o', out, '--quiet', ...args]);
  if (!tap.ok(ran.status === 0, `runs with ${args.join(' ')}`, ran.stderr)) return null;
  return (name, micro = 0) => readNpy(join(out, `${micro}-${outputs.findIndex((o) => (o.name ?? o) === `${name}_out`)}.npy`));
}
const all = (tensor, good) => tensor && [...tensor.data].every(good);
const is = (title, good) => tap.ok(good, title);

let got = gets(['--random', '--input', 'numbers=-0.5..0.25', '--input', 'bytes=250..255']);
if (got) {
  is('masks are ones', all(got('attention_mask'), (v) => v === 1n) && all(got('pixel_mask'), (v) => Number(v) === 1));
  is('positions count from what caches hold', [...got('position_ids').data].join() === '7,8,9,10,11,7,8,9,10,11');
  is('tokens are of the first type', ['token_type_ids', 'input_type_ids', 'segment_ids'].every((name) => all(got(name), (v) => Number(v) === 0)));
  is('the last position of all', all(got('seqlens_k'), (v) => v === 11));
  is('the positions of all', all(got('total_sequence_length'), (v) => v === 12));
  is('lengths are those of tokens', all(got('input_lengths'), (v) => v === 5n) && all(got('tiny_length'), (v) => v === 5));
  is('a mask of text is made as other text is', all(got('text_mask'), (v) => /^s\d+$/.test(v)));
  is('tokens are random', new Set([...got('input_ids').data, ...got('input_ids', 1).data]).size > 5);
  const half = (h) => (h >> 15 ? -1 : 1) * ((h >> 10 & 31) ? (1 + (h & 1023) / 1024) * 2 ** ((h >> 10 & 31) - 15) : 0);
  const numbers = [...got('numbers').data, ...got('numbers', 1).data].map(half);
  is('floats of a range', numbers.every((v) => v >= -0.5 && v <= 0.25) && new Set(numbers).size > 10 && Math.min(...numbers) < 0);
  const bytes = [...got('bytes').data, ...got('bytes', 1).data];
  is('integers of a range', bytes.every((v) => v >= 250) && new Set(bytes).size > 3);
}
got = gets(['--random', '--input', 'attention_mask=zeros', '--input', 'numbers=ones', '--input', 'input_ids=3..3']);
if (got) {
  is('zeros in place of what a name says', all(got('attention_mask'), (v) => v === 0n));
  is('ones', all(got('numbers'), (v) => v === 0x3c00));
  is('one number', all(got('input_ids'), (v) => v === 3n));
}
got = gets(Object.keys(INPUTS).filter((name) => name !== 'text_mask').concat('x').flatMap((name) => ['--input', `${name}=0..1`])
  .concat('--random'));
if (got) is('ranges of all types', all(got('seqlens_k'), (v) => v === 0 || v === 1) && all(got('pixel_mask'), (v) => Number(v) < 2));

each.fails('sizes that nothing gives, all at once', 2,
  /sizes are not known: b, s in input input_ids, t in input attention_mask, p in input past_key_values\.0\.key: --dim b=N --dim s=N --dim t=N --dim p=N, or --shape INPUT=\.\.\. for each input/,
  [dir, '--dim', 'n=3', '--random']);
const unnamed = join(tmp, 'unnamed.onnx'), apart = join(tmp, 'unnamed');
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
g (float[n,8] x, float[?,8] z) => (float[n,8] y, float[?,8] v) {
  a = Tanh (x)\n y = Tanh (a)\n b = Tanh (z)\n v = Tanh (b)
}`, unnamed);
spawnSync(splitter, [unnamed, '-k', '2', '-o', apart, '--quiet', '--dim', 'n=3']);
each.fails('no size of a dimension helps where another has no name', 2,
  /sizes are not known: n in input x, an unnamed dimension in input z: --shape INPUT=\.\.\. for each input/,
  [apart, '--random']);
each.fails('a number that the type does not have', 2, /input bytes is of uint8, which does not hold 0\.\.300/,
  [dir, ...SIZES, '--random', '--input', 'bytes=0..300']);
each.fails('half an integer', 2, /input input_ids is of int64, which does not hold 0\.5\.\.3/,
  [dir, ...SIZES, '--random', '--input', 'input_ids=0.5..3']);
each.fails('a range of text', 2, /input text_mask is of string, which does not hold 0\.\.3/,
  [dir, ...SIZES, '--random', '--input', 'text_mask=0..3']);
each.fails('an empty range', 2, /the range of input bytes is empty/, [dir, ...SIZES, '--random', '--input', 'bytes=3..1']);
each.fails('a range for nothing', 2, /the model has no input bite/, [dir, ...SIZES, '--random', '--input', 'bite=ones']);
each.fails('a range without an end is a file', 3, /5\.\./, [dir, ...SIZES, '--random', '--input', 'bytes=5..']);
if (!launcher) {
  const verified = spawnSync(verifier, [dir, '--model', model, '--run', ...SIZES, '--input', 'numbers=0..1'], { encoding: 'utf8', env });
  tap.ok(verified.status === 0, 'the whole model gets the same', verified.stdout + verified.stderr);
  const profiled = each.start(runner, ['--profile', join(tmp, 'profile.json'), model, '--random', ...SIZES, '--input', 'bytes=1..2']);
  tap.ok(profiled.status === 0, 'and when it is profiled', profiled.stderr);
}
tap.done();
