// Sizes that only a run can tell are in the costs that a profile writes, and count in the plan:
//
//   node sizes.mjs RUN SPLIT INSPECT [NAME]
//
// Without costs nothing is promised. With those of a profile, times, bytes sent and memory are those of the
// run, and the plan promises a speed-up; with other sizes on the command line, it says that they differ and
// goes by these. NAME: a real model of the cache instead of small ones.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { cachedModel, library } from '../e2e/places.mjs';
import { Tap } from '../e2e/tap.mjs';
import { modelBytes } from '../support/text_model.mjs';

const Ajv = createRequire(new URL('../e2e/', import.meta.url))('ajv/dist/2020.js');
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const [runner, splitter, inspector] = process.argv.slice(2, 5).map((path) => resolve(path));
const name = process.argv[5];
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-sizes-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const run = (tool, ...args) => spawnSync(tool, args,
  { cwd: tmp, encoding: 'utf8', maxBuffer: 1 << 30, timeout: 500000, env: { ...process.env, TMPDIR: tmp } });
const valid = new Ajv({ strict: false }).compile(
  JSON.parse(readFileSync(new URL('../../docs/costs.schema.json', import.meta.url))));

function profile(file, costs, ...args) {
  const done = run(runner, '--profile', costs, file, '--onnxruntime', library, '--optimization', '1', ...args);
  if (!tap.ok(done.status === 0, `${file} is profiled`, done.stderr)) return {};
  const table = JSON.parse(readFileSync(join(tmp, costs)));
  tap.ok(valid(table), 'the costs file fits its schema', JSON.stringify(valid.errors));
  return table;
}

function plan(file, ...args) {
  const done = run(splitter, file, '--plan-only', '--json', ...args);
  tap.ok(done.status === 0, `${file} is planned`, done.stderr);
  return { stderr: done.stderr, ...(done.status === 0 ? JSON.parse(done.stdout) : { plan: {}, stages: [] }) };
}

const open = ({ plan: { speed_up: speedUp, data_dependent: data, headline } }) =>
  speedUp === null && data && headline.includes('no speed-up is stated');
const told = ({ plan: { speed_up: speedUp, data_dependent: data, headline } }) =>
  speedUp > 0 && !data && headline.includes('expected speed-up');
// What inspect says in each format: no view may leave out what another says.
const views = (file, words, ...args) => ['text', 'json', 'html'].filter((format) =>
  !run(inspector, file, '--level', 'stages', '--format', format, ...args).stdout.includes(words));
const memory = ({ stages }) => Math.max(...stages.map(({ memory_bytes: bytes }) => bytes));

if (name) {
  const file = cachedModel(name);
  const dims = Object.entries(models[name].dims).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
  const blind = plan(file, '-k', '4', '--time-limit', '5', ...dims);
  tap.ok(open(blind), `${name} promises nothing before it has run`, JSON.stringify(blind.plan));
  profile(file, 'c.json', '-m', '1', ...dims);
  const known = plan(file, '-k', '4', '--time-limit', '5', '--costs', 'c.json');
  tap.ok(told(known) && known.plan.speed_up > 3 && known.plan.speed_up <= 4,
    `${name} has a promise once it has`, JSON.stringify(known.plan));
  tap.ok(memory(known) > 1.1 * memory(blind), 'its memory is that of the run', `${memory(known)} ${memory(blind)}`);
  tap.ok(known.transfers.every(({ bytes }) => bytes > 0), 'the bytes of all that crosses are known');
  tap.done();
  process.exit();
}

// Rows that NonZero finds; one number for all weights, so that all rows of random inputs are found.
const chain = (declared) => `<ir_version: 8, opset_import: ["": 17]>
  g (float[rows,64] x) => (float[1,${declared},64] y) <float[64,64] a = random(1), float[64,64] b = random(2),
      int64[1] row = {1}, int64 zero = {0}> {
    p = MatMul (x, a)
    first = ReduceMax <axes = [1], keepdims = 0> (x)
    where = NonZero (first)
    found = Gather (p, where)
    [m1] m = MatMul (found, b)
    [m2] n = MatMul (m, a)
    [m3] y = MatMul (n, b)
  }`;
for (const [title, declared] of [['a size with a name', 'found'], ['a size without a name', '']]) {
  const file = `${title.replaceAll(' ', '-')}.onnx`;
  writeFileSync(join(tmp, file), modelBytes(chain(declared).replace('[1,,64]', '[1,"",64]')
    .replace('float[1,"",64] y', declared ? `float[1,${declared},64] y` : 'y')));
  const blind = plan(file, '-k', '2', '--dim', 'rows=500');
  tap.ok(open(blind), `${title}: nothing is promised before it has run`, JSON.stringify(blind.plan));
  const table = profile(file, 'c.json', '-m', '2', '--dim', 'rows=500');
  tap.ok(table.dims?.rows === 500 && (declared ? table.dims.found === 500 : table.values?.found?.[1] === 500),
    `${title}: the costs say what the run found`, JSON.stringify({ ...table, costs: 0 }));
  const known = plan(file, '-k', '2', '--costs', 'c.json');
  tap.ok(told(known), `${title}: there is a promise once it has`, JSON.stringify(known.plan));
  tap.ok(/of a run with rows = 500/.test(known.plan.headline), 'it says for which sizes', known.plan.headline);
  tap.none(views(file, 'rows = 500', '-k', '2', '--costs', 'c.json'), 'so does every view');
  tap.ok(known.transfers.every(({ bytes }) => bytes >= 500) && !known.stderr.replace(/^.*machine was too busy.*\n/m, ''),
    'all bytes are known', `${JSON.stringify(known.transfers)}${known.stderr}`);
  // The tensors of 500 rows.
  tap.ok(memory(known) >= 500 * 64 * 4 && memory(blind) < memory(known), 'and the memory', `${memory(known)}`);
  const other = plan(file, '-k', '2', '--costs', 'c.json', '--dim', 'rows=400');
  tap.ok(open(other) && /measured with --dim rows=500/.test(other.stderr),
    'costs of other sizes are warned of, and promise nothing', other.stderr + JSON.stringify(other.plan));
}
writeFileSync(join(tmp, 'bad.json'), JSON.stringify({
  format: 'onnx-pipeline-split-costs', version: 1, values: { y: [1, -1] }, costs: [{ nodes: ['m1'], ns: 1 }] }));
const bad = run(splitter, 'a-size-with-a-name.onnx', '-k', '1', '--plan-only', '--costs', 'bad.json');
tap.ok(bad.status === 4 && /bad\.json: values/.test(bad.stderr), 'a size below 0 is an error', bad.stderr);
tap.done();
