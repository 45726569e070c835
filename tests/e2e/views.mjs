// A model written anew as a whole, with its supernodes as functions or with its stages annotated, is
// still the model:
//
//   node views.mjs SPLIT INSPECT fixtures      every small model of fixtures.mjs
//   node views.mjs SPLIT INSPECT NAME          one of the test models
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { difference, open } from './chain.mjs';
import { makeFeeds } from './feeds.mjs';
import { fixtures, writeFixture } from './fixtures.mjs';
import { cachedModel } from './places.mjs';
import { Tap } from './tap.mjs';
import { fields } from './wire.mjs';

const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const [splitTool, inspectTool, what] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-views-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const run = (tool, ...args) => spawnSync(tool, args, { encoding: 'utf8', timeout: 120000 });
const dimsOf = (model) => Object.entries(model.dims ?? {}).flatMap(([d, n]) => ['--dim', `${d}=${n}`]);

// Both models on the same inputs; a problem for each output that differs in a bit, or where numbers are
// drawn in type or shape.
async function compare(fileA, fileB, { runs, draws }) {
  const problems = [];
  const a = await open(fileA);
  const b = await open(fileB);
  for (const each of runs?.length ? runs : [{}]) {
    const feeds = makeFeeds(a.inputMetadata, each);
    const expected = await a.run(feeds);
    const got = await b.run(feeds);
    for (const [name, tensor] of Object.entries(expected)) {
      const alike = ({ type, dims }) => `${type} [${dims}]`;
      const problem = !draws ? difference(tensor, got[name])
        : alike(tensor) === alike(got[name]) ? undefined : `${alike(got[name])}, not ${alike(tensor)}`;
      if (problem) problems.push(`${name}: ${problem}`);
    }
  }
  await a.release();
  await b.release();
  return problems;
}

const toldUnrunnable = new Set();
async function bits(fileA, fileB, model, title) {
  if (!model.unrunnable) {
    tap.none(await compare(fileA, fileB, model).catch((error) => [`${error}`]), title);
  } else if (!toldUnrunnable.has(model)) { // once, for all views
    toldUnrunnable.add(model);
    tap.skip(`${title.split(':')[0]}: runs`, model.unrunnable);
  }
}

const all = (bytes, number) => [...fields(bytes)].filter(([field]) => field === number).map(([, v]) => v);
const graphOf = (bytes) => Buffer.concat(all(bytes, 7));
const same = (a, b) => a.length === b.length && a.every(([f, v], i) => f === b[i][0] &&
  (Buffer.isBuffer(v) ? v.equals(b[i][1]) : v === b[i][1]));

// Field by field the model's, but for field 10 at the end of each node and one field 26.
function annotationProblems(model, annotated, nStages) {
  const problems = [];
  const [before, after] = [readFileSync(model), readFileSync(annotated)];
  const rest = (bytes) => [...fields(bytes)].filter(([field]) => field !== 7);
  const mine = rest(after);
  const configuration = mine.pop();
  if (!same(rest(before), mine)) problems.push('a field of the model changed');
  if (configuration[0] !== 26) return [...problems, 'there is no configuration'];
  if (all(configuration[1], 2)[0] !== nStages) problems.push('the configuration has another number of devices');
  if (all(configuration[1], 3).length !== nStages) problems.push('devices have no names');
  const name = all(configuration[1], 1)[0];
  const [nodesBefore, nodesAfter] = [before, after].map((bytes) => all(graphOf(bytes), 1));
  const others = (bytes) => [...fields(graphOf(bytes))].filter(([field]) => field !== 1);
  if (!same(others(before), others(after))) problems.push('a field of the graph changed');
  if (nodesBefore.length !== nodesAfter.length) problems.push('another number of nodes');
  nodesAfter.forEach((node, i) => {
    const head = node.subarray(0, nodesBefore[i].length);
    if (!head.equals(nodesBefore[i])) problems.push(`node ${i} changed`);
    const [[field, entry], ...more] = [...fields(node.subarray(head.length))];
    if (field !== 10 || more.length) problems.push(`node ${i} has another field`);
    else if (!all(entry, 1)[0].equals(name) || !(all(entry, 3)[0] < nStages)) problems.push(`node ${i} has no stage`);
  });
  return problems;
}

