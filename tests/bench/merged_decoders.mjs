// Merged decoders of optimum, each branch of their If inlined, in 2, 3 and 4 stages: the bottleneck, its bound, whether
// both are equal, and whether the stages give the bits of the whole, whose If takes that branch:
//
//   node merged_decoders.mjs BUILD [MODEL...]
//
// Models are those of ../models/models.json whose names end in _decoder, from the model cache
// (`sh tests/models/fetch.sh MODEL` brings one). Exit status 1 where a bit differs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { difference, open, runChain } from '../e2e/chain.mjs';
import { makeFeeds } from '../e2e/feeds.mjs';
import { cache } from '../e2e/places.mjs';

const [build, ...only] = process.argv.slice(2);
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const tmp = mkdtempSync(join(tmpdir(), 'psplit-merged-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const branches = [['else', 0], ['then', 1]]; // and the run of the table that takes it

function split(file, dims, branch, k, dir) {
  const made = spawnSync(resolve(build, 'tools/onnx-pipeline-split'), [file, '-k', `${k}`, '-o', dir, '--quiet',
    '--slack', '0', '--inline-if', `optimum::if=${branch}`,
    ...Object.entries(dims).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`])], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
  return JSON.parse(readFileSync(join(dir, 'pipeline.json')));
}

// The outputs that differ, with why.
async function differing(dir, manifest, { feeds, outputs }) {
  const staged = await runChain(dir, manifest, feeds);
  return Object.entries(outputs).map(([name, tensor]) => [name, difference(tensor, staged[name])])
    .filter(([, why]) => why);
}

let nProved = 0;
let nEqual = 0;
let n = 0;
console.log('| model | branch | K | bottleneck, us | bound, us | proved | bits equal |\n|---|---|---|---|---|---|---|');
for (const name of Object.keys(models).filter((each) => each.endsWith('_decoder'))) {
  if (only.length && !only.includes(name)) continue;
  const file = join(cache, `${name}.onnx`);
  if (!existsSync(file)) {
    console.log(`| ${name} | not in the model cache | | | | | |`);
    continue;
  }
  const { dims, runs } = models[models[name].like ?? name];
  const session = await open(file);
  const whole = [];
  for (const run of runs) {
    const feeds = makeFeeds(session.inputMetadata, run);
    whole.push({ feeds, outputs: await session.run(feeds) });
  }
  await session.release();
  for (const [branch, run] of branches)
    for (const k of [2, 3, 4]) {
      const dir = join(tmp, `${name}-${branch}-${k}`);
      const manifest = split(file, dims, branch, k, dir);
      const { bottleneck_ns: value, lower_bound_ns: bound, proved_optimal: proved } = manifest.plan;
      const wrong = await differing(dir, manifest, whole[run]);
      rmSync(dir, { recursive: true });
      n++;
      nProved += proved;
      nEqual += !wrong.length;
      console.log(`| ${name} | ${branch} | ${k} | ${value / 1e3} | ${bound / 1e3} | ${proved ? 'yes'
        : `no, ${(100 * (value - bound) / value).toFixed(2)} %`} | ${wrong.length ? `no: ${wrong[0].join(' ')}` : 'yes'} |`);
    }
}
console.log(`\n${n} splits: ${nProved} proved, ${nEqual} with the bits of the whole`);
process.exitCode = nEqual === n ? 0 : 1;
