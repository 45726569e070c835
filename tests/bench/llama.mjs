// What a large decoder costs where its weights stay in the model's files: seconds to split it by reference, bytes of weights
// that are read, and the memory of K ranks together beside one process with the whole:
//
//   node llama.mjs BUILD LAUNCHER [DIR [LAYERS [HIDDEN]]]
//
// LAUNCHER: "mpirun -n", or whatever takes a number of ranks behind it. The model, made in DIR (default: a temporary directory)
// and removed: a llama of random weights in one file of external data, as ONNX Runtime's model builder exports it
// (GroupQueryAttention, SimplifiedLayerNormalization); 16 layers 2048 wide are 3.3 GB. Memory is what /proc says of the
// processes (Pss: pages that several hold are divided among them), looked at 20 times a second: the most at a time.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { env } from '../runtime/runner.mjs';
import { writeModel } from '../support/text_model.mjs';

const [build, launcher, where = tmpdir(), layers = '16', hidden = '2048'] = process.argv.slice(2);
const L = Number(layers), H = Number(hidden), HEAD = 64, KV = H / 4, FF = Math.round((H * 2.75) / 64) * 64, VOCAB = 32000, CONTEXT = 2048;
const tool = (name) => resolve(build, 'tools', `onnx-pipeline-${name}`);
const tmp = mkdtempSync(join(where, 'psplit-llama-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

// Weights in one file, each at a multiple of 4096: runtimes map them.
let at = 0;
const external = [];
function weight(name, ...dims) {
  const bytes = 4 * dims.reduce((a, b) => a * b);
  external.push(`float[${dims}] ${name} = ["location": "model.onnx.data", "offset": "${at}", "length": "${bytes}"]`);
  at += Math.ceil(bytes / 4096) * 4096;
}
weight('emb', VOCAB, H);
const body = [`x0 = Gather (emb, input_ids)
  counted = ReduceSum <keepdims = 0> (attention_mask, axis1) less = Sub (counted, one64) seqlens = Cast <to = 6> (less)
  ms = Shape (attention_mask) tot = Gather (ms, i1) total = Cast <to = 6> (tot)`];
const norm = (x, y, w) => `${y} = SimplifiedLayerNormalization <axis = -1, epsilon = 0.00001> (${x}, ${w})`;
for (let l = 0; l < L; l++) {
  weight(`wq_${l}`, H, H);
  weight(`wk_${l}`, H, KV);
  weight(`wv_${l}`, H, KV);
  weight(`wo_${l}`, H, H);
  weight(`wg_${l}`, H, FF);
  weight(`wu_${l}`, H, FF);
  weight(`wd_${l}`, FF, H);
  body.push(`${norm(`x${l}`, `n${l}`, 'scale')} q${l} = MatMul (n${l}, wq_${l}) k${l} = MatMul (n${l}, wk_${l}) v${l} = MatMul (n${l}, wv_${l})
  a${l}, "present.${l}.key", "present.${l}.value" = com.microsoft.GroupQueryAttention <num_heads = ${H / HEAD}, kv_num_heads = ${KV / HEAD}, do_rotary = 1>
    (q${l}, k${l}, v${l}, "past_key_values.${l}.key", "past_key_values.${l}.value", seqlens, total, cos, sin)
  o${l} = MatMul (a${l}, wo_${l}) y${l} = Add (x${l}, o${l}) ${norm(`y${l}`, `m${l}`, 'scale')}
  g${l} = MatMul (m${l}, wg_${l}) s${l} = Sigmoid (g${l}) t${l} = Mul (g${l}, s${l}) u${l} = MatMul (m${l}, wu_${l}) w${l} = Mul (t${l}, u${l})
  d${l} = MatMul (w${l}, wd_${l}) x${l + 1} = Add (y${l}, d${l})`);
}
weight('head', H, VOCAB);
const states = (name, t) => Array.from({ length: L }, (_, l) => ['key', 'value'].map((kind) => `float[b,${KV / HEAD},${t},${HEAD}] "${name}.${l}.${kind}"`)).flat().join(', ');
const model = join(tmp, 'model.onnx');
writeModel(`<ir_version: 8, opset_import: [{version: 17}, {domain: "com.microsoft", version: 1}]>
llama (int64[b,s] input_ids, int64[b,t] attention_mask, ${states('past_key_values', 'p')}) => (float[b,s,${VOCAB}] logits, ${states('present', 't')})
<${external.join(', ')}, float[${H}] scale = random(1), float[${CONTEXT},${HEAD / 2}] cos = random(3), float[${CONTEXT},${HEAD / 2}] sin = random(4),
 int64[1] axis1 = {1}, int64[1] one64 = {1}, int64 i1 = {1}> {
  ${body.join('\n  ')}
  last = SimplifiedLayerNormalization <axis = -1, epsilon = 0.00001> (x${L}, scale) logits = MatMul (last, head)
}`, model);
const block = Float32Array.from({ length: 1 << 22 }, (_, i) => (((Math.imul(i + 1, 2654435761) >>> 8) / 2 ** 24) - 0.5) / 16);
const file = openSync(join(tmp, 'model.onnx.data'), 'w');
for (let done = 0; done < at; done += block.byteLength) {
  // No two weights alike: ONNX Runtime would keep one for both.
  for (let page = 0; page < block.length; page += 1024) block[page] = ((done / 4096 + page / 1024) % 65536) / 2 ** 20;
  writeSync(file, new Uint8Array(block.buffer), 0, Math.min(block.byteLength, at - done));
}
closeSync(file);
console.log(`${(at / 1e9).toFixed(2)} GB of weights`);

// Stages lie beside the weights that they refer to, which are in memory: they have just been written.
const dims = ['--dim', 'b=1', '--dim', 's=1', '--dim', 'p=256', '--dim', 't=257'];
function split(k) {
  const began = performance.now();
  const made = spawnSync('/usr/bin/time', ['-f', '%U %S', tool('split'), model, '-k', `${k}`, '-o', tmp, '--weights', 'reference', '--force', '--quiet', ...dims],
    { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
  const [user, system] = made.stderr.trim().split('\n').at(-1).split(' ').map(Number);
  return { wall: (performance.now() - began) / 1000, cpu: user + system };
}

// A process, its children, their children ...
function family(pid) {
  const all = [pid];
  for (let i = 0; i < all.length; i++) {
    try {
      for (const task of readdirSync(`/proc/${all[i]}/task`))
        all.push(...readFileSync(`/proc/${all[i]}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number));
    } catch { /* it has ended */ }
  }
  return all;
}
const number = (path, name) => Number(new RegExp(`${name}:\\s*(\\d+)`).exec(readFileSync(path, 'utf8'))?.[1] ?? 0);
function look(pid, seen) {
  let pss = 0;
  for (const each of family(pid)) {
    try {
      if (!readFileSync(`/proc/${each}/comm`, 'utf8').startsWith('onnx-pipeline')) continue;
      pss += number(`/proc/${each}/smaps_rollup`, 'Pss') * 1024;
      seen.read.set(each, number(`/proc/${each}/io`, 'rchar'));
    } catch { /* it has ended */ }
  }
  seen.pss = Math.max(seen.pss, pss);
}
function generate(k) {
  const args = [tool('generate'), tmp, '--prompt-ids', '1,2,3,4,5,6,7,8', '-n', '8', '--sequences', '1', '--json'];
  const [program, ...rest] = k === 1 ? args : [...launcher.split(' '), `${k}`, ...args];
  const seen = { pss: 0, read: new Map() }, began = performance.now();
  const child = spawn(program, rest, { env: { ...env } });
  let text = '', errors = '';
  child.stdout.on('data', (data) => { text += data; });
  child.stderr.on('data', (data) => { errors += data; });
  const timer = setInterval(() => look(child.pid, seen), 50);
  return new Promise((done) => child.on('close', (status) => {
    clearInterval(timer);
    if (status !== 0) throw new Error(errors);
    const report = JSON.parse(text);
    done({ pss: seen.pss, read: [...seen.read.values()].reduce((a, b) => a + b, 0), tokens: report.sequences[0].tokens.join(),
      seconds: (performance.now() - began) / 1000, rate: report.tokens_per_second });
  }));
}
let whole;
for (const k of [1, 2, 4]) {
  const made = [split(k), split(k), split(k), split(k), split(k)].sort((a, b) => a.wall - b.wall)[0];
  const got = await generate(k);
  whole ??= got;
  if (got.tokens !== whole.tokens) console.log(`other tokens: ${got.tokens}, ${whole.tokens}`);
  console.log(`K = ${k}: split in ${made.wall.toFixed(3)} s (${made.cpu.toFixed(2)} s of CPU); ${(got.pss / 1e9).toFixed(2)} GB, ${(got.pss / whole.pss).toFixed(3)} of one process; `
    + `${(got.read / 1e6).toFixed(1)} MB read by calls, ${(got.read / at).toFixed(3)} of the weights; ${got.seconds.toFixed(1)} s in all`);
}
