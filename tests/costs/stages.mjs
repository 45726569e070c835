// Stages of a split under the profiler:
//
//   node stages.mjs RUN SPLIT
//
// What a cut lets ONNX Runtime fuse is in the profile of the stages, and not in the one of the whole model: the
// embedding of whisper's decoder is dequantised for two readers, and becomes a part of the product's kernel where
// that has a stage of its own. --autotune learns it in one round.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedModel } from '../e2e/places.mjs';
import { Tap } from '../e2e/tap.mjs';
import { env as runtime } from '../runtime/runner.mjs';

const require = createRequire(new URL('../e2e/', import.meta.url));
const Ajv = require('ajv/dist/2020.js');
const [runner, splitter] = process.argv.slice(2);
const file = cachedModel('whisper_tiny_decoder');
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-stages-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const sizes = { batch_size: 1, decoder_sequence_length: 1, 'encoder_sequence_length / 2': 1500,
  encoder_sequence_length_out: 1500, past_decoder_sequence_length: 32 };
const dims = Object.entries(sizes).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
const run = (tool, args) => spawnSync(tool, args, { encoding: 'utf8', timeout: 120000, env: { ...runtime, TMPDIR: tmp } });
const out = join(tmp, 'out'), costs = join(tmp, 'costs.json');
const split = [file, '-k', '2', '-o', out, '--inline-if', 'optimum::if=then', ...dims];

const tuned = run(splitter, [...split, '--autotune', '2']);
const ns = (value, unit) => Number(value) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[unit];
const rounds = [...tuned.stdout.matchAll(/^ +\d+ +[\d.]+ % +([\d.]+) ([nmu]?s) +(.*)$/gm)].map(([, n, unit, stages]) => (
  { predicted: ns(n, unit), measured: Math.max(...stages.match(/[\d.]+ [nmu]?s/g).map((text) => ns(...text.split(' ')))) }));
if (tap.ok(tuned.status === 0 && rounds.length > 0, 'it is tuned', tuned.stdout + tuned.stderr)) {
  const [first, second] = rounds;
  tap.ok(first.predicted > 2 * first.measured, 'a profile of the whole model takes the embedding for dequantised',
    JSON.stringify(first));
  /* Where the first cut is balanced by chance there is no second round, but the plan goes by what its stages took. */
  const [, n, unit] = tuned.stdout.match(/^bottleneck ([\d.]+) ([nmu]?s)/m) ?? [];
  const predicted = second?.predicted ?? ns(n, unit), { measured } = second ?? first;
  tap.ok(predicted < first.predicted / 2 && predicted < 2 * measured, 'those of the stages do not', tuned.stdout);
}

const profiled = run(runner, ['--profile', costs, out, '-m', '5', ...dims]);
if (tap.ok(profiled.status === 0, 'stages are profiled', profiled.stderr)) {
  const table = JSON.parse(readFileSync(costs));
  const valid = new Ajv({ strict: false }).compile(
    JSON.parse(readFileSync(new URL('../../docs/costs.schema.json', import.meta.url))));
  tap.ok(valid(table), 'the costs file fits its schema', JSON.stringify(valid.errors));
  const sum = table.costs.reduce((total, { ns }) => total + ns, 0);
  tap.ok(Math.abs(sum - table.total_ns) <= table.costs.length + 0.02 * sum, 'its times add up to those of the stages',
    `${sum}, not ${table.total_ns}`);
  tap.ok(table.dims.past_decoder_sequence_length === 32, 'it says for which sizes', JSON.stringify(table.dims));
  const made = table.costs.flatMap(({ outputs = [] }) => outputs);
  tap.ok(made.length === new Set(made).size && table.costs.every(({ nodes }) => !nodes), 'nodes are told once, by what they make');
  const planned = run(splitter, [...split, '--plan-only', '--json', '--costs', costs]);
  const { plan = {} } = planned.status === 0 ? JSON.parse(planned.stdout) : {};
  tap.ok(plan.cost_source === 'measured' && plan.measured_frac === 1 && !/rows/.test(planned.stderr),
    'a plan takes them', planned.stderr);
}
const third = join(tmp, 'third');
run(splitter, [file, '-k', '3', '-o', third, '--inline-if', 'optimum::if=then', ...dims]);
const told = run(runner, ['--profile', join(tmp, 'third.json'), third, '-m', '2', ...dims]);
const rows = told.status === 0 ? JSON.parse(readFileSync(join(tmp, 'third.json'))).costs : [];
tap.ok(rows.length > 300 && !rows.some(({ outputs = [] }) => outputs.some((name) => /\.send\d+$/.test(name))),
  'what stands between stages has no row', told.stderr);
tap.ok(!readdirSync(tmp).some((name) => /^psplit-profile/.test(name)), 'nothing is left', readdirSync(tmp).join(' '));

for (const [args, why] of [
  [['--profile', join(out, 'pipeline.json'), out], /pipeline\.json.*read/],
  [['--profile', costs, out, '--stream'], /takes no .*--stream/],
  [['--profile', costs, out, '--dim', 'batch=1'], /no dimension batch/],
  [['--profile', costs, tmp], /pipeline\.json/],
]) {
  const bad = run(runner, args);
  tap.ok(bad.status !== 0 && why.test(bad.stderr) && bad.stderr.trim().split('\n').length === 1,
    `refused: ${args.slice(2).join(' ').replaceAll(tmp, '')}`, `${bad.status} ${bad.stderr}`);
}
tap.done();
