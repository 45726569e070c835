// Is a split the model? node chain.mjs DIR --model MODEL [--name NAME]
//
// Runs MODEL whole, then its stages in DIR one after the other exactly by the tables of
// pipeline.json, and compares every output bit for bit: dtype, dims, bytes. Also holds
// pipeline.json against its JSON Schema, against itself and against the files. NAME is the entry
// of ../models/models.json that says how large the inputs are; by default MODEL's base name.
//
// Optimisation is off and one thread computes, so that no bit may differ.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import * as ort from 'onnxruntime-node';
import { makeFeeds } from './feeds.mjs';
import { fits } from './schema.mjs';
import { Tap } from './tap.mjs';
import { readModel } from './wire.mjs';

export { ort };

const schemaFile = new URL('../../docs/manifest.schema.json', import.meta.url);
const models =
  JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url))).models;

export const open = (file) => ort.InferenceSession.create(file, {
  graphOptimizationLevel: 'disabled', executionMode: 'sequential',
  intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
});

async function withSession(file, use) {
  const session = await open(file);
  try {
    return await use(session);
  } finally {
    await session.release();
  }
}

// What tells tensor b from tensor a; empty if nothing does, down to the bits of a NaN.
export function difference(a, b) {
  if (!b) return 'the chain gives no such output';
  if (a.type !== b.type) return `dtype ${b.type}, not ${a.type}`;
  if (!isDeepStrictEqual([...a.dims], [...b.dims])) return `dims [${b.dims}], not [${a.dims}]`;
  if (a.type === 'string') return isDeepStrictEqual(a.data, b.data) ? '' : 'strings differ';
  const bytes = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (bytes(a).equals(bytes(b))) return '';
  const at = a.data.findIndex((value, i) => !Object.is(value, b.data[i]));
  return `element ${at} is ${b.data[at]}, not ${a.data[at]}`;
}

// A comparison of constants would hold whatever the stages computed.
const varied = ({ data }) => data.length < 2 || data.some((value) => value !== data[0]);

export async function runChain(dir, manifest, feeds) {
  const produced = manifest.stages.map(() => new Map());
  const outputs = {};
  for (const stage of manifest.stages) {
    const fed = {};
    for (const { name, tensor, from } of stage.inputs) {
      fed[name] = from === 'model' ? feeds[tensor] : produced[from]?.get(tensor);
      if (!fed[name]) throw new Error(`stage ${stage.index}: ${tensor} from ${from} is not there`);
    }
    const got = await withSession(join(dir, stage.file), (session) => session.run(fed));
    for (const { name, tensor, to } of stage.outputs) {
      if (!got[name]) throw new Error(`stage ${stage.index} gives no output ${name}`);
      if (to.includes('model')) outputs[tensor] = got[name];
      if (to.some((target) => target !== 'model')) produced[stage.index].set(tensor, got[name]);
    }
  }
  return outputs;
}

const sorted = (list) => [...list].sort();
const sameSet = (a, b) => isDeepStrictEqual(sorted(a), sorted(b));
const setProblem = (what, found, wanted) =>
  sameSet(found, wanted) ? [] : [`${what}: [${sorted(found)}], not [${sorted(wanted)}]`];

// What pipeline.json says against itself.
function tableProblems({ inputs, outputs, stages, transfers }) {
  const problems = [];
  const edge = (tensor, from, to) => JSON.stringify([tensor, from, to]);
  const received = [];
  const sent = [];
  const given = [];
  stages.forEach((stage, index) => {
    if (stage.index !== index) problems.push(`stage ${index} has index ${stage.index}`);
    for (const { tensor, from } of stage.inputs) {
      if (from !== 'model') {
        received.push(edge(tensor, from, index));
        if (from >= index) problems.push(`stage ${index} receives ${tensor} from stage ${from}`);
      } else if (!inputs.some(({ name }) => name === tensor)) {
        problems.push(`stage ${index} takes ${tensor}, which is not an input of the model`);
      }
    }
    for (const { tensor, to } of stage.outputs) {
      for (const target of to) {
        if (target === 'model') given.push(tensor);
        else sent.push(edge(tensor, index, target));
      }
    }
  });
  const listed = transfers.map(({ tensor, from, to }) => edge(tensor, from, to));
  problems.push(...setProblem('sent by stages, against received', sent, received));
  problems.push(...setProblem('transfers, against received', listed, received));
  problems.push(...setProblem('given to the model, against its outputs', given,
    outputs.map(({ name }) => name)));
  for (const { tensor, from, to } of transfers) {
    if (from >= to) problems.push(`transfer of ${tensor} goes from ${from} to ${to}`);
  }
  if (new Set(transfers.map(({ tag }) => tag)).size !== transfers.length) {
    problems.push('tags repeat');
  }
  return problems;
}

