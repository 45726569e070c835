// A profile of a real model is costs that fit it:
//
//   node profile.mjs RUN SPLIT INSPECT NAME
//
// At levels 0 and 99: every node that costs something is spoken of, times add up to the whole, the plan
// says that its costs are measured. ONNX Runtime's own profile and memory statistics are read too.
// --autotune writes the best of the rounds it prints.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeFeeds } from '../e2e/feeds.mjs';
import { cachedModel, library } from '../e2e/places.mjs';
import { Tap } from '../e2e/tap.mjs';

const require = createRequire(new URL('../e2e/', import.meta.url));
const ort = require('onnxruntime-node');
const Ajv = require('ajv/dist/2020.js');
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const [runner, splitter, inspector, name] = process.argv.slice(2);
const model = models[name];
const file = cachedModel(name);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-costs-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const dims = Object.entries(model.dims ?? {}).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
const run = (tool, args) => spawnSync(tool, args,
  { encoding: 'utf8', maxBuffer: 1 << 30, timeout: 120000, env: { ...process.env, TMPDIR: tmp } });

const valid = new Ajv({ strict: false }).compile(
  JSON.parse(readFileSync(new URL('../../docs/costs.schema.json', import.meta.url))));
const stages = Math.min(2, model.max_stages ?? 2);
const plan = (costs) => {
  const made = run(splitter, [file, '-k', `${stages}`, '--plan-only', '--json', '--costs', costs, ...dims]);
  tap.ok(made.status === 0, `${name} is planned by ${costs.split('/').pop()}`, made.stderr);
  return made.status === 0 ? { ...JSON.parse(made.stdout).plan, stderr: made.stderr } : {};
};

for (const level of ['0', '99']) {
  const costs = join(tmp, `level-${level}.json`);
  const profile = run(runner, ['--profile', costs, file, '--optimization', level, '-m', '3',
    '--onnxruntime', library, ...dims]);
  if (!tap.ok(profile.status === 0, `${name} is profiled at level ${level}`, profile.stderr)) continue;
  const table = JSON.parse(readFileSync(costs));
  tap.ok(valid(table), 'the costs file fits its schema', JSON.stringify(valid.errors));
  tap.ok(table.spread_frac >= 0 && /longer than the fastest/.test(profile.stdout + profile.stderr),
    'it says how much its runs differed', profile.stdout + profile.stderr);
  const sum = table.costs.reduce((total, { ns }) => total + ns, 0);
  tap.ok(Math.abs(sum - table.total_ns) <= table.costs.length, 'its times add up to a run',
    `${sum}, not ${table.total_ns}`);
  const images = ['retinaface', 'mobilenet_v3_small'].includes(name) && process.arch === 'x64';
  const blocked = table.costs.filter((row) => row.blocked);
  tap.ok(!images || (table.costs.every((row) => 'blocked' in row) && (blocked.length > 5) === (level === '99') &&
    blocked.every(({ kernel }) => !kernel.startsWith('Reorder'))),
    'it tells which kernels worked on blocks of channels', JSON.stringify(blocked.slice(0, 3)));
  const { cost_source: source, measured_frac: share, total_compute_ns: total, stderr } = plan(costs);
  tap.ok(source === 'measured' && share === 1 && Math.abs(total - sum) <= 0.01 * sum,
    'the plan says so', `${source} ${share} ${total} ${sum}`);
  tap.ok(!/rows|measured with/.test(stderr), 'all rows are about nodes, of these sizes', stderr);
  const all = JSON.parse(run(inspector,
    [file, '--level', 'operators', '--format', 'json', '--quiet', ...dims]).stdout).operators;
  const spoken = new Set(table.costs.flatMap(({ nodes = [] }) => nodes));
  const heavy = all.filter(({ class: kind, name: node, dead, constant }) => node && !dead && !constant &&
    ['conv', 'depthwise', 'matmul', 'rnn', 'attention'].includes(kind) && !spoken.has(node));
  const unnamed = table.costs.some(({ outputs }) => outputs);
  tap.ok(unnamed || heavy.length === 0, 'no convolution or product is missing',
    heavy.map(({ name: node }) => node).join(' '));
}

