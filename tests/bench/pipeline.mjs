// How fast is a pipeline? node pipeline.mjs RUN SPLIT [K [ROUNDS [MODEL...]]]
//
// For each model of the cache, in turn and again for each round: the whole model with one thread, with
// K threads, the pipeline of K stages with a thread and a core each, and K copies of the whole model at once,
// which is the most that the machine can do. Prints medians over the rounds, as micro-batches a
// second and as ratios, and the slowest stage beside what was predicted. All rates are those between the first
// output and the last: a pipeline in use is filled once, not every few seconds. The cut is made with a profile of
// the whole model; PSPLIT_BENCH_COSTS=roofline does without, tune=N takes --autotune N. No test: nothing
// fails.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cache, library } from '../e2e/places.mjs';

const [runner, splitter, k = '2', rounds = '5', ...wanted] = process.argv.slice(2);
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const tmp = mkdtempSync(join(tmpdir(), 'psplit-bench-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const env = {
  ...process.env,
  PSPLIT_ONNXRUNTIME: process.env.PSPLIT_ONNXRUNTIME || library,
};

const names = wanted.length ? wanted : ['ppocr_rec', 'ppocr_det', 'retinaface',
  'moonshine_tiny_encoder', 'resnet50', 'densenet121', 'mobilenet_v3_small', 'vit_b_16'];
const how = process.env.PSPLIT_BENCH_COSTS ?? 'profile';
const seconds = Number(process.env.PSPLIT_BENCH_SECONDS ?? 3);
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

const start = (args) => new Promise((resolve, reject) => {
  const child = spawn(runner, [...args, '--json', '--random'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (data) => { text += data; });
  child.on('exit', (status) => (status === 0 ? resolve(JSON.parse(text)) : reject(new Error(`${status}`))));
});

const row = (...cells) =>
  console.log(cells.map((cell, i) => (i ? String(cell).padStart(13) : cell.padEnd(24))).join(''));
row('model', '1 thread/s', `${k} threads/s`, 'pipeline/s', `${k} copies/s`, 'pipe/1', `pipe/${k}t`,
  'pipe/copies', 'slowest ms', 'predicted ms');
const ratios = [[], [], []];
const errors = [];
for (const name of names) {
  const file = join(cache, `${name}.onnx`);
  if (!existsSync(file)) continue;
  const model = models[name];
  const dims = Object.entries(model.dims ?? {}).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
  const dirs = [1, Number(k)].map((n) => join(tmp, `${name}-${n}`));
  const costs = join(tmp, `${name}.json`);
  const profiled = spawnSync(runner, ['--profile', costs, file, ...dims], { encoding: 'utf8', env });
  if (profiled.status !== 0) throw new Error(profiled.stderr);
  for (const [i, n] of [[0, 1], [1, k]]) {
    const made = spawnSync(splitter,
      [file, '-k', `${n}`, '-o', dirs[i], '--quiet', ...dims,
        ...(how === 'roofline' ? [] : ['--costs', costs]),
        ...(i === 1 && how.startsWith('tune=') ? ['--autotune', how.slice(5)] : [])],
      { encoding: 'utf8', env });
    if (made.status !== 0) throw new Error(made.stderr);
  }
  // So many that one that takes longer by chance hardly counts.
  const [whole, parts] = dirs;
  const once = await start([whole, ...dims, '-m', '3']);
  const m = `${Math.max(20, Math.round(seconds * once.steady_throughput_per_s))}`;
  const kinds = {
    one: async () => (await start([whole, ...dims, '-m', m])).steady_throughput_per_s,
    threads: async () =>
      (await start([whole, ...dims, '-m', m, '--threads', k])).steady_throughput_per_s,
    pipeline: async () => {
      const report = await start([parts, ...dims, '-m', m, '--pin']);
      slowest.push(Math.max(...report.stages.map(({ busy_ns: ns }) => ns)) / 1e6);
      predicted = report.predicted_bottleneck_ns / 1e6;
      return report.steady_throughput_per_s;
    },
    copies: async () => {
      const runs = Array.from({ length: Number(k) }, () => start([whole, ...dims, '-m', m]));
      return (await Promise.all(runs)).reduce((sum, run) => sum + run.steady_throughput_per_s, 0);
    },
  };
  const got = { one: [], threads: [], pipeline: [], copies: [] };
  const slowest = [];
  let predicted;
  for (let round = 0; round < Number(rounds); round++) {
    for (const [kind, measure] of Object.entries(kinds)) got[kind].push(await measure());
  }
  errors.push(Math.abs(predicted / median(slowest) - 1));
  const ratio = (other) => median(got.pipeline.map((rate, i) => rate / got[other][i]));
  const three = ['one', 'threads', 'copies'].map(ratio);
  three.forEach((value, i) => ratios[i].push(value));
  row(name, ...Object.values(got).map((list) => median(list).toFixed(2)),
    ...three.map((value) => value.toFixed(2)), median(slowest).toFixed(1), predicted.toFixed(1));
  dirs.forEach((dir) => rmSync(dir, { recursive: true }));
}
row('median', '', '', '', '', ...ratios.map((list) => median(list).toFixed(2)), '',
  `off ${(100 * median(errors)).toFixed(1)} %`);
