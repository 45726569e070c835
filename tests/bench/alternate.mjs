// Times the whole of a model and its stages by turns: node alternate.mjs ROUNDS WHOLE.onnx STAGES [DIM=N...]
//
// STAGES is a directory of stages split with --boundary io. One thread, outputs in place. Prints a JSON list: the
// least time of a run of the whole and of each stage, ns. What others have the processor for only adds, so turns
// are short and many.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ort = createRequire(new URL('../e2e/split.mjs', import.meta.url))('onnxruntime-node');
const [rounds, whole, stages, ...dims] = process.argv.slice(2);
const sizes = Object.fromEntries(dims.map((dim) => dim.split('=')).map(([name, n]) => [name, Number(n)]));
const files = JSON.parse(readFileSync(join(stages, 'pipeline.json'))).stages.map(({ file }) => join(stages, file));

const open = (file) => ort.InferenceSession.create(file, {
  executionProviders: ['cpu'], graphOptimizationLevel: 'all', intraOpNumThreads: 1, interOpNumThreads: 1,
  logSeverityLevel: 3,
});
const values = {};
const random = ({ name, type, shape }) => {
  const sized = shape.map((dim) => (typeof dim === 'number' ? dim : sizes[dim] ?? 1));
  const n = sized.reduce((a, b) => a * b, 1);
  return new ort.Tensor(type, Float32Array.from({ length: n }, () => Math.random()), sized);
};
// The first run makes the outputs: the next ones write into them.
const prepare = async (file) => {
  const session = await open(file);
  const feeds = {};
  for (const meta of session.inputMetadata) feeds[meta.name] = values[meta.name] ??= random(meta);
  const outputs = await session.run(feeds);
  for (const [name, made] of Object.entries(outputs)) {
    outputs[name] = new ort.Tensor(made.type, made.data.slice(), made.dims);
    values[name] = outputs[name];
  }
  return () => session.run(feeds, outputs);
};

const runs = [];
for (const file of [whole, ...files]) runs.push(await prepare(file));
const least = runs.map(() => Infinity);
for (let round = 0; round < Number(rounds); round++)
  for (const [i, run] of runs.entries())
    for (let turn = 0; turn < 4; turn++) {
      const begin = process.hrtime.bigint();
      await run();
      least[i] = Math.min(least[i], Number(process.hrtime.bigint() - begin));
    }
console.log(JSON.stringify(least));
