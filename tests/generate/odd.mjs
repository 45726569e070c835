// Decoders that take or give what most do not: tokens of the split are those of the whole, and plans know their working points.
//
//   node odd.mjs GENERATE SPLIT
//
// `packed`: keys and values in one tensor, [2, batch, heads, past, size], as GPT-2 is exported; `types`: token_type_ids; `added`, `allowed`:
// masks [batch, 1, new, past + new] of floats that are added, and of bools; `window`: such a mask of a window; `rows`: position_ids [3, batch, new]; `last`: logits
// [batch, vocabulary] of the last token alone; `mixer`: states of a convolution and of a sum, none of attention; `gru`: [1, batch, size].
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tap } from '../e2e/tap.mjs';
import { env } from '../runtime/runner.mjs';
import { writeModel } from '../support/text_model.mjs';

const [generator, splitter] = process.argv.slice(2);
const ort = createRequire(new URL('../e2e/package.json', import.meta.url))('onnxruntime-node');
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-odd-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const [LAYERS, HEADS, HEAD, VOCAB, NEW] = [2, 2, 8, 61, 8];
const D = HEADS * HEAD;
const each = (f) => Array.from({ length: LAYERS }, (_, l) => f(l));

// Attention over what a state brings; `bias(l)` is added to the scores.
function attention({ inputs = [], embed = 'x0 = Gather (emb, input_ids)', bias, packed = false, logits, more = [] }) {
  const kinds = ['k', 'v'];
  const past = (l) => (packed ? [`float[2,b,${HEADS},p,${HEAD}] past_${l}`] : kinds.map((k) => `float[b,${HEADS},p,${HEAD}] "past_key_values.${l}.${k}"`));
  const present = (l) => (packed ? [`float[2,b,${HEADS},t,${HEAD}] present_${l}`] : kinds.map((k) => `float[b,${HEADS},t,${HEAD}] "present.${l}.${k}"`));
  const layer = (l) => {
    const parts = ['q', 'k', 'v'].map((w) => `${w}m${l} = MatMul (x${l}, w${w}${l}) ${w}r${l} = Reshape (${w}m${l}, heads) ${w}${l} = Transpose <perm = [0, 2, 1, 3]> (${w}r${l})`);
    const joined = packed
      ? `ku${l} = Unsqueeze (k${l}, zero) vu${l} = Unsqueeze (v${l}, zero) kv${l} = Concat <axis = 0> (ku${l}, vu${l})
         present_${l} = Concat <axis = 3> (past_${l}, kv${l}) K${l} = Gather (present_${l}, i0) V${l} = Gather (present_${l}, i1)`
      : kinds.map((k) => `"present.${l}.${k}" = Concat <axis = 2> ("past_key_values.${l}.${k}", ${k}${l}) ${k.toUpperCase()}${l} = Identity ("present.${l}.${k}")`).join(' ');
    return `${parts.join(' ')} ${joined} kt${l} = Transpose <perm = [0, 1, 3, 2]> (K${l}) s${l} = MatMul (q${l}, kt${l}) ${bias(l)}
      a${l} = Softmax <axis = -1> (sb${l}) c${l} = MatMul (a${l}, V${l}) ct${l} = Transpose <perm = [0, 2, 1, 3]> (c${l}) cr${l} = Reshape (ct${l}, flat)
      o${l} = MatMul (cr${l}, wo${l}) u${l} = Tanh (o${l}) x${l + 1} = Add (x${l}, u${l})`;
  };
  return decoder([...inputs, ...each(past).flat()], each(present).flat(), `${embed} ${each(layer).join(' ')}`,
    [`int64[4] heads = {0, 0, ${HEADS}, ${HEAD}}`, `int64[3] flat = {0, 0, ${D}}`,
      ...each((l) => ['q', 'k', 'v', 'o'].map((w, i) => `float[${D},${D}] w${w}${l} = random(${10 * l + i + 20})`)).flat(), ...more], logits);
}