// What the model declares of a tensor that crosses and its port does not: a size says more than a
// symbol, and of a size that the model declares a run may tell otherwise.
function lostDeclarations(port, model) {
  if (port.denotation !== model.denotation) return ['denotation'];
  return (model.dims ?? []).flatMap(({ symbol, denotation }, axis) => {
    const dim = port.dims?.[axis];
    if (!dim) return [`dimension ${axis}`];
    return [...(dim.denotation !== denotation ? [`denotation of dimension ${axis}`] : []),
      ...(symbol && dim.symbol !== symbol && dim.size === undefined ? [`symbol ${symbol}`] : [])];
  });
}

// The stages, boundary nodes aside, against the model: the same nodes, weights, functions,
// declarations, and all that is said about the model as a whole.
function contentProblems(dir, manifest, modelFile) {
  const model = readModel(readFileSync(modelFile));
  const known = new Set(model.nodes.map(({ key }) => key));
  const weights = new Map(model.weights.map((weight) => [weight.name, weight]));
  const functions = new Set(model.functions.map(({ key }) => key));
  const problems = [];
  const used = new Set();
  let once = 0;
  const declared = (list, wanted) => list.find(({ name }) => name === wanted)?.key;
  for (const table of manifest.stages) {
    const { file, nodes: count, duplicated_nodes: duplicated } = table;
    const stage = readModel(readFileSync(join(dir, file)));
    for (const { name, tensor } of table.inputs.filter(({ from }) => from === 'model')) {
      if (declared(stage.inputs, name) !== declared(model.inputs, tensor)) {
        problems.push(`${file}: input ${name} is not declared as the model declares ${tensor}`);
      }
    }
    for (const { name, tensor } of table.outputs.filter(({ to }) => to.includes('model'))) {
      if (declared(stage.outputs, name) !== declared(model.outputs, tensor)) {
        problems.push(`${file}: output ${name} is not declared as the model declares ${tensor}`);
      }
    }
    const crossing = [...table.inputs.filter(({ from }) => from !== 'model').map((row) => [stage.inputs, row]),
      ...table.outputs.filter(({ to }) => !to.includes('model')).map((row) => [stage.outputs, row])];
    for (const [list, { name, tensor }] of crossing) {
      const whole = [...model.outputs, ...model.infos].find((each) => each.name === tensor);
      const port = list.find((each) => each.name === name);
      for (const lost of whole && port ? lostDeclarations(port.type, whole.type) : []) {
        problems.push(`${file}: ${name} lost the ${lost} that the model declares`);
      }
    }
    const nodes = stage.nodes.filter(({ domain }) => domain !== 'psplit');
    if (nodes.length !== count) {
      problems.push(`${file} has ${nodes.length} nodes, its table says ${count}`);
    }
    once += count - duplicated;
    for (const { key, name, op } of nodes) {
      if (!known.has(key)) problems.push(`${file}: node ${name} (${op}) is none of the model's`);
      used.add(key);
    }
    for (const weight of stage.weights) {
      const before = weights.get(weight.name);
      const same = before?.external || weight.external
        ? before?.rest === weight.rest : before?.key === weight.key;
      if (!same) problems.push(`${file}: weight ${weight.name} is not the model's`);
    }
    for (const { key, domain } of stage.functions) {
      if (domain !== 'psplit' && !functions.has(key)) {
        problems.push(`${file}: a function of ${domain} is not the model's`);
      }
    }
    for (const opset of model.opsets) {
      if (!stage.opsets.includes(opset)) problems.push(`${file}: an opset import is missing`);
    }
    if (stage.rest !== model.rest) problems.push(`${file}: fields of the model differ`);
    if (stage.graphRest !== model.graphRest) problems.push(`${file}: fields of the graph differ`);
  }
  if (once !== model.nodes.length) {
    problems.push(`nodes less duplicates add up to ${once}, the model has ${model.nodes.length}`);
  }
  for (const { key, name, op } of model.nodes) {
    if (!used.has(key)) problems.push(`node ${name} (${op}) is in no stage`);
  }
  return problems;
}

