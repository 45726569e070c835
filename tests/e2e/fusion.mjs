// What ONNX Runtime fuses, held against the groups of a split:
//
//   node fusion.mjs SHOW_GROUPS NAME [K]      TAP; K stages, by default 4
//   node fusion.mjs SHOW_GROUPS exported      the modules of tests/passes/exported.py, uncut
//
// ONNX Runtime writes its optimised graph at levels 2 (extended) and 99 (all). A kernel of it keeps
// the name of the value that it computes; the values in between are gone. So the nodes of the
// original graph that a kernel stands for are those met on the way back from its outputs to the
// nearest values that the optimised graph still has. A kernel of two nodes and more is covered
// where one group holds them all, and severed where no stage does.
//
// Identity does nothing and vanishes in any stage: it counts nowhere.
//
// A kernel that is the original node still (same operator, attributes and constants) is none: what
// vanished before it was a copy or did nothing, and vanishes again in any stage.
//
// At level 99 convolutions work on blocked tensors under new names. What such a tensor is in the
// original graph is told by the Reorder that turns it back, by the kernel's name
// (`<output value>_nchwc`), or by that of a node which was kept; a residual sum and an activation
// that joined later show as a fourth input and an attribute. A kernel that none of this names (a
// moved Transpose) is unmapped, and belongs to whatever reads it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as ort from 'onnxruntime-node';
import { cachedModel } from './places.mjs';
import { Tap, skipAll } from './tap.mjs';
import { fields } from './wire.mjs';

const all = (buffer, wanted) =>
  [...fields(buffer)].filter(([field]) => field === wanted).map(([, value]) => value);
const texts = (buffer, wanted) => all(buffer, wanted).map(String);

// Names that the bodies of a node read: NodeProto.attribute 5, AttributeProto g 6 and graphs 11.
function bodyReads(node) {
  const bodies = all(node, 5).flatMap((each) => [...all(each, 6), ...all(each, 11)]);
  return bodies.flatMap((body) => [
    ...all(body, 1).flatMap((inner) => [...texts(inner, 1), ...bodyReads(inner)]),
    ...texts(body, 12),
  ]);
}

// GraphProto node 1, initializer 5, output 12; NodeProto input 1, output 2, name 3, op_type 4,
// attribute 5, domain 7.
export function readGraph(file) {
  const [graph] = all(readFileSync(file), 7);
  return {
    nodes: all(graph, 1).map((node, id) => ({
      id, op: texts(node, 4)[0], name: texts(node, 3)[0] ?? '', domain: texts(node, 7)[0] ?? '',
      inputs: [...texts(node, 1), ...bodyReads(node)].filter(Boolean),
      outputs: texts(node, 2).filter(Boolean),
      attributes: all(node, 5).map((each) => each.toString('latin1')).sort(),
    })),
    constants: new Set(all(graph, 5).map((tensor) => texts(tensor, 8)[0])),
    outputs: all(graph, 12).map((value) => texts(value, 1)[0]),
  };
}

const isReorder = ({ op }) => op === 'ReorderInput' || op === 'ReorderOutput';
const activations = [
  'Relu', 'LeakyRelu', 'Sigmoid', 'Tanh', 'Clip', 'HardSigmoid', 'HardSwish', 'Gelu',
];

// By names: who makes and who reads a value, and which node bears a name.
function indexOf({ nodes }) {
  const producer = new Map();
  const readers = new Map();
  const named = new Map();
  for (const node of nodes) {
    for (const value of node.outputs) producer.set(value, node);
    for (const value of new Set(node.inputs)) {
      readers.set(value, [...(readers.get(value) ?? []), node]);
    }
    if (node.name) named.set(node.name, named.has(node.name) ? undefined : node);
  }
  return { producer, readers, named };
}