function decoder(inputs, outputs, body, weights, logits = ['b,s', `logits = MatMul (x${LAYERS}, head)`]) {
  return `<ir_version: 8, opset_import: [{version: 17}]>
decoder (int64[b,s] input_ids, ${inputs.join(', ')}) => (float[${logits[0]},${VOCAB}] logits, ${outputs.join(', ')})
<float[${VOCAB},${D}] emb = random(1), float[${D},${VOCAB}] head = random(2), int64[1] zero = {0}, int64[1] one = {1}, int64 i0 = {0}, int64 i1 = {1},
 int64 im = {-1}, ${weights.join(', ')}> { ${body} ${logits[1]} }`;
}

const causal = { // no mask is given: made of sizes
  more: ['float[1] low = {-10000}', 'int64[1] row = {1}'],
  bias: (l) => `ss${l} = Shape (s${l}) tot${l} = Gather (ss${l}, i3) nw${l} = Gather (ss${l}, i2) at${l} = Range (i0, tot${l}, i1) first${l} = Sub (tot${l}, nw${l})
    q0${l} = Range (first${l}, tot${l}, i1) asking${l} = Unsqueeze (q0${l}, row) later${l} = Greater (at${l}, asking${l}) lf${l} = Cast <to = 1> (later${l})
    lb${l} = Mul (lf${l}, low) sb${l} = Add (s${l}, lb${l})`,
};
causal.more.push('int64 i2 = {2}', 'int64 i3 = {3}');
const added = { bias: (l) => `sb${l} = Add (s${l}, attention_mask)` };

const models = {
  packed: attention({ ...causal, packed: true }),
  types: attention({ ...causal, inputs: ['int64[b,s] token_type_ids'], more: [...causal.more, `float[2,${D}] kinds = random(3)`],
    embed: 'e0 = Gather (emb, input_ids) t0 = Gather (kinds, token_type_ids) x0 = Add (e0, t0)' }),
  added: attention({ ...added, inputs: ['float[b,1,s,t] attention_mask'] }),
  allowed: attention({ inputs: ['bool[b,1,s,t] attention_mask'], more: ['float[1] low = {-10000}'],
    bias: (l) => `sb${l} = Where (attention_mask, s${l}, low)` }),
  rows: attention({ ...causal, inputs: ['int64[3,b,s] position_ids'], more: [...causal.more, `float[64,${D}] places = random(3)`],
    embed: 'e0 = Gather (emb, input_ids) p0 = Gather (places, position_ids) p1 = ReduceMean <axes = [0], keepdims = 0> (p0) x0 = Add (e0, p1)' }),
  last: attention({ ...causal, logits: ['b', `xl = Gather <axis = 1> (x${LAYERS}, im) logits = MatMul (xl, head)`] }),
  mixer: decoder(each((l) => [`float[b,3,${D}] "past_conv.${l}"`, `float[b,1,${D}] "past_ssm.${l}"`]).flat(),
    each((l) => [`float[b,3,${D}] "present_conv.${l}"`, `float[b,1,${D}] "present_ssm.${l}"`]).flat(),
    `x0 = Gather (emb, input_ids) ${each((l) => `c${l} = Concat <axis = 1> ("past_conv.${l}", x${l}) "present_conv.${l}" = Slice (c${l}, m3, far, one)
      d${l} = Slice (c${l}, zero, m3, one) e${l} = Add (d${l}, x${l}) f${l} = MatMul (e${l}, w${l}) g${l} = Tanh (f${l}) h${l} = CumSum (g${l}, i1)
      j${l} = Add (h${l}, "past_ssm.${l}") "present_ssm.${l}" = Slice (j${l}, m1, far, one) k${l} = Tanh (j${l}) x${l + 1} = Add (x${l}, k${l})`).join(' ')}`,
    ['int64[1] m3 = {-3}', 'int64[1] m1 = {-1}', 'int64[1] far = {1000000}', ...each((l) => `float[${D},${D}] w${l} = random(${l + 5})`)]),
  gru: decoder(each((l) => `float[1,b,${D}] state_input_${l}`), each((l) => `float[1,b,${D}] state_output_${l}`),
    `x0 = Gather (emb, input_ids) ${each((l) => `t${l} = Transpose <perm = [1, 0, 2]> (x${l})
      y${l}, state_output_${l} = GRU <hidden_size = ${D}> (t${l}, w${l}, r${l}, , , state_input_${l}) z${l} = Squeeze (y${l}, one)
      x${l + 1} = Transpose <perm = [1, 0, 2]> (z${l})`).join(' ')}`,
    each((l) => [`float[1,${3 * D},${D}] w${l} = random(${l + 5})`, `float[1,${3 * D},${D}] r${l} = random(${l + 9})`]).flat()),
};

