// onnx-pipeline-merge where stages are no longer the model's: rewritten by ONNX Runtime's optimiser, or by hand
// with names that clash, and where they cannot be one model. What untouched stages give is in split.mjs.
//
//   node merge.mjs TOOL NAME     a model of the cache: each stage in turn optimised by ONNX Runtime, then all
//   node merge.mjs TOOL          small ones, and what is refused
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { difference, open, ort, runChain } from './chain.mjs';
import { makeFeeds } from './feeds.mjs';
import { realModel, splitOptions } from './fixtures.mjs';
import { cachedModel } from './places.mjs';
import { Tap } from './tap.mjs';
import { writeModel } from '../support/text_model.mjs';

const [splitTool, name] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-merge-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const call = (tool, ...args) =>
  spawnSync(join(dirname(splitTool), tool), args, { encoding: 'utf8', timeout: 240000 });
const merge = (...args) => call('onnx-pipeline-merge', ...args);
const ended = ({ status, signal, stdout, stderr }) => `exit status ${status}, signal ${signal}\n${stderr}${stdout}`;
const manifestOf = (dir) => JSON.parse(readFileSync(join(dir, 'pipeline.json')));

async function runWhole(file, feeds) {
  const session = await open(file);
  const outputs = await session.run(feeds);
  await session.release();
  return outputs;
}

// The merged model gives the bits of the stages that it was made of, one run after the other.
async function sameBits(title, dir, merged, feeds) {
  const wanted = await runChain(dir, manifestOf(dir), feeds);
  const found = await runWhole(merged, feeds);
  tap.none(Object.keys(wanted).map((each) => [each, difference(wanted[each], found[each])])
    .filter(([, why]) => why).map(([each, why]) => `${each}: ${why}`), title);
}

async function inputsOf(file, run) {
  const session = await open(file);
  const feeds = makeFeeds(session.inputMetadata, run);
  await session.release();
  return feeds;
}

async function optimise(file, level) {
  const target = `${file}.optimised`;
  const session = await ort.InferenceSession.create(file, {
    graphOptimizationLevel: level, optimizedModelFilePath: target, logSeverityLevel: 4 });
  await session.release();
  cpSync(target, file);
  rmSync(target);
}

async function real() {
  const model = realModel(name);
  const file = cachedModel(model.base);
  const feeds = await inputsOf(file, model.runs[0]);
  const dir = join(tmp, 'split');
  const made = call('onnx-pipeline-split', file, '-k', '3', '-o', dir, '--weights', 'inline', ...splitOptions(model, file));
  if (!tap.ok(made.status === 0, `${name} is split`, ended(made))) return;
  for (const [stage, level] of [[1, 'basic'], [0, 'extended'], [2, 'extended']]) {
    await optimise(join(dir, `stage${stage}.onnx`), level);
    const merged = join(tmp, 'merged.onnx');
    const ran = merge(dir, '-o', merged, '--force', '--model', file);
    const title = `${name} with stage ${stage} optimised`;
    if (!tap.ok(ran.status === 0, `${title}: merged`, ended(ran))) return;
    tap.ok(ran.stdout.includes(`stage ${stage} has changed: `), `${title}: it says so`, ran.stdout);
    await sameBits(`${title}: the bits of the stages`, dir, merged, feeds);
  }
}

// --- small ones ---

const chain = `(float[2, 4] x) => (float[2, 4] y, float[2, 4] z) {
  a = Exp (x)
  b = Relu (a)
  c = Sqrt (b)
  y = Neg (c)
  z = Sin (c)
}`;

const header = '<ir_version: 10, opset_import: ["": 18]>\n';

// Stages that compute something else than the model's, and what the whole is called then.
const rewritten = {
  'a name that stage 0 has': `(float[2, 4] c) => (float[2, 4] y, float[2, 4] z) {
    a = Abs (c)
    b = Add (a, c)
    y = Neg (b)
    z = Sin (a)
  }`,
  'weights of one name': [`(float[2, 4] x) => (float[2, 4] c) <float[1] w = {2.0}> {
    a = Mul (x, w)
    c = Exp (a)
  }`, `(float[2, 4] c) => (float[2, 4] y, float[2, 4] z) <float[1] w = {3.0}> {
    y = Mul (c, w)
    z = Sin (c)
  }`],
  'a name inside a body': `(float[2, 4] c) => (float[2, 4] y, float[2, 4] z) {
    t = Constant <value_ints = [1]> ()
    one = Cast <to = 9> (t)
    y = If <then_branch = yes () => (q) { a = Abs (c) q = Add (a, c) }, else_branch = no () => (r) { r = Neg (c) }> (one)
    z = Sin (c)
  }`,
  'a name that a body takes from outside': `(float[2, 4] c) => (float[2, 4] y, float[2, 4] z) {
    a = Abs (c)
    t = Constant <value_ints = [1]> ()
    one = Cast <to = 9> (t)
    y = If <then_branch = yes () => (q) { q = Add (a, c) }, else_branch = no () => (r) { r = Neg (a) }> (one)
    z = Sin (a)
  }`,
  'an output that is what came in': `(float[2, 4] c) => (float[2, 4] y, float[2, 4] z) {
    y = Identity (c)
    z = Sin (c)
  }`,
};

