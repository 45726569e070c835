// Tokens a second of a decoder in two stages beside one thread with the whole of it, and beside two processes that have the
// whole each; alternately, medians of ratios:
//
//   node generate.mjs BUILD [RUNS [LAYERS [WIDTH]]]
//
// The decoder has random weights (tests/generate/decoder.mjs); 8 prompts of 8 tokens, 48 tokens each.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { env } from '../runtime/runner.mjs';
import { writeModel } from '../support/text_model.mjs';
import { decoders } from '../generate/decoder.mjs';

const [build, runs = '7', layers = '8', width = '512'] = process.argv.slice(2);
const tool = (name) => resolve(build, 'tools', `onnx-pipeline-${name}`);
const tmp = mkdtempSync(join(tmpdir(), 'psplit-bench-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const model = join(tmp, 'decoder.onnx');
writeModel(decoders.plain(Number(layers), Number(width)), model);
for (const k of [1, 2]) {
  const made = spawnSync(tool('split'), [model, '-k', `${k}`, '-o', join(tmp, `k${k}`), '--quiet', '--dim', 'b=1', '--dim', 's=1', '--dim', 't=33',
    '--dim', 'p=32'], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
}
const prompts = Array.from({ length: 8 }, (_, i) => ['--prompt-ids', Array.from({ length: 8 }, (_, j) => (7 * i + j) % 61).join()]).flat();
const args = (k, sequences) => [join(tmp, `k${k}`), ...prompts, '-n', '48', '--sequences', `${sequences}`, '--json'];
const rate = (text) => JSON.parse(text).tokens_per_second;
const pipeline = () => rate(spawnSync(tool('generate'), args(2, 4), { encoding: 'utf8', env }).stdout);
const one = () => rate(spawnSync(tool('generate'), args(1, 4), { encoding: 'utf8', env }).stdout);
const copy = () => new Promise((done) => {
  let text = '';
  const child = spawn(tool('generate'), args(1, 4), { env });
  child.stdout.on('data', (data) => { text += data; });
  child.on('close', () => done(rate(text)));
});
const two = async () => (await Promise.all([copy(), copy()])).reduce((a, b) => a + b);
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
const overOne = [], overTwo = [];
for (let i = 0; i < Number(runs); i++) {
  const [p, o, t] = [pipeline(), one(), await two()];
  overOne.push(p / o);
  overTwo.push(p / t);
  console.log(`pipeline ${p.toFixed(1)} tokens/s, one thread ${o.toFixed(1)}, two copies ${t.toFixed(1)}`);
}
console.log(`over one thread ${median(overOne).toFixed(2)}, over two copies ${median(overTwo).toFixed(2)}`);