const PROMPTS = [[1, 2, 3, 4, 5], [7], [33, 12, 60]];
const output = (input) => input.replace('past_key_values', 'present').replace('past', 'present').replace('input', 'output');
const size = (n) => n.reduce((a, b) => a * b, 1);

// What files may give instead, for all tokens that there will be: other types and places, and a mask that hides every fourth token.
const MOST = 16;
const at = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const given = {
  types: ['token_type_ids', 'int64', [1, MOST], at(MOST, (i) => (i % 3 === 1 ? 1 : 0))],
  rows: ['position_ids', 'int64', [3, 1, MOST], at(3 * MOST, (i) => (i * i) % 17)],
  allowed: ['attention_mask', 'bool', [1, 1, MOST, MOST], at(MOST * MOST, (i) => (i % MOST <= Math.floor(i / MOST) && i % 4 !== 2 ? 1 : 0))],
};

function writeNpy(file, type, dims, numbers) {
  const text = `{'descr': '${type === 'bool' ? '|b1' : '<i8'}', 'fortran_order': False, 'shape': (${dims.join(', ')}), }`;
  const head = Buffer.alloc(128, ' ');
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(118, 8);
  head.write(text, 10);
  head.write('\n', 127);
  const data = type === 'bool' ? Uint8Array.from(numbers) : BigInt64Array.from(numbers, BigInt);
  writeFileSync(file, Buffer.concat([head, Buffer.from(data.buffer)]));
}

// Of a window of four: what the mask is nobody can tell, so that it has to be given.
models.window = models.allowed.replaceAll('attention_mask', 'sliding_attention_mask');
given.window = ['sliding_attention_mask', 'bool', [1, 1, MOST, MOST],
  at(MOST * MOST, (i) => (i % MOST <= Math.floor(i / MOST) && i % MOST > Math.floor(i / MOST) - 4 ? 1 : 0))];

// Greedy, by the whole model. Sizes of first states: those of the text, the batch 1, the past 0.
async function whole(name, model, prompt, file) {
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, logSeverityLevel: 3 });
  const tokens = [...prompt];
  const state = {};
  for (const { name: input, shape } of session.inputMetadata.filter((each) => /past|state/.test(each.name))) {
    const dims = shape.map((d) => (typeof d === 'number' && d >= 0 ? d : d === 'b' ? 1 : 0));
    state[input] = new ort.Tensor('float32', new Float32Array(size(dims)), dims);
  }
  let past = 0;
  while (tokens.length < prompt.length + NEW) {
    const fresh = tokens.slice(past);
    const [s, t] = [fresh.length, tokens.length];
    const int64 = (numbers, dims = [1, s]) => new ort.Tensor('int64', BigInt64Array.from(numbers, BigInt), dims);
    const later = (f) => fresh.flatMap((_, q) => tokens.map((__, k) => f(k <= past + q)));
    const feeds = { ...state };
    for (const input of session.inputNames) {
      if (input === 'input_ids') feeds[input] = int64(fresh);
      if (input === 'token_type_ids') feeds[input] = int64(fresh.map(() => 0));
      if (input === 'position_ids') feeds[input] = int64([0, 1, 2].flatMap(() => fresh.map((_, i) => past + i)), [3, 1, s]);
      if (input === 'attention_mask' && name === 'added') feeds[input] = new ort.Tensor('float32', Float32Array.from(later((ok) => (ok ? 0 : -65504))), [1, 1, s, t]);
      if (input.endsWith('attention_mask') && /allowed|window/.test(name)) feeds[input] = new ort.Tensor('bool', Uint8Array.from(later((ok) => (ok ? 1 : 0))), [1, 1, s, t]);
    }
    if (file) {
      const [input, type, dims, numbers] = file;
      const rows = type === 'bool' ? fresh.map((_, q) => numbers.slice((past + q) * MOST, (past + q) * MOST + t))
        : at(dims[0], (r) => numbers.slice(r * MOST + past, r * MOST + t));
      feeds[input] = new ort.Tensor(type, type === 'bool' ? Uint8Array.from(rows.flat()) : BigInt64Array.from(rows.flat(), BigInt), feeds[input].dims);
    }
    const got = await session.run(feeds);
    for (const input of Object.keys(state)) state[input] = got[output(input)];
    const row = got.logits.data.slice(got.logits.data.length - VOCAB);
    past = t;
    tokens.push(row.indexOf(Math.max(...row)));
  }
  await session.release();
  return tokens.slice(prompt.length);
}