const refused = {
  'no such input': [`(float[2, 4] d) => (float[2, 4] y, float[2, 4] z) { y = Neg (d) z = Sin (d) }`,
    4, /stage 1 \(.*stage1\.onnx\) takes "d", which pipeline\.json does not give it/],
  'no such output': [`(float[2, 4] c) => (float[2, 4] y) { y = Neg (c) }`,
    4, /stage 1 \(.*\) has no output "z" any more/],
  'another type': [`(int32[2, 4] c) => (float[2, 4] y, float[2, 4] z) { y = Cast <to = 1> (c) z = Sin (y) }`,
    4, /"c" is float32 where stage 0 sends it and int32 where stage 1 takes it/],
  'another rank': [`(float[2, 4, 1] c) => (float[2, 4] y, float[2, 4] z) { y = Neg (c) z = Sin (c) }`,
    4, /"c" has 2 dimensions in stage 0 and 3 in stage 1/],
  'another size': [`(float[2, 5] c) => (float[2, 4] y, float[2, 4] z) { y = Neg (c) z = Sin (c) }`,
    4, /dimension 1 of "c" is 4 in stage 0 and 5 in stage 1/],
  'other operators': ['<ir_version: 10, opset_import: ["": 17]>\n(float[2, 4] c) => (float[2, 4] y, float[2, 4] z) { y = Neg (c) z = Sin (c) }',
    5, /stage 1 has version 17 of the operators "ai\.onnx", stage 0 version 18/],
};

function splitChain(file, dir, boundary = 'io') {
  rmSync(dir, { recursive: true, force: true });
  const made = call('onnx-pipeline-split', file, '-k', '2', '-o', dir, '--boundary', boundary, '-q',
    '--passes', 'infer-shapes,cost,mark,attach,fuse,coarsen,partition'); // no node in both stages
  const crossing = made.status === 0 && manifestOf(dir).transfers.map(({ tensor }) => tensor);
  if (made.status !== 0 || `${crossing}` !== 'c') throw new Error(`split otherwise: ${ended(made)}${crossing}`);
}

function put(dir, stage, text) {
  writeModel(text.startsWith('<') ? text : header + text, join(dir, `stage${stage}.onnx`));
}

async function clashes(file, dir, merged, x) {
  for (const [title, texts] of Object.entries(rewritten)) {
    splitChain(file, dir);
    if (Array.isArray(texts)) texts.forEach((text, stage) => put(dir, stage, text));
    else put(dir, 1, texts);
    const ran = merge(dir, '-o', merged, '--force');
    if (!tap.ok(ran.status === 0, `${title}: merged`, ended(ran))) continue;
    await sameBits(`${title}: the bits of the stages`, dir, merged, { x });
    const session = await open(merged);
    tap.ok(`${session.inputNames} ${session.outputNames}` === 'x y,z', `${title}: the model's inputs and outputs`);
    await session.release();
  }
}

function refusals(file, dir, merged) {
  for (const [title, [text, status, says]] of Object.entries(refused)) {
    splitChain(file, dir);
    put(dir, 1, text);
    rmSync(merged, { force: true });
    const ran = merge(dir, '-o', merged);
    const lines = ran.stderr.trimEnd().split('\n');
    tap.ok(ran.status === status && says.test(ran.stderr) && lines.length === 1 && /^error: /.test(lines[0]),
      `${title} is refused`, ended(ran));
    tap.ok(!existsSync(merged), `${title}: nothing is written`);
  }
  splitChain(file, dir);
  const usage = (wanted, says, ...args) => {
    const ran = merge(...args);
    tap.ok(ran.status === wanted && says.test(ran.stderr), `${says} is said`, ended(ran));
  };
  usage(2, /one directory and -o FILE are needed/, dir);
  usage(3, /stage1\.onnx is a file of the split itself/, dir, '-o', join(dir, 'stage1.onnx'), '--force');
  usage(3, /pipeline\.json is a file of the split itself/, dir, '-o', join(dir, 'pipeline.json'), '--force');
  usage(3, /No such file/, join(tmp, 'nowhere'), '-o', merged);
  usage(2, /--weights/, dir, '-o', merged, '--weights', 'reference');
  const within = join(dir, 'merged.onnx');
  usage(0, /warning: .*merged\.onnx would be in a split, and onnx-pipeline-split --force does not replace/, dir, '-o', within);
  rmSync(within);
  writeFileSync(merged, 'mine');
  usage(3, /exists/, dir, '-o', merged);
  tap.ok(readFileSync(merged, 'utf8') === 'mine', 'what was there stays there');
  usage(0, /^$/, dir, '-o', merged, '--force');
  const other = join(tmp, 'other.onnx');
  writeModel(chain.replace('Sqrt', 'Cos'), other);
  const ran = merge(dir, '-o', merged, '--force', '--model', other);
  tap.ok(ran.status === 0 && /1 of 2 stages are unchanged from .*proved\n {2}stage 0 has changed: node/.test(ran.stdout),
    'a stage of another model is told', ended(ran));
  tap.ok(readdirSync(tmp).every((each) => !each.startsWith('.')), 'nothing hidden is left', readdirSync(tmp));
}

async function small() {
  const file = join(tmp, 'chain.onnx');
  writeModel(chain, file);
  const x = new ort.Tensor('float32', Float32Array.from([0.1, -0.2, 0.3, 0.4, -1, 2, -3, 0]), [2, 4]);
  await clashes(file, join(tmp, 's'), join(tmp, 'm.onnx'), x);
  refusals(file, join(tmp, 's'), join(tmp, 'm.onnx'));
}

if (name) await real();
else await small();
tap.done();