// The values each kernel computes, by their names in the original graph.
function outputsOf(optimised, original, { producer, readers, named }) {
  const turnedBack = new Map(optimised.nodes.filter(({ op }) => op === 'ReorderOutput')
    .map(({ inputs, outputs }) => [inputs[0], outputs[0]]));
  const told = optimised.nodes.map((kernel) => {
    const values = kernel.outputs.map((value) => turnedBack.get(value) ?? value)
      .filter((value) => producer.has(value));
    return { kernel, values, exact: values.length > 0 };
  }).filter(({ kernel }) => !isReorder(kernel));
  const kept = new Set([...original.outputs, ...told.flatMap(({ values }) => values)]);
  for (const each of told.filter(({ exact }) => !exact)) {
    const [, base] = /^(.*?)(?:_bn)?_nchwc(?:_token_\d+)?$/.exec(each.kernel.name) ?? [];
    const same = named.get(each.kernel.name);
    if (producer.has(base)) each.values = [base];
    else if (same?.op === each.kernel.op) each.values = same.outputs;
    for (const value of each.values) kept.add(value);
  }
  // What joined a blocked convolution after it was named.
  for (const each of told.filter(({ exact, values }) => !exact && values.length === 1)) {
    const { op, inputs, attributes } = each.kernel;
    let sums = op === 'Conv' && inputs.length > 3 ? 1 : 0;
    let acts = op === 'Conv' && attributes.some((bytes) => bytes.includes('activation')) ? 1 : 0;
    for (;;) {
      const [value] = each.values;
      const next = readers.get(value) ?? [];
      if (next.length !== 1 || original.outputs.includes(value)) break;
      const [reader] = next;
      if (kept.has(reader.outputs[0])) break;
      if (reader.op === 'Add' && sums) sums -= 1;
      else if (activations.includes(reader.op) && acts) acts -= 1;
      else break;
      kept.delete(value);
      each.values = reader.outputs;
      kept.add(reader.outputs[0]);
    }
  }
  return { told, kept };
}

// Whether the kernel is the node that computed its output all along.
function isUnchanged(kernel, node, original, optimised) {
  const constants = ({ inputs }, graph) => inputs.filter((value) => graph.constants.has(value));
  return kernel.op === node.op && kernel.inputs.length === node.inputs.length &&
    kernel.outputs.length === node.outputs.length && kernel.domain === node.domain &&
    kernel.attributes.join() === node.attributes.join() &&
    constants(node, original).every((value) => constants(kernel, optimised).includes(value));
}

// Kernels of two original nodes and more: [{op, members}], and how many kernels are unmapped.
export function fusedKernels(original, optimised, isConstant) {
  const index = indexOf(original);
  const { told, kept } = outputsOf(optimised, original, index);
  for (const value of optimised.constants) kept.add(value);
  const fused = [];
  for (const { kernel, values } of told) {
    const members = new Set();
    const seen = new Set();
    const open = values.map((value) => index.producer.get(value));
    const [last] = open;
    while (open.length) {
      const node = open.pop();
      if (seen.has(node.id) || isConstant(node.id)) continue;
      seen.add(node.id);
      if (node.op !== 'Identity') members.add(node.id);
      for (const value of node.inputs) {
        if (!kept.has(value) && index.producer.has(value)) open.push(index.producer.get(value));
      }
    }
    if (members.size < 2 || isUnchanged(kernel, last, original, optimised)) continue;
    fused.push({ op: kernel.op, members: [...members].sort((a, b) => a - b) });
  }
  return { fused, unmapped: told.filter(({ values }) => !values.length).length };
}

async function optimise(file, level, out) {
  const session = await ort.InferenceSession.create(file, {
    graphOptimizationLevel: level, optimizedModelFilePath: out,
    intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4,
  });
  await session.release();
}

// By node: {group, stages}; group is '-' for constants.
function showGroups(tool, args) {
  const shown = spawnSync(tool, args, { encoding: 'utf8', timeout: 240000 });
  if (shown.status !== 0) throw new Error(`${tool}: exit status ${shown.status}\n${shown.stderr}`);
  return shown.stdout.trim().split('\n').map((line) => {
    const [, group, stages] = line.split(' ');
    return { group, stages: stages.split(',') };
  });
}