for (const [name, text] of Object.entries(models)) {
  const model = join(tmp, `${name}.onnx`);
  writeModel(text, model);
  const wanted = [];
  for (const prompt of PROMPTS) wanted.push((await whole(name, model, prompt, name === 'window' ? given[name] : undefined)).join(' '));
  tap.ok(new Set(wanted.join(' ').split(' ')).size > 2, `${name}: the whole model says various things`, wanted.join('\n'));
  for (const k of [1, 2]) {
    const dir = join(tmp, `${name}${k}`);
    const made = spawnSync(splitter, [model, '-k', `${k}`, '-o', dir, '--quiet', '--context', '32'], { encoding: 'utf8' });
    if (!tap.ok(made.status === 0, `${name} in ${k}, for a context`, made.stderr)) continue;
    const got = spawnSync(generator, [dir, ...PROMPTS.flatMap((prompt) => ['--prompt-ids', prompt.join()]), '-n', `${NEW}`, '--quiet'],
      { encoding: 'utf8', timeout: 60000, env });
    if (name === 'window')
      tap.ok(got.status === 2 && got.stderr.includes('there is no data for input sliding_attention_mask') && !got.stdout, `${name} in ${k}: asks for the mask`, got.stderr);
    else tap.ok(got.status === 0 && got.stdout.trim() === wanted.join('\n'), `${name} in ${k}: the tokens of the whole`,
      `${got.stderr}${got.stdout}\nwanted\n${wanted.join('\n')}`);
    if (!given[name]) continue;
    const [input, type, dims, numbers] = given[name];
    const file = join(tmp, `${name}.npy`);
    writeNpy(file, type, dims, numbers);
    const prompts = [dir, ...PROMPTS.flatMap((prompt) => ['--prompt-ids', prompt.join()]), '--quiet', '--input', `${input}=${file}`];
    const others = [];
    for (const prompt of PROMPTS) others.push((await whole(name, model, prompt, given[name])).join(' '));
    const told = spawnSync(generator, [...prompts, '-n', `${NEW}`], { encoding: 'utf8', timeout: 60000, env });
    tap.ok(told.stdout.trim() === others.join('\n') && (name === 'window' || others.join() !== wanted.join()), `${name} in ${k}: what a file gives`,
      `${told.stderr}${told.stdout}\nwanted\n${others.join('\n')}`);
    const rest = name === 'window' ? 1 : 2;
    const lines = join(tmp, `${name}.jsonl`); // every second prompt has the file, the others have none
    writeFileSync(lines, PROMPTS.map((prompt, i) => `${JSON.stringify({ prompt_ids: prompt, ...(i % rest ? {} : { [input]: file }) })}\n`).join(''));
    const byLine = spawnSync(generator, [dir, '--prompts', lines, '-n', `${NEW}`, '--quiet'], { encoding: 'utf8', timeout: 60000, env });
    const mixed = PROMPTS.map((_, i) => (i % rest ? wanted : others)[i]).join('\n');
    tap.ok(byLine.status === 0 && byLine.stdout.trim() === mixed, `${name} in ${k}: what lines of prompts name`, `${byLine.stderr}${byLine.stdout}\nwanted\n${mixed}`);
    const short = spawnSync(generator, [...prompts, '-n', '14'], { encoding: 'utf8', timeout: 60000, env });
    tap.ok(short.status === 1 && short.stderr.includes(`input ${input} is given for ${MOST} tokens, and there are 17`), `${name} in ${k}: of too few tokens`, short.stderr);
  }
}

// What is no decoder, what is asked of one that has it not, and logits that allow nothing: one line each. `change` is of the text.
const small = `<ir_version: 8, opset_import: [{version: 17}]>
(int64[b,s] input_ids, float[b,p,4] past_a) => (float[b,s,9] logits, float[b,t,4] present_a) <float[9,4] e = random(1), float[4,9] h = random(2)> {
  x = Gather (e, input_ids) present_a = Concat <axis = 1> (past_a, x) m = ReduceMean <axes = [1], keepdims = 1> (present_a) y = Add (x, m)
  logits = MatMul (y, h) }`;