// The files load, and their ports are those of the tables.
async function fileProblems(dir, manifest) {
  const problems = [];
  const listed = manifest.stages.map(({ file }) => file);
  problems.push(...setProblem('stage files',
    readdirSync(dir).filter((file) => file.endsWith('.onnx')), listed));
  for (const { file, inputs, outputs } of manifest.stages) {
    await withSession(join(dir, file), ({ inputNames, outputNames }) => {
      const names = (ports) => ports.map(({ name }) => name);
      problems.push(...setProblem(`inputs of ${file}`, inputNames, names(inputs)));
      problems.push(...setProblem(`outputs of ${file}`, outputNames, names(outputs)));
    });
  }
  return problems;
}

let validate;
function schemaProblems(manifest) {
  validate ??= fits(schemaFile);
  if (validate(manifest)) return [];
  return validate.errors.map(({ instancePath, message, params }) =>
    `${instancePath || '/'} ${message} ${JSON.stringify(params)}`);
}

const message = (error) => String(error.message ?? error);

// With `constants`, outputs may be that.
export async function checkSplit(tap, dir, modelFile, runs, { constants = false } = {}) {
  let manifest;
  try {
    manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
  } catch (error) {
    tap.ok(false, 'pipeline.json is JSON', message(error));
    return;
  }
  if (existsSync(schemaFile)) {
    if (!tap.none(schemaProblems(manifest), 'pipeline.json fits its schema')) return;
  } else {
    tap.skip('pipeline.json fits its schema', 'there is no docs/manifest.schema.json');
  }
  tap.none(tableProblems(manifest), 'the tables of pipeline.json agree');
  const attempt = async (what, find) => {
    let problems;
    try {
      problems = await find();
    } catch (error) {
      problems = [message(error)];
    }
    tap.none(problems, what);
  };
  // With an If inlined, the stages hold what the model has in a branch; onnx-pipeline-verify proves that.
  if (!manifest.inlined) {
    await attempt('the stages hold the nodes and weights of the model',
      () => contentProblems(dir, manifest, modelFile));
  }

  const whole = [];
  await withSession(modelFile, async (session) => {
    for (const run of runs) {
      const feeds = makeFeeds(session.inputMetadata, run);
      whole.push({ feeds, outputs: await session.run(feeds) });
    }
  });
  await attempt('the stage files load, with the ports of the tables',
    () => fileProblems(dir, manifest));

  for (const [i, { feeds, outputs }] of whole.entries()) {
    let staged = {};
    let broken;
    try {
      staged = await runChain(dir, manifest, feeds);
    } catch (error) {
      broken = message(error);
    }
    for (const [output, tensor] of Object.entries(outputs)) {
      const what = `run ${i}: ${output} is the same bits`;
      const problem = broken ?? difference(tensor, staged[output]);
      tap.ok(!problem && (constants || varied(tensor)), what,
        problem || 'all its elements are equal, so this shows nothing');
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({
    allowPositionals: true, options: { model: { type: 'string' }, name: { type: 'string' } },
  });
  if (positionals.length !== 1 || !values.model) {
    console.error('usage: node chain.mjs DIR --model MODEL [--name NAME]');
    process.exit(2);
  }
  const tap = new Tap();
  const name = values.name ?? basename(values.model, '.onnx');
  await checkSplit(tap, positionals[0], values.model, models[name]?.runs ?? [{}]);
  tap.done();
}
