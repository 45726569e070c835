// Tokens of an encoder and its decoder, whose first step is another model than all later ones, are those of the whole
// models, token by token:
//
//   node encoder_decoder.mjs GENERATE SPLIT MODEL [LAUNCHER]
//
// MODEL: `made` (models as text: decoder_model and decoder_with_past_model), or a merged decoder of the model cache, whose
// branches are split each by itself. That is run over threads and, for the same tokens of the whole, by the launcher. No byte
// of state crosses a link, and the encoder runs once for each sequence.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cache } from '../e2e/places.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';
import { env } from '../runtime/runner.mjs';
import { writeModel } from '../support/text_model.mjs';
import { FEATURES, encodedDecoder, encoder } from './decoder.mjs';

const [generator, splitter, name, launcher = ''] = process.argv.slice(2);
const ort = createRequire(new URL('../e2e/package.json', import.meta.url))('onnxruntime-node');
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-encoded-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

// Real models say half of that, unless PSPLIT_MATRIX=full: still more tokens than plans count on (`dims`).
const full = process.env.PSPLIT_MATRIX === 'full';
const whisper = (layers, heads) => ({
  layers, heads, head: 64, features: numbers, input: 'input_features', shape: [1, 80, 3000], n: full ? 256 : 128, ks: [1, 2, 3, 4],
  prompts: [[50258, 50259, 50359, 50363], [50258, 50261, 50359, 50363, 220, 17, 400, 1029, 7]],
  encoderDims: { batch_size: 1, feature_size: 80, encoder_sequence_length: 3000 },
  dims: { batch_size: 1, decoder_sequence_length: 1, past_decoder_sequence_length: 100, encoder_sequence_length_out: 1500, 'encoder_sequence_length / 2': 1500 },
});
const moonshine = (layers, head) => ({
  layers, heads: 8, head, features: hum, input: 'input_values', shape: [1, 32000], n: full ? 190 : 96, ks: [1, 2, 3, 4], prompts: [[1, 306, 1029, 7], [1, 400, 17], [1, 5000, 29892, 1258]],
  encoderDims: { batch_size: 1, num_samples: 32000 },
  dims: { batch_size: 1, decoder_sequence_length: 1, past_decoder_sequence_length: 60, encoder_sequence_length_out: 82, encoder_sequence_length: 82 },
});
const MODELS = {
  made: {
    layers: 3, heads: 2, head: 16, features: numbers, input: 'features', shape: [1, 10, FEATURES], n: 40, ks: [1, 2, 3],
    prompts: [[1, 2, 3, 4, 5], [7], [9, 8, 7, 60], [33, 12], [2, 2, 2]],
    encoderDims: { b: 1, f: 10 }, dims: { b: 1, s: 1, t: 33, p: 32, f: 10 },
  },
  whisper_tiny: whisper(4, 6), whisper_base: whisper(6, 8), moonshine_tiny: moonshine(6, 36), moonshine_base: moonshine(8, 52),
};
const model = MODELS[name];
const noRanks = launcher.startsWith('skip ') && launcher.slice(5);
if (name === 'made' && noRanks) skipAll(noRanks);
const ways = name === 'made' ? [launcher] : [...new Set(['', noRanks ? '' : launcher])];
const files = {};
if (name === 'made') {
  for (const file of ['encoder', 'first', 'later']) files[file] = join(tmp, `${file}.onnx`);
  writeModel(encoder(), files.encoder);
  writeModel(encodedDecoder(model.layers, true), files.first);
  writeModel(encodedDecoder(model.layers, false), files.later);
} else {
  files.encoder = join(cache, `${name}_encoder.onnx`);
  files.first = files.later = join(cache, `${name}_decoder.onnx`);
  for (const file of Object.values(files)) if (!existsSync(file)) skipAll(`${file} is not in the cache: tests/models/fetch.sh ${name}_decoder`);
}