const logits = (text) => ['logits = MatMul (y, h)', text];
const wrong = [
  ['tokens by a name that nothing has', [], ['--ids', 'none'], 2, 'the model has no input none; it has input_ids, past_a'],
  ['logits by a name that nothing has', [], ['--logits', 'none'], 2, 'the model has no output none; it has logits, present_a'],
  ['tokens by another name', ['input_ids', 'words'], [], 5, "no input of the model takes token ids"],
  ['tokens that are floats', ['int64[b,s] input_ids', 'float[b,s] input_ids'], ['--ids', 'input_ids'], 5, "no input of the model takes token ids"],
  ['two outputs, neither of which is called logits', ['logits', 'scores', 'present_a', 'other_a'], [], 5, 'none of the model\'s outputs is called logits'],
  ['a state for an input that is none', [], ['--state', 'present_a=none'], 2, 'the model has no input none; it has input_ids, past_a'],
  ['a state from an output that is none', [], ['--state', 'none=past_a'], 2, 'the model has no output none; it has logits, present_a'],
  ['two states for one input', [], ['--state', 'present_a=past_a', '--state', 'logits=past_a'], 2, 'input past_a is given two states'],
  ['a prompt as long as the context', [], ['--context', '2'], 2, 'a prompt of 2 tokens leaves no room in a context of 2'],
  ['logits that are no numbers', logits('l = MatMul (y, h) n = Sub (l, l) logits = Div (n, n)'), [], 1, 'the logits are not numbers (NaN)'],
  ['logits that allow no token', logits('l = MatMul (y, h) z = Sub (l, l) o = Log (z) logits = Add (o, o)'), [], 1, 'the logits allow no token'],
  ['logits that are whole numbers', ['float[b,s,9] logits', 'int64[b,s,9] logits', ...logits('l = MatMul (y, h) logits = Cast <to = 7> (l)')], [], 1,
    'the logits are no floats, a row for each position'],
];
const dir = join(tmp, 'small');
function splitSmall(change) {
  let text = small;
  for (let i = 0; i < change.length; i += 2) text = text.replaceAll(change[i], change[i + 1]);
  writeModel(text, join(tmp, 'small.onnx'));
  return spawnSync(splitter, [join(tmp, 'small.onnx'), '-k', '1', '-o', dir, '--force', '--quiet', '--allow-invalid'], { encoding: 'utf8' });
}
const small2 = (...more) => spawnSync(generator, [dir, '--prompt-ids', '1,2', '-n', '12', '--quiet', ...more], { encoding: 'utf8', timeout: 60000, env });
for (const [title, change, args, status, says] of wrong) {
  const made = splitSmall(change);
  const got = small2(...args);
  tap.ok(made.status === 0 && got.status === status && got.stderr.includes(says) && !got.stdout.trim(), `${title}: is said`,
    `${made.stderr}${got.status} ${got.stderr}${got.stdout}`);
}

// Drawing from the likeliest alone, or nearly without chance, is taking the likeliest; else the seed decides, and no token is drawn that k or p leaves out.
splitSmall([]);
const greedy = small2().stdout;
const first = (args, seeds) => at(seeds, (seed) => small2('-n', '1', '--seed', `${seed + 1}`, ...args).stdout.trim());
tap.ok(greedy.trim().split(' ').length === 12, 'tokens without chance', greedy);
for (const args of [['--temperature', '1', '--top-k', '1'], ['--temperature', '0.0001', '--top-k', '3'], ['--temperature', '1', '--top-p', '0.000001']])
  tap.ok(small2(...args).stdout === greedy, `${args.join(' ')}: the likeliest`, small2(...args).stdout);
const [few, all] = [first(['--temperature', '50', '--top-k', '2'], 12), first(['--temperature', '50'], 12)];
tap.ok(new Set(few).size === 2 && new Set(all).size > 2, 'of two likeliest, one of them', `${few}; ${all}`);
tap.ok(`${few}` === `${first(['--temperature', '50', '--top-k', '2'], 12)}`, 'the same seed draws the same');
tap.done();
