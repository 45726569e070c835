// Splits one of the test models and holds the result against the model:
//
//   node split.mjs chain TOOL NAME K BOUNDARY   staged run == whole run (chain.mjs)
//   node split.mjs threads TOOL NAME            --threads 1 and 8 write the same bytes
//   node split.mjs checker TOOL NAME            onnx.checker takes every stage file
//   node split.mjs mutants TOOL NAME            chain.mjs sees a split that was spoilt
import { spawnSync } from 'node:child_process';
import {
  cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { Tap, skipAll } from './tap.mjs';

const table = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const [what, tool, name, wanted, boundary = 'sendrecv'] = process.argv.slice(2);
const model = table.models[name];
const k = wanted ?? String(Math.min(4, model.max_stages ?? 4));
const cache = process.env.PSPLIT_MODEL_CACHE ||
  fileURLToPath(new URL('../../.cache/models', import.meta.url));
const file = join(cache, `${name}.onnx`);
if (!existsSync(file)) skipAll(`the model cache has no ${name}.onnx; tests/models/fetch.sh fills it`);

const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-e2e-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

// Sizes are given for costing only: the runs use others, which a stage must take all the same.
function split(dir, ...more) {
  const dims = Object.entries(model.dims ?? {}).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
  return spawnSync(tool, [file, '-k', k, '-o', dir, '--boundary', boundary, ...dims, ...more],
    { encoding: 'utf8', timeout: 240000 });
}

const ended = ({ status, signal, error, stderr }) =>
  `${error ?? `exit status ${status}, signal ${signal}`}\n${stderr}`;

// Same names, same bytes; a problem for each that is not.
function differing(a, b) {
  const names = readdirSync(a).sort();
  if (!isDeepStrictEqual(names, readdirSync(b).sort())) return [`files of ${b} are not ${names}`];
  return names.filter((each) => !readFileSync(join(a, each)).equals(readFileSync(join(b, each))));
}

async function chain() {
  const dir = join(tmp, 'split');
  const result = split(dir);
  if (Number(k) > (model.max_stages ?? Infinity)) {
    tap.ok(result.status === 7, `${name} has too few nodes for ${k} stages`, ended(result));
    tap.ok(/^error: .+/m.test(result.stderr) && !existsSync(dir), 'it says so and writes nothing');
    return;
  }
  if (!tap.ok(result.status === 0, `${name} is split in ${k}`, ended(result))) return;
  const manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
  tap.ok(manifest.stages.length === Number(k) && manifest.boundary === boundary,
    'stages and boundary are those asked for');
  const { checkSplit } = await import('./chain.mjs');
  await checkSplit(tap, dir, file, name);
}

function threads() {
  const dirs = ['1', '8'].map((n) => [n, join(tmp, n)]);
  const results = dirs.map(([n, dir]) => split(dir, '--threads', n));
  for (const result of results) {
    if (!tap.ok(result.status === 0, `${name} is split in ${k}`, ended(result))) return;
  }
  tap.none(differing(dirs[0][1], dirs[1][1]), 'one thread and eight write the same bytes');
}

function checker() {
  const dir = join(tmp, 'split');
  const result = split(dir);
  if (!tap.ok(result.status === 0, `${name} is split in ${k}`, ended(result))) return;
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
  const dir = join(tmp, 'split');
  const result = split(dir);
  if (!tap.ok(result.status === 0, `${name} is split in ${k}`, ended(result))) return;
  const { checkSplit } = await import('./chain.mjs');
  for (const [title, mutate] of Object.entries({ 'nothing spoilt': () => {}, ...mutations })) {
    const copy = join(tmp, 'copy');
    cpSync(dir, copy, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(copy, 'pipeline.json')));
    mutate(copy, manifest);
    writeFileSync(join(copy, 'pipeline.json'), JSON.stringify(manifest));
    const quiet = new Tap(() => {});
    await checkSplit(quiet, copy, file, name);
    tap.ok((quiet.failed > 0) === title in mutations, `seen: ${title}`);
    rmSync(copy, { recursive: true });
  }
}

await { chain, threads, checker, mutants }[what]();
tap.done();