// The same for every sequence of that number: numbers from -1 to 1 ...
function random(seed) {
  let x = seed * 7919 + 1;
  return () => (x = (Math.imul(x, 1664525) + 1013904223) >>> 0) / 2 ** 31 - 1;
}
function numbers(seed, n) {
  const next = random(seed);
  return Float32Array.from({ length: n }, next);
}
// ... or a hum whose pitch and formants change ten times a second, to which a model of speech has more to say than to noise.
function hum(seed, n) {
  const next = random(seed);
  let phase = 0, pitch = 0, formants = [];
  return Float32Array.from({ length: n }, (_, i) => {
    if (i % 1600 === 0) [pitch, formants] = [160 + 70 * next(), [600 + 300 * next(), 1600 + 700 * next(), 2700 + 400 * next()]];
    phase += pitch / 16000;
    let sum = 0;
    for (let h = 1; h < 30; h++) {
      const gain = formants.reduce((total, f) => total + 1 / (1 + ((h * pitch - f) / 120) ** 2), 0);
      sum += gain * Math.sin(2 * Math.PI * h * phase);
    }
    return 0.1 * sum * (0.6 + 0.4 * Math.sin((2 * Math.PI * i) / 1600));
  });
}
function writeNpy(path, shape, data) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const head = Buffer.from(text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n', 'latin1');
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, head.length & 255, head.length >> 8]);
  writeFileSync(path, Buffer.concat([start, head, Buffer.from(data.buffer)]));
}
const features = model.prompts.map((_, i) => model.features(i + 1, model.shape.reduce((a, b) => a * b)));
features.forEach((data, i) => writeNpy(join(tmp, `features${i}.npy`), model.shape, data));

// Greedy, by the whole models, one sequence at a time.
const options = { intraOpNumThreads: 1, graphOptimizationLevel: 'disabled' };
const sessions = { encoder: await ort.InferenceSession.create(files.encoder, options), first: await ort.InferenceSession.create(files.first, options) };
sessions.later = files.later === files.first ? sessions.first : await ort.InferenceSession.create(files.later, options);
async function whole(prompt, data, n) {
  const encoded = await sessions.encoder.run({ [model.input]: new ort.Tensor('float32', data, model.shape) });
  const tokens = [...prompt];
  const state = {};
  let past = 0;
  while (tokens.length < prompt.length + n) {
    const session = past ? sessions.later : sessions.first;
    const feeds = {};
    for (const input of session.inputNames) {
      if (input === 'input_ids') feeds[input] = new ort.Tensor('int64', BigInt64Array.from(tokens.slice(past), BigInt), [1, tokens.length - past]);
      else if (input === 'encoder_hidden_states') feeds[input] = encoded.last_hidden_state;
      else if (input === 'use_cache_branch') feeds[input] = new ort.Tensor('bool', [past > 0], [1]);
      else feeds[input] = state[input] ?? new ort.Tensor('float32', new Float32Array(0), [1, model.heads, 0, model.head]);
    }
    const got = await session.run(feeds);
    for (const output of Object.keys(got))
      if (output.startsWith('present') && !(past && output.includes('encoder'))) state[output.replace('present', 'past_key_values')] = got[output];
    const { data: logits, dims } = got.logits;
    const row = logits.subarray(logits.length - dims[2]);
    past = tokens.length;
    tokens.push(row.reduce((best, x, i) => (x > row[best] ? i : best), 0));
  }
  return tokens.slice(prompt.length);
}
const wanted = [];
for (const [i, prompt] of model.prompts.entries()) wanted.push(await whole(prompt, features[i], model.n));
const planned = model.dims.past_decoder_sequence_length ?? model.dims.p;
tap.ok(model.n > planned, 'they say more than plans count on', `${model.n} tokens, ${planned} planned`);
tap.ok(new Set(wanted.flat()).size > 8 && new Set(wanted.map(String)).size === wanted.length, 'the whole models say various things', JSON.stringify(wanted));

