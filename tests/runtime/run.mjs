// onnx-pipeline-run gives the bits of the whole model:
//
//   node run.mjs model RUN SPLIT NAME      a real model in 2 and 3 stages, both boundaries
//   node run.mjs fixture RUN SPLIT NAME    the same for a small model of ../e2e/fixtures.mjs
//
// Behind NAME may stand a launcher that takes the number of ranks: "mpirun -n". Over MPI a model runs once,
// in as many stages as it can up to three; PSPLIT_MATRIX=full takes all that threads take.
//
// The whole model runs in onnxruntime-node, the stages in the runner, which reads its inputs from
// .npy files and writes its outputs as such; both with optimisation off and one thread. Four
// micro-batches with inputs of their own are under way at once.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { difference } from '../e2e/chain.mjs';
import { makeFeeds } from '../e2e/feeds.mjs';
import { fixtures, realModel, splitOptions, writeFixture } from '../e2e/fixtures.mjs';
import { cachedModel, library } from '../e2e/places.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';
import { readNpy, writeNpy } from './npy.mjs';

const require = createRequire(new URL('../e2e/', import.meta.url));
const ort = require('onnxruntime-node');
const [what, runner, splitter, name, launcher = ''] = process.argv.slice(2);
if (launcher.startsWith('skip ')) skipAll(launcher.slice(5));
const model = what === 'fixture' ? fixtures[name] : realModel(name);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-run-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

let file;
if (what === 'fixture') {
  file = join(tmp, `${name}.onnx`);
  writeFixture(name, file);
} else {
  file = cachedModel(model.base);
}

// The same values in another order, so that a micro-batch cannot pass for its neighbour.
function turned({ type, dims, data }, by) {
  const n = data.length;
  return new ort.Tensor(type, data.map((_, i) => data[(i + by) % n]), dims);
}

const batches = [];
const session = await ort.InferenceSession.create(file, {
  graphOptimizationLevel: 'disabled', executionMode: 'sequential',
  intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
});
for (let i = 0; i < 4; i++) {
  const run = model.runs[i % model.runs.length];
  const fed = makeFeeds(session.inputMetadata, run);
  const feeds = Object.fromEntries(
    Object.entries(fed).map(([key, tensor]) => [key, turned(tensor, i)]));
  batches.push({ feeds, outputs: await session.run(feeds) });
  Object.values(feeds).forEach((tensor, at) => writeNpy(join(tmp, `in${at}-${i}.npy`), tensor));
}
await session.release();
const inputs = Object.keys(batches[0].feeds)
  .flatMap((key, at) => ['--input', `${key}=${join(tmp, `in${at}-{}.npy`)}`]);

function compare(out, title) {
  const { outputs } = JSON.parse(readFileSync(join(out, 'outputs.json')));
  const problems = [];
  batches.forEach((batch, i) => {
    outputs.forEach((output, at) => {
      const path = join(out, `${i}-${at}.npy`);
      const problem = existsSync(path)
        ? difference(batch.outputs[output], readNpy(path)) : 'there is no such file';
      if (problem) problems.push(`micro-batch ${i}, ${output}: ${problem}`);
    });
  });
  if (readdirSync(out).length !== 1 + outputs.length * batches.length) {
    problems.push(`${out} has other files too`);
  }
  tap.none(problems, title);
}

const once = launcher && what === 'model' && process.env.PSPLIT_MATRIX !== 'full';
const numbers = (model.stages ?? [2, 3]).filter((n) => n <= (model.max_stages ?? Infinity));
for (const stages of once ? numbers.slice(-1) : numbers) {
  for (const boundary of once ? ['sendrecv'] : ['sendrecv', 'io']) {
    const dir = join(tmp, `${stages}-${boundary}`);
    const split = spawnSync(splitter,
      [file, '-k', `${stages}`, '-o', dir, '--boundary', boundary, '--quiet',
        ...splitOptions(model, file)],
      { encoding: 'utf8' });
    const title = `${name} in ${stages} stages with ${boundary}`;
    if (!tap.ok(split.status === 0, `${title} is split`, split.stderr)) continue;
    const out = `${dir}-out`;
    const [command, ...before] =
      [...launcher.split(' ').filter(Boolean), ...(launcher ? [`${model.segments ?? stages}`] : []), runner];
    const result = spawnSync(command,
      [...before, dir, ...inputs, '--micro-batches', '4', '--warmup', '0', '--optimization', '0',
        '--depth', `${stages - 1}`, '--output', out, '--quiet', '--onnxruntime', library],
      { encoding: 'utf8', timeout: 120000 });
    if (tap.ok(result.status === 0, `${title} runs`, `${result.status}: ${result.stderr}`)) {
      compare(out, `${title} gives the bits of the whole model`);
    }
    rmSync(dir, { recursive: true });
    rmSync(out, { recursive: true, force: true });
  }
}
tap.done();