function layerProblems(model, annotated) {
  const [before, after] = [model, annotated].map((file) => all(graphOf(readFileSync(file)), 1));
  return after.flatMap((node, i) => {
    const added = [...fields(node.subarray(before[i].length))];
    const good = node.subarray(0, before[i].length).equals(before[i]) && added.length === 1 &&
      added[0][0] === 9 && `${all(added[0][1], 1)[0]}` === 'layer_ann' &&
      /^stage[0-9]+$/.test(`${all(added[0][1], 2)[0]}`);
    return good ? [] : [`node ${i}`];
  });
}

function oliveProblems(model, annotated) {
  const [before, after] = [readFileSync(model), readFileSync(annotated)];
  if (!after.subarray(0, before.length).equals(before)) return ['the model changed'];
  const [[field, entry], ...more] = [...fields(after.subarray(before.length))];
  const [key, value] = [`${all(entry, 1)[0]}`, `${all(entry, 2)[0]}`];
  const good = field === 14 && !more.length && key === 'split_assignments' &&
    value.split(';').every((each) => /^[^=]+=[0-9]+$/.test(each));
  return good ? [] : [`${field}: ${key} = ${value.slice(0, 200)}`];
}

async function check(name, file, model) {
  // Beside the model: external data is found from there alone.
  const blocks = join(file, '..', `${name}.blocks-${process.pid}.onnx`);
  const annotated = join(file, '..', `${name}.annotated-${process.pid}.onnx`);
  const dims = dimsOf(model);
  try {
    let ran = run(inspectTool, file, '-q', '--format', 'onnx', '-o', blocks, ...dims);
    if (tap.ok(ran.status === 0, `${name}: written with supernodes as functions`, ran.stderr)) {
      await bits(file, blocks, model, `${name}: with functions, the same bits`);
    }
    const k = Math.min(2, model.max_stages ?? 2);
    ran = run(splitTool, file, '-q', '-k', `${k}`, '--annotate', annotated, ...dims);
    if (k === 2 && ran.status === 7) return; /* too small to be cut */
    if (!tap.ok(ran.status === 0, `${name}: written with annotations`, ran.stderr)) return;
    tap.none(annotationProblems(file, annotated, k), `${name}: nothing but annotations was added`);
    await bits(file, annotated, model, `${name}: annotated, the same bits`);
    run(splitTool, file, '-q', '-k', `${k}`, '--annotate', annotated, '--annotate-as', 'layer_ann', '--force', ...dims);
    tap.none(layerProblems(file, annotated), `${name}: a layer_ann for every node, and nothing else`);
    ran = run(splitTool, file, '-q', '-k', `${k}`, '--annotate', annotated, '--annotate-as', 'olive', '--force', ...dims);
    if (ran.status === 5) tap.ok(/^error: .*(names|split_assignments)/m.test(ran.stderr), `${name}: its names say too little for Olive`);
    else tap.none(oliveProblems(file, annotated), `${name}: split_assignments, and nothing else`);
    run(splitTool, file, '-q', '-k', `${k}`, '--annotate', annotated, '--force', ...dims);
    const plan = (m, ...more) => run(splitTool, m, '-q', '-k', `${k}`, '--plan-only', '--json', ...dims, ...more);
    // What is pinned is not copied, so a plan with copies has other loads than its annotations alone.
    const planned = ({ stdout }) => JSON.parse(stdout || '{}').stages ?? [];
    const stages = (p) => JSON.stringify(planned(p).map((s) => [s.nodes - s.duplicated_nodes, copies ? 0 : s.load_ns]));
    const [first, again] = [plan(file), plan(annotated)];
    const copies = planned(first).some((s) => s.duplicated_nodes > 0);
    tap.ok(again.status === 0 && stages(first) === stages(again), `${name}: its annotations are honoured`, again.stderr);
  } finally {
    for (const made of [blocks, annotated]) rmSync(made, { force: true });
  }
}

if (what === 'fixtures') {
  for (const [name, model] of Object.entries(fixtures)) {
    const file = join(tmp, `${name}.onnx`);
    writeFixture(name, file);
    await check(name, file, model);
  }
} else {
  const file = cachedModel(what);
  await check(what, file, models[what]);
}
tap.done();