function run(k, args, way = ways[0]) {
  const command = way ? [...way.split(' '), `${k}`, generator] : [generator];
  return spawnSync(command[0], [...command.slice(1), ...args], { encoding: 'utf8', timeout: 1500000, env });
}
const dims = (of) => Object.entries(of).flatMap(([dim, size]) => ['--dim', `${dim}=${size}`]);
function split(file, dir, args) {
  const made = spawnSync(splitter, [file, '-o', dir, '--quiet', '--force', ...args], { encoding: 'utf8' });
  return tap.ok(made.status === 0, `${dir.slice(tmp.length + 1)} is split`, made.stderr);
}
// The stage of each layer: as many in each stage.
const even = (k) => Array.from({ length: model.layers }, (_, l) => Math.floor((l * k) / model.layers));
function splitDecoder(k, which, dir, stages = even(k)) {
  const branch = name === 'made' ? [] : ['--inline-if', `optimum::if=${which === 'first' ? 'else' : 'then'}`];
  const sizes = Object.entries(model.dims).filter(([dim]) => name !== 'made' || which === 'later' || dim !== 'p');
  return split(files[which], dir, ['-k', `${k}`, ...branch, ...dims(Object.fromEntries(sizes)),
    ...stages.flatMap((stage, l) => ['--pin', `*/layers.${l}/*=${stage}`])]);
}
const given = model.prompts.flatMap((prompt) => ['--prompt-ids', prompt.join()]);
const input = ['--input', `${model.input}=${join(tmp, 'features{}.npy')}`];
const lines = (text) => text.trim().split('\n').map((line) => line.split(' ').map(Number));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const dir = (what, k) => join(tmp, `${what}${k}`);
const ks = model.ks.filter((k) => k > 1 || !ways[0]);
for (const k of ks) {
  // Real models say all in one stage and in most, between only how they start; PSPLIT_MATRIX=full: all.
  const between = name !== 'made' && k > 1 && k < ks.at(-1) && !full;
  const n = between ? Math.ceil(model.n / 2) : model.n;
  split(files.encoder, dir('encoder', k), ['-k', `${Math.min(k, 2)}`, ...dims(model.encoderDims)]);
  splitDecoder(k, 'first', dir('first', k));
  splitDecoder(k, 'later', dir('later', k));
  for (const which of ['first', 'later']) {
    const { transfers } = JSON.parse(readFileSync(join(dir(which, k), 'pipeline.json')));
    tap.ok(transfers.every(({ tensor }) => !/past|present/.test(tensor)), `${which} in ${k}: no state crosses a link`, JSON.stringify(transfers));
  }
  for (const way of ways.filter((each) => k > 1 || !each)) {
    for (const sequences of name === 'made' ? [1, 2, 4] : [3]) {
      const title = `in ${k}${way ? ' ranks' : ''}`;
      const args = [dir('later', k), '--prompt-split', dir('first', k), '--encoder', dir('encoder', k), ...input, ...given, '-n', `${n}`,
        '--sequences', `${sequences}`, '--optimization', '0', '--threads', '1', '--json'];
      const got = run(k, args, way);
      const report = got.status === 0 ? JSON.parse(got.stdout) : { sequences: [] };
      tap.ok(same(report.sequences.map(({ tokens }) => tokens), wanted.map((tokens) => tokens.slice(0, n))), `${title}, ${sequences} at once: the tokens of the whole`,
        `${got.status} ${got.stderr}${JSON.stringify(report.sequences.map(({ tokens }) => tokens))}\n${JSON.stringify(wanted)}`);
      tap.ok(report.encoded === model.prompts.length && report.steps === model.prompts.length * n, `${title}: the encoder runs once for each sequence`,
        got.stdout);
    }
  }
}
if (noRanks) tap.skip('in ranks', noRanks);

// A merged decoder in one stage needs no second split.
if (name !== 'made') {
  split(files.later, join(tmp, 'merged'), ['-k', '1', ...dims(model.dims)]);
  const got = run(1, [join(tmp, 'merged'), '--encoder', dir('encoder', 1), ...input, ...given, '-n', `${model.n}`, '--optimization', '0', '--quiet']);
  tap.ok(got.status === 0 && same(lines(got.stdout), wanted), 'a merged decoder as it is', got.stderr + got.stdout);
}

