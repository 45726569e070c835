// How good are predicted costs? node costs.mjs BUILD [K [ROUNDS [MODEL...]]]
//
// For each model of the cache: a cut in K stages by the roofline of this machine, each stage run alone with one
// thread (the stages take turns; the least of ROUNDS means over ten micro-batches). Beside the share of the
// time that each stage takes stands what was predicted: by the roofline, and by a profile of the whole model
// (onnx-pipeline-run --profile). Then the same per class of nodes, measured by another profile.
// The roofline was fitted on the first nine models, and chosen between fits by those behind them; errors of all
// others stand in a column of their own.
// A MODEL is a name in models.json, one that export.py makes, or FILE.onnx[:DIM=N...]. No test: nothing fails.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cache, library } from '../e2e/places.mjs';

const [build, k = '4', rounds = '7', ...wanted] = process.argv.slice(2);
const tool = (name) => join(build, 'tools', `onnx-pipeline-${name}`);
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const tmp = mkdtempSync(join(tmpdir(), 'psplit-costs-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const env = {
  ...process.env,
  PSPLIT_ONNXRUNTIME: process.env.PSPLIT_ONNXRUNTIME || library,
};
const run = (name, args) => execFileSync(tool(name), args,
  { env, encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'inherit'] });

const defaults = ['ppocr_det', 'ppocr_rec', 'ppocr_cls', 'retinaface', 'moonshine_tiny_encoder',
  'resnet50', 'densenet121', 'mobilenet_v3_small', 'vit_b_16'];
const chosenBy = ['convnext_tiny', 'swin_t', 'efficientnet_b0', 'googlenet', 'shufflenet_v2_x1_0', 'squeezenet1_1',
  'regnet_y_400mf', 'resnext50_32x4d', 'mobilenet_v2', 'mnasnet1_0', 'blazeface_back', 'moonshine_base_encoder',
  'whisper_tiny_encoder'];
const keptOut = ['resnet18', 'mobilenet_v3_large', 'regnet_x_800mf', 'efficientnet_b1', 'shufflenet_v2_x0_5',
  'mnasnet0_5'];
const find = (text) => {
  if (models[text]) {
    const { dims = {} } = models[text];
    return { file: join(cache, `${text}.onnx`), dims: Object.entries(dims).map((each) => each.join('=')) };
  }
  if (existsSync(join(cache, `${text}.onnx`))) return { file: join(cache, `${text}.onnx`), dims: ['batch=1'] };
  const [file, ...dims] = text.split(':');
  return { file, dims };
};

const median = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};
const shares = (list) => {
  const sum = list.reduce((a, b) => a + b, 0);
  return list.map((each) => each / sum);
};
const errors = (predicted, measured) => predicted.map((p, i) => Math.abs(p / measured[i] - 1));
const summary = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  return list.length ? `${percent(median(list))}; 90 % below ${percent(sorted[Math.ceil(0.9 * list.length) - 1])}` : '';
};
const percent = (x) => `${(100 * x).toFixed(1)}`;
const row = (...cells) =>
  console.log(`| ${cells.join(' | ')} |`);

const operators = (file, args) =>
  JSON.parse(run('inspect',
    [file, '--devices', 'cpu', '--level', 'operators', '--format', 'json', '--quiet', ...args])).operators;
const sumBy = (nodes, key) => {
  const sums = {};
  for (const node of nodes) sums[node[key]] = (sums[node[key]] ?? 0) + node.cost_ns;
  return sums;
};

const all = { fitted: [], keptOut: [], measured: [] };
const classes = {};
row('model', 'ms', 'measured shares %', 'error by roofline %', 'held out: error by roofline %',
  'error with --costs %', 'total, roofline', 'total, --costs');
row('---', '---', '---', '---', '---', '---', '---', '---');
for (const text of wanted.length ? wanted : [...defaults, ...chosenBy, ...keptOut]) {
  const { file, dims: pairs } = find(text);
  if (!existsSync(file)) continue;
  const dims = pairs.flatMap((pair) => ['--dim', pair]);
  const costs = ['a', 'b'].map((letter) => {
    const path = join(tmp, `${letter}.json`);
    run('run', ['--profile', path, file, ...dims, '-m', String(3 * Number(rounds))]);
    return path;
  });
  const dir = join(tmp, 'stages');
  run('split', [file, '--devices', 'cpu', '-k', k, '-o', dir, '--force', '--quiet', '--slack', '0', ...dims]);
  const busy = Array.from({ length: Number(k) }, () => Infinity);
  for (let round = 0; round < Number(rounds); round++) {
    const report = JSON.parse(run('run',
      [dir, '--random', '--json', '--one-at-a-time', '-m', '10', '--warmup', '3', ...dims]));
    report.stages.forEach((stage, s) => { busy[s] = Math.min(busy[s], stage.busy_ns); });
  }
  const roofline = operators(file, ['-k', k, '--slack', '0', ...dims]);
  const [byCosts, again] = costs.map((path) => operators(file, ['--costs', path, ...dims]));
  const stageOf = (nodes) =>
    Object.values(sumBy(nodes.map((node, n) => ({ ...node, stage: roofline[n].stage })), 'stage'));
  const measured = shares(busy);
  const of = [roofline, byCosts].map((nodes) => errors(shares(stageOf(nodes)), measured));
  const fitted = defaults.includes(text) || chosenBy.includes(text);
  all[fitted ? 'fitted' : 'keptOut'].push(...of[0]);
  all.measured.push(...of[1]);
  const total = busy.reduce((a, b) => a + b, 0);
  const predicted = [roofline, byCosts].map((nodes) => stageOf(nodes).reduce((a, b) => a + b, 0));
  const texts = of.map((list) => list.map(percent).join(' '));
  row(basename(file, '.onnx'), (total / 1e6).toFixed(2), measured.map(percent).join(' '),
    fitted ? texts[0] : '', fitted ? '' : texts[0], texts[1],
    ...predicted.map((ns) => (ns / total).toFixed(2)));
  const sums = [again, roofline, byCosts].map((nodes) => sumBy(nodes, 'class'));
  const totals = sums.map((each) => Object.values(each).reduce((a, b) => a + b, 0));
  for (const name of Object.keys(sums[0])) {
    const [m, ...p] = sums.map((each, i) => (each[name] ?? 0) / totals[i]);
    if (m < 0.01) continue;
    const entry = (classes[name] ??= { share: [], roofline: [], measured: [] });
    entry.share.push(m);
    entry.roofline.push(Math.abs(p[0] / m - 1));
    entry.measured.push(Math.abs(p[1] / m - 1));
  }
}
row(`median of ${all.measured.length} stages`, '', '', summary(all.fitted), summary(all.keptOut),
  summary(all.measured), '', '');
console.log();
row('class', 'models with 1 % or more', 'median share %', 'error by roofline %', 'error with --costs %');
row('---', '---', '---', '---', '---');
for (const [name, { share, roofline, measured }] of Object.entries(classes)) {
  row(name, share.length, ...[share, roofline, measured].map((list) => percent(median(list))));
}