const [[dim, size] = []] = Object.entries(model.dims ?? {});
if (dim) {
  const costs = join(tmp, 'level-99.json');
  tap.ok(JSON.parse(readFileSync(costs)).dims[dim] === size, 'the costs file says for which sizes');
  const other = run(splitter, [file, '-k', '1', '--plan-only', '--costs', costs, ...dims,
    '--dim', `${dim}=${size + 1}`]);
  tap.ok(other.status === 0 && other.stderr.includes(`was measured with --dim ${dim}=${size}`),
    'costs of other sizes are warned of', other.stderr);
}
const over = run(runner, ['--profile', file, file, '-m', '1', '--onnxruntime', library, ...dims]);
tap.ok(over.status === 3 && /is a file of the model itself/.test(over.stderr),
  'a profile does not go over the model', over.stderr);

if (model.dims?.batch) {
  const none = run(runner, ['--profile', join(tmp, 'none.json'), file, '-m', '1', '--onnxruntime', library, ...dims, '--dim', 'batch=0']);
  // Some models cannot be run so at all, and ONNX Runtime says why.
  const refused = none.status === 2 && /is empty: there is nothing to measure/.test(none.stderr);
  const failed = none.status === 4 && /^error: /m.test(none.stderr);
  tap.ok((refused || failed) && !existsSync(join(tmp, 'none.json')), 'an empty batch has no costs', none.stderr);
}

const prefix = join(tmp, 'ort');
const statistics = join(tmp, 'memory.csv');
const session = await ort.InferenceSession.create(file, {
  graphOptimizationLevel: 'all', intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
  enableProfiling: true, profileFilePrefix: prefix, enableMemPattern: false,
  extra: { session: { collect_node_memory_stats_to_file: statistics } },
});
const feeds = makeFeeds(session.inputMetadata, { ...model.runs[0], dims: { ...model.dims, ...model.runs[0].dims } });
for (let i = 0; i < 3; i++) await session.run(feeds);
session.endProfiling();
await session.release();
const profile = join(tmp, readdirSync(tmp).find((each) => each.startsWith('ort')));
const byProfile = plan(profile);
tap.ok(byProfile.cost_source === 'measured' && byProfile.measured_frac > 0.9,
  'a profile of ONNX Runtime speaks of nearly all of the time', `${byProfile.measured_frac}`);
const byMemory = plan(statistics);
tap.ok(byMemory.cost_source === 'analytic', 'memory statistics leave times alone');

const noisy = join(tmp, 'noisy.json'), calm = join(tmp, 'calm.json');
const measured = JSON.parse(readFileSync(join(tmp, 'level-99.json')));
writeFileSync(noisy, JSON.stringify({ ...measured, spread_frac: 0.4 }));
writeFileSync(calm, JSON.stringify({ ...measured, spread_frac: 0.1 }));
tap.ok(/40 % longer than the fastest/.test(plan(noisy).stderr) && !/longer/.test(plan(calm).stderr),
  'costs of a busy machine are warned of');

writeFileSync(join(tmp, 'other.json'), JSON.stringify({
  format: 'onnx-pipeline-split-costs', version: 1, costs: [{ nodes: ['no such node'], ns: 1 }],
}));
const other = run(splitter, [file, '-k', '1', '--plan-only', '--costs', join(tmp, 'other.json')]);
tap.ok(other.status === 4 && /other\.json: none of its 1 rows/.test(other.stderr),
  'costs of another model are an error', other.stderr);

const out = join(tmp, 'out');
const tuned = run(splitter, [file, '-k', `${stages}`, '-o', out, '--autotune', '3', '--verify',
  '--onnxruntime', library, ...dims]);
if (tap.ok(tuned.status === 0, `${name} is tuned`, tuned.stderr)) {
  const rounds = tuned.stdout.split('\n').filter((line) => /^ +\d+ +[\d.]+ %/.test(line));
  tap.ok(rounds.length >= 1 && rounds.length <= 3, 'each round has a line', tuned.stdout);
  tap.ok(readdirSync(tmp).every((each) => !each.startsWith('out.')), 'the rounds leave nothing behind');
  tap.ok(JSON.parse(readFileSync(join(out, 'pipeline.json'))).plan.cost_source === 'measured',
    'its costs are measured');
}
const nowhere = run(splitter, [file, '-k', '1', '-o', join(tmp, 'no'), '--autotune', '1',
  '--onnxruntime', join(tmp, 'none.so'), ...dims]);
tap.ok(nowhere.status === 3 && /ONNX Runtime cannot be opened/.test(nowhere.stderr) &&
  !existsSync(join(tmp, 'no')), 'without ONNX Runtime it says how to get it', nowhere.stderr);
tap.ok(!readdirSync(tmp).some((each) => each.startsWith('psplit-profile')),
  'profiles leave nothing behind', readdirSync(tmp).join(' '));
tap.done();