if (name === 'made') {
  const k = ks.at(-1), all = [dir('later', k), '--prompt-split', dir('first', k), '--encoder', dir('encoder', k)];
  const fails = (title, status, pattern, args) => {
    const got = run(k, args);
    const said = got.stderr.split('\n').filter((line) => line.startsWith('error:'));
    tap.ok(got.status === status && said.some((line) => pattern.test(line)) && (launcher || said.length === 1), title, `${got.status}\n${got.stderr}`);
  };
  fails('what the encoder takes is not given', 2, /features/, [...all, ...given]);
  fails('what the encoder makes is given', 2, /input encoder_hidden_states is made from/, [...all, ...input, '--input', 'encoder_hidden_states=ones', ...given]);
  fails('an encoder that is not there', 3, /nowhere/, [all[0], '--encoder', join(tmp, 'nowhere'), ...given]);
  fails('no model for the first step', 2, /there is no data for input past_key_values\.0\.encoder\.key/, [all[0], ...given]);
  fails('an encoder that the decoder has nothing of', 5, /has no input for the encoder.s results/,
    [...all.slice(0, 3), '--encoder', dir('later', k), ...given]);
  splitDecoder(k, 'first', join(tmp, 'other'), [0, 0, 1]);
  fails('splits that are not cut alike', 5, /stage 1 of \S+later\d reads the state past_key_values\.1\.\S+, and stage 0 of \S+other writes it/,
    [dir('later', k), '--prompt-split', join(tmp, 'other'), '--encoder', dir('encoder', k), ...input, ...given]);
  split(files.encoder, join(tmp, 'long'), ['-k', `${k + 1}`, ...dims(model.encoderDims)]);
  fails('an encoder of more stages', 5, /long has \d stages, and \S+later\d only \d/, [...all.slice(0, 3), '--encoder', join(tmp, 'long'), ...input, ...given]);
  // What an encoder would give may come from files; each sequence has its own.
  const encoded = await Promise.all(features.map((data) => sessions.encoder.run({ [model.input]: new ort.Tensor('float32', data, model.shape) })));
  encoded.forEach(({ last_hidden_state: { data, dims: shape } }, i) => writeNpy(join(tmp, `hidden${i}.npy`), shape, data));
  const got = run(k, [...all.slice(0, 3), '--input', `encoder_hidden_states=${join(tmp, 'hidden{}.npy')}`, ...given, '-n', `${model.n}`, '--quiet']);
  tap.ok(got.status === 0 && same(lines(got.stdout), wanted), 'encoded elsewhere', got.stderr + got.stdout);
  // Each line of --prompts names its own.
  const object = (i, more = {}) => ({ prompt_ids: model.prompts[i], [model.input]: join(tmp, `features${i}.npy`), ...more });
  const prompts = (...objects) => {
    writeFileSync(join(tmp, 'prompts'), objects.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n'));
    return ['--prompts', join(tmp, 'prompts')];
  };
  const order = [3, 0, 4];
  const named = run(k, [...all, ...prompts(...order.map((i) => object(i)), object(1, { max_new_tokens: 2 }), object(2, { [model.input]: join(tmp, 'gone.npy') }),
    { prompt_ids: [1] }), '-n', `${model.n}`, '--json']);
  const ran = named.status === 1 ? JSON.parse(named.stdout).sequences : [];
  tap.ok(same(ran.map(({ tokens }) => tokens), [...order.map((i) => wanted[i]), wanted[1].slice(0, 2), [], []]) && /gone\.npy/.test(ran[4].error) &&
    /neither the prompt nor any option gives input features/.test(ran[5].error), 'prompts name the files of their inputs', named.stdout + named.stderr);
  const escaped = run(k, [...all, ...prompts(JSON.stringify(object(0)).replace('features', '\\u0066eat\\u0075res').replaceAll('/', '\\/')), '-n', '3', '-q']);
  tap.ok(escaped.status === 0 && same(lines(escaped.stdout), [wanted[0].slice(0, 3)]), 'names with escapes', escaped.stderr);
  for (const [line, pattern] of [
    ['{"prompt_ids": [1,', /line 1 has no list as "prompt_ids"/], ['{"prompt_ids": [1], "x": 3}', /line 1 names an input's file by something other than a string/],
    ['{"prompt_ids": [-1]}', /line 1 has "prompt_ids" that are not token ids/], ['{"features": "a.npy"}', /line 1 has no "prompt_ids"/],
    ['{"prompt_ids": [1]} 2', /line 1 is not a JSON object/], ['{"prompt_ids": [1], "max_new_tokens": 0}', /line 1 has a "max_new_tokens" that is not a number above 0/],
    ['{"prompt_ids": [1], "prompt_ids": [2]}', /line 1 has "prompt_ids" twice/], ['1 x', /line 1 is not a list of token ids/],
  ]) fails(`a line that is wrong: ${line}`, 4, pattern, [...all, ...prompts(line)]);
  fails('a prompt with an input that no model has', 2, /a prompt gives input feature,/, [...all, ...prompts({ prompt_ids: [1], feature: 'a.npy' })]);
  fails('a prompt with an input that the encoder makes', 2, /a prompt gives input encoder_hidden_states,/,
    [...all, ...prompts({ ...object(0), encoder_hidden_states: 'a.npy' })]);
  // One that fails in the encoder ends alone.
  rmSync(join(tmp, 'features1.npy'));
  const failed = run(k, [...all, ...input, ...given, '-n', `${model.n}`, '--json']);
  const ends = failed.status === 1 ? JSON.parse(failed.stdout).sequences : [];
  tap.ok(same(ends.map(({ tokens }) => tokens), wanted.map((tokens, i) => (i === 1 ? [] : tokens))) && /features1\.npy/.test(ends[1].error),
    'a sequence whose features are missing ends alone', failed.stdout + failed.stderr);
}
tap.done();