const isCovered = (nodes) => ({ members }) =>
  members.every((id) => nodes[id].group === nodes[members[0]].group);
const isSevered = (nodes) => ({ members }) => !nodes[members[0]].stages.some((stage) =>
  members.every((id) => nodes[id].stages.includes(stage)));

const label = (original, { op, members }) =>
  `${op}: ` + members.map((id) => original.nodes[id])
    .map((node) => `${node.op}(${node.outputs[0]})`).join(' ');

// A directory that goes away in the end.
const made = [];
process.on('exit', () => made.forEach((dir) => rmSync(dir, { recursive: true, force: true })));
function scratch() {
  made.push(mkdtempSync(join(tmpdir(), 'psplit-fusion-')));
  return made.at(-1);
}

// Holds one model against ONNX Runtime at both levels.
async function hold(tap, tool, { name, file, stages, dims = [], all: wantsAll }) {
  const tmp = scratch();
  const nodes = showGroups(tool, [file, `${stages}`, ...dims]);
  const unfused = showGroups(tool, [file, `${stages}`, ...dims, '--passes',
    'infer-shapes,cost,mark,attach,coarsen,partition,replicate']);
  const original = readGraph(file);
  for (const level of ['extended', 'all']) {
    const out = join(tmp, `${level}.onnx`);
    await optimise(file, level, out);
    const { fused, unmapped } =
      fusedKernels(original, readGraph(out), (id) => nodes[id].group === '-');
    const covered = fused.filter(isCovered(nodes));
    const missed = fused.filter((kernel) => !covered.includes(kernel))
      .map((kernel) => label(original, kernel));
    const severed = fused.filter(isSevered(nodes));
    console.log(`# ${name} ${level}: ${fused.length} fused kernels, ${covered.length} covered, ` +
      `${severed.length} severed by ${stages} stages, ${unmapped} unmapped; without fuse ` +
      `${fused.filter(isCovered(unfused)).length} covered, ` +
      `${fused.filter(isSevered(unfused)).length} severed`);
    if (wantsAll) {
      tap.none(missed, `${name}: all ${fused.length} kernels fused at level ${level} are covered`);
    } else {
      for (const kernel of missed) console.log(`# not covered: ${kernel}`);
      tap.none(severed.map((kernel) => label(original, kernel)), `${name}: ${stages} stages ` +
        `sever none of the ${fused.length} kernels fused at level ${level}`);
    }
    rmSync(out, { force: true });
  }
}

// The small modules of tests/passes/exported.py. Most are a group or two: there is nothing to cut.
async function holdExported(tap, tool) {
  const tmp = scratch();
  const script = fileURLToPath(new URL('../passes/exported.py', import.meta.url));
  const exported = spawnSync('/usr/bin/python3', [script, tool, tmp],
    { encoding: 'utf8', timeout: 240000 });
  if (exported.error || /^1..0 # SKIP/m.test(exported.stdout)) skipAll('there is no python3-torch');
  for (const each of readdirSync(tmp).filter((file) => file.endsWith('.onnx')).sort()) {
    const name = each.replace('.onnx', '');
    const file = join(tmp, each);
    await hold(tap, tool, { name, file, stages: 1, all: true });
    if (name.startsWith('transformer')) await hold(tap, tool, { name, file, stages: 2 });
  }
}

async function main(tool, name, k = '4') {
  const tap = new Tap();
  if (name === 'exported') {
    await holdExported(tap, tool);
    tap.done();
    return;
  }
  const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
  const file = cachedModel(name);
  const dims = Object.entries(models[name].dims ?? {}).map(([dim, n]) => `${dim}=${n}`);
  const stages = Math.min(Number(k), models[name].max_stages ?? Infinity);
  await hold(tap, tool, { name, file, stages, dims });
  tap.done();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(...process.argv.slice(2));
