// Splits one of the test models and holds the result against the model:
//
//   node split.mjs chain TOOL NAME K BOUNDARY   staged run == whole run (chain.mjs)
//   node split.mjs threads TOOL NAME            --threads 1 and 8 write the same bytes
//   node split.mjs checker TOOL NAME            onnx.checker takes every stage file
//   node split.mjs mutants TOOL NAME            chain.mjs sees a split that was spoilt
//   node split.mjs fixture TOOL NAME            as chain, for a small model of fixtures.mjs
import { spawnSync } from 'node:child_process';
import {
  cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { checkSplit, difference } from './chain.mjs';
import { fixtures, realModel, splitOptions, writeFixture } from './fixtures.mjs';
import { cachedModel } from './places.mjs';
import { Tap } from './tap.mjs';
import { readModel } from './wire.mjs';

const [what, tool, name, k, boundary = 'sendrecv'] = process.argv.slice(2);
const model = what === 'fixture' ? fixtures[name] : realModel(name);
const most = model.max_stages ?? Infinity;
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-e2e-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

let file;
let toldUnrunnable = false;
if (what === 'fixture') {
  file = join(tmp, `${name}.onnx`);
  writeFixture(name, file);
} else {
  file = cachedModel(model.base);
}

// Sizes are given for costing only: the runs use others, which a stage must take all the same.
function split(dir, stages, ...more) {
  return spawnSync(tool,
    [file, '-k', `${stages}`, '-o', dir, ...splitOptions(model, file), ...more],
    { encoding: 'utf8', timeout: 240000 });
}

// A split in four, or in as many stages as the model allows; undefined if that fails.
function someSplit(dir = join(tmp, 'split'), ...more) {
  const stages = Math.min(4, most);
  const result = split(dir, stages, ...more);
  const good = tap.ok(result.status === 0, `${name} is split in ${stages}`, ended(result));
  return good ? dir : undefined;
}

const setDifference = (a, b) => [...a.filter((each) => !b.includes(each)).map((each) => `${each} is too much`),
  ...b.filter((each) => !a.includes(each)).map((each) => `${each} is missing`)];

const ended = ({ status, signal, error, stderr }) =>
  `${error ?? `exit status ${status}, signal ${signal}`}\n${stderr}`;

// Same names, same bytes; a problem for each that is not.
function differing(a, b) {
  const names = readdirSync(a).sort();
  if (!isDeepStrictEqual(names, readdirSync(b).sort())) return [`files of ${b} are not ${names}`];
  return names.filter((each) => !readFileSync(join(a, each)).equals(readFileSync(join(b, each))));
}

// onnx-pipeline-merge proves it before its file appears; with Ifs inlined it is not the model as its file has it.
function mergedIsModel(title, dir, as, manifest) {
  const merged = join(tmp, `${as}.onnx`);
  const merge = spawnSync(join(dirname(tool), 'onnx-pipeline-merge'), [dir, '-o', merged, '--model', file],
    { encoding: 'utf8', timeout: 240000 });
  tap.ok(merge.status === 0 && /every stage is unchanged/.test(merge.stdout),
    `${title}: merged, it is the model`, ended(merge) + merge.stdout);
  if (merge.status === 0 && !manifest.inlined) {
    const proof = spawnSync(join(dirname(tool), 'onnx-pipeline-verify'), [merged, '--model', file],
      { encoding: 'utf8', timeout: 240000 });
    tap.ok(proof.status === 0, `${title}: merged, it is proved`, ended(proof));
  }
  for (const each of [merged, `${merged}.data`]) rmSync(each, { force: true });
}

async function chainOf(stages, kind) {
  const dir = join(tmp, `${stages}-${kind}`);
  const result = split(dir, stages, '--boundary', kind);
  if (stages > most) {
    tap.ok(result.status === (model.status ?? 7), `${name} cannot be split in ${stages}`, ended(result));
    tap.ok(/^error: .+/m.test(result.stderr) && !existsSync(dir), 'it says so and writes nothing');
    if (model.says) tap.ok(model.says.test(result.stderr), `it names ${model.says}`, result.stderr);
    return;
  }
  const title = `${name} is split in ${stages} with ${kind}`;
  if (!tap.ok(result.status === 0, title, ended(result))) return;
  if (model.notes) tap.ok(model.notes.test(result.stderr), `it notes ${model.notes}`, result.stderr);
  const manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
  tap.ok(manifest.stages.length === (model.segments ?? stages) && manifest.boundary === kind,
    'stages and boundary are those asked for');
  const proof = spawnSync(join(dirname(tool), 'onnx-pipeline-verify'), [dir, '--model', file],
    { encoding: 'utf8', timeout: 240000 });
  tap.ok(proof.status === 0, `${title}: proved`, ended(proof));
  mergedIsModel(title, dir, `${stages}-${kind}`, manifest);
  const inlined = (manifest.inlined ?? [])
    .map(({ node, branch, condition, assumed }) => [node, branch, condition, assumed]);
  if (model.inlined) tap.ok(isDeepStrictEqual(inlined, model.inlined), 'it says what is assumed', inlined);
  const copied = (manifest.duplicates ?? []).map(({ node }) => node);
  tap.none((model.never_copied ?? []).filter((each) => copied.includes(each)),
    'what must not be computed again is not');
  tap.none((model.never_sent ?? []).filter((each) =>
    manifest.transfers.some(({ tensor }) => tensor === each)), 'what is not a tensor is not sent');
  const crossing = manifest.transfers.map(({ dtype }) => dtype);
  if (model.dtypes) tap.ok(isDeepStrictEqual(crossing, model.dtypes), 'types cross', crossing);
  for (const [tensor, shape] of Object.entries(model.crossing ?? {})) {
    const found = manifest.transfers.filter((each) => each.tensor === tensor).map((each) => each.shape);
    tap.ok(isDeepStrictEqual(found, [shape]), `${tensor} crosses as ${JSON.stringify(shape)}`,
      JSON.stringify(found));
  }
  const hops = manifest.transfers.map(({ tensor, from, to }) => `${tensor} ${from}-${to}`);
  if (model.hops) tap.none(setDifference(hops, model.hops), 'tensors go the ways they should');
  for (const [weight, n] of Object.entries(model.held ?? {})) {
    const holders = manifest.stages.filter(({ file: each }) =>
      readModel(readFileSync(join(dir, each))).weights.some((found) => found.name === weight));
    tap.ok(holders.length === n, `${n} of ${stages} stages hold ${weight}`, `${holders.length} do`);
  }
  if (!model.unrunnable) return checkSplit(tap, dir, file, model.runs);
  if (!model.ranBy && !toldUnrunnable) tap.skip(`${name} runs`, model.unrunnable); // once, for all splits
  toldUnrunnable = true;
}

const chain = () => chainOf(Number(k), boundary);

async function fixture() {
  for (const stages of model.stages ?? [2, 3]) {
    for (const kind of ['sendrecv', 'io']) await chainOf(stages, kind);
  }
}

function threads() {
  const one = someSplit(join(tmp, '1'), '--threads', '1');
  const eight = one && someSplit(join(tmp, '8'), '--threads', '8');
  if (eight) tap.none(differing(one, eight), 'one thread and eight write the same bytes');
}

function checker() {
  const dir = someSplit();
  if (!dir) return;
  const script = fileURLToPath(new URL('checker.py', import.meta.url));
  for (const stage of readdirSync(dir).filter((each) => each.endsWith('.onnx')).sort()) {
    // Debian's interpreter by its path: another python3 on PATH does not see Debian's onnx.
    const check = spawnSync('/usr/bin/python3', [script, join(dir, stage)], { encoding: 'utf8' });
    const title = `onnx.checker takes ${stage}`;
    if (check.status === 77) tap.skip(title, check.stdout.trim());
    else tap.ok(check.status === 0, title, ended(check));
  }
}

// One bit of the largest weight of a file: the middle of the file is inside it.
function flipWeight(dir) {
  const stages = readdirSync(dir).filter((each) => /[.](onnx|data)$/.test(each));
  const largest = stages.map((each) => [readFileSync(join(dir, each)), each])
    .sort(([a], [b]) => b.length - a.length)[0];
  largest[0][largest[0].length >> 1] ^= 0x40;
  writeFileSync(join(dir, largest[1]), largest[0]);
}

const received = (manifest) =>
  manifest.stages.flatMap(({ inputs }) => inputs).find(({ from }) => from !== 'model');
const mutations = {
  'a flipped bit in a weight': flipWeight,
  'a missing stage file': (dir) => rmSync(join(dir, 'stage1.onnx')),
  'a wrong node count': (dir, m) => { m.stages[0].nodes += 1; },
  'a duplicate that is not told': (dir, m) => { m.stages[1].duplicated_nodes += 1; },
  'a transfer that is not listed': (dir, m) => { m.transfers.pop(); },
  'a tag used twice': (dir, m) => { m.transfers.push(m.transfers[0]); },
  'a stage that receives from a later one': (dir, m) => { received(m).from = 3; },
  'a renamed tensor': (dir, m) => { received(m).tensor += 'x'; },
  'an input fed with the wrong name': (dir, m) => { received(m).name += 'x'; },
  'an output left out': (dir, m) => { m.stages.at(-1).outputs.pop(); },
  'stages in another order': (dir, m) => { m.stages.reverse(); },
  'a field that the schema does not know': (dir, m) => { m.extra = 1; },
};

async function mutants() {
  const dir = someSplit();
  if (!dir) return;
  for (const [title, mutate] of Object.entries({ 'nothing spoilt': () => {}, ...mutations })) {
    const copy = join(tmp, 'copy');
    cpSync(dir, copy, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(copy, 'pipeline.json')));
    mutate(copy, manifest);
    writeFileSync(join(copy, 'pipeline.json'), JSON.stringify(manifest));
    const quiet = new Tap(() => {});
    await checkSplit(quiet, copy, file, model.runs);
    tap.ok((quiet.failed > 0) === title in mutations, `seen: ${title}`);
    rmSync(copy, { recursive: true });
  }
  comparesBits();
}

function comparesBits() {
  const floats = (bits, dims = [2]) =>
    ({ type: 'float32', dims, data: new Float32Array(Uint32Array.from(bits).buffer) });
  const one = floats([0x3f800000, 0x7fc00000]);
  tap.ok(!difference(one, floats([0x3f800000, 0x7fc00000])), 'equal bits are equal, NaN too');
  for (const [title, other] of Object.entries({
    'the last bit': floats([0x3f800001, 0x7fc00000]),
    'the bits of a NaN': floats([0x3f800000, 0x7fc00001]),
    dims: floats([0x3f800000, 0x7fc00000], [2, 1]),
    dtype: { ...one, type: 'int32' },
    'a missing output': undefined,
  })) tap.ok(difference(one, other), `seen: ${title}`);
  tap.ok(difference(floats([0, 0]), floats([0, 0x80000000])), 'seen: the sign of zero');
}

await { chain, fixture, threads, checker, mutants }[what]();
tap.done();
