// Gradients of one-operator nets against central differences: node operators.mjs MAKE_TRAINING [TEXT]
//
// loss = sum(R * y) for fixed random R. Each net three times: `fixed`, all inputs weights of known
// shape; `symbolic`, inputs whose every dimension is a symbol; `bare`, inputs of which the rank
// alone is known. The forward model alone gives the differences. float64 where ONNX Runtime has the
// kernels; else float32, for most of these with a large step that is exact, as the operator is
// linear. TEXT: only nets whose names hold it. PSPLIT_GRADIENT_MODELS: a directory to keep them in.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open, ort } from '../e2e/chain.mjs';
import { smallFiles } from '../e2e/places.mjs';
import { Tap } from '../e2e/tap.mjs';
import { cases } from './cases.mjs';
import { model, node, product, random, tensor, value } from './onnx.mjs';

const [tool, only = ''] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(smallFiles, 'psplit-gradient-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const toOrt = ({ type, dims, data }) => new ort.Tensor(type, data, dims);

// The net's inputs as tensors; `wanted` are those whose gradients are checked.
function prepare(net, at) {
  const next = random(at * 7919 + 17);
  const type = net.float ? 'float32' : 'float64';
  return net.inputs.map((input, i) => {
    if (!input) return null;
    const name = `x${i}`;
    const dims = Array.isArray(input) ? input : input.dims;
    const count = product(dims);
    if (input.ints) return { name, ...tensor(input.type ?? 'int64', dims, input.ints) };
    if (input.bools) return { name, ...tensor('bool', dims, input.bools) };
    const wanted = !input.type && (net.only?.includes(i) ?? true);
    if (input.reals) return { name, wanted, ...tensor(input.type ?? type, dims, input.reals) };
    const { low = -2, high = 2, as = type } = input;
    const data = Array.from({ length: count }, () => low + (high - low) * next());
    return { name, wanted, ...tensor(as, dims, data) };
  });
}

const outputNames = (net) => Array.from({ length: net.outputs ?? 1 }, (_, o) =>
  (net.omit?.includes(o) ? '' : `y${o}`));

// The model in one of the three ways; `weights` maps outputs to R, or is null for y itself.
function build(net, inputs, way, R) {
  const outputs = outputNames(net);
  const nodes = [node(net.op, inputs.map((input) => input?.name ?? ''), outputs, net.attrs, net.domain)];
  const domains = net.domain ? [net.domain] : [];
  const initializers = {}, declared = [];
  for (const [i, input] of inputs.entries()) {
    if (!input) continue;
    const weight = !net.open?.includes(i) && (!input.wanted || way === 'fixed' || (net.fixed && i > 0));
    if (weight) initializers[input.name] = input;
    else {
      const known = (axis) => net.known?.includes(axis) || (net.sizes && axis > 1);
      const dims = input.dims.map((dim, axis) =>
        (known(axis) ? dim : way === 'symbolic' ? `${input.name}_${axis}` : ''));
      declared.push(value(input.name, input.type, dims));
    }
  }
  if (!R) {
    return model({ nodes, initializers, inputs: declared, opset: net.opset, domains,
      outputs: outputs.filter((name) => name).map((name) => block(name)) });
  }
  const sums = [];
  for (const [name, r] of Object.entries(R)) {
    initializers[`R.${name}`] = r;
    nodes.push(node('Mul', [name, `R.${name}`], [`${name}.r`]));
    nodes.push(node('ReduceSum', [`${name}.r`], [`${name}.s`], { keepdims: 0n }));
    sums.push(`${name}.s`);
  }
  let last = sums[0];
  for (const [i, each] of sums.slice(1).entries()) {
    nodes.push(node('Add', [last, each], [`sum${i}`]));
    last = `sum${i}`;
  }
  const type = Object.values(R)[0].type;
  return { loss: last, bytes: model({ nodes, initializers, inputs: declared, opset: net.opset, domains,
    outputs: [value(last, type, [])] }) };
}
const block = (name) => Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name)]);

const feedsOf = (session, inputs) => Object.fromEntries(inputs
  .filter((input) => input && session.inputNames.includes(input.name)).map((input) => [input.name, toOrt(input)]));

async function outputsOf(net, inputs) {
  const session = await open(build(net, inputs, 'fixed'));
  try {
    return await session.run(feedsOf(session, inputs));
  } finally {
    await session.release();
  }
}

// Differences of the loss along each element, or along some where there are many.
async function check(job, info) {
  const { net, inputs, dir } = job;
  const forward = await open(join(dir, 'forward.onnx'));
  const backward = await open(join(dir, 'backward.onnx'));
  try {
    const feeds = feedsOf(forward, inputs);
    const got = await forward.run(feeds);
    const { type } = got[info.loss];
    const one = toOrt(tensor(type, [], [1]));
    const backFeeds = { ...feeds, ...got, [info.loss_gradient]: one };
    for (const name of Object.keys(backFeeds)) {
      if (!backward.inputNames.includes(name)) delete backFeeds[name];
    }
    const gradients = await backward.run(backFeeds);
    const lossAt = async (name, moved) =>
      (await forward.run({ ...feeds, [name]: moved }, [info.loss]))[info.loss].data[0];
    const problems = [];
    for (const input of inputs.filter((each) => each?.wanted)) {
      const gradient = gradients[info.weights[input.name]];
      if (!gradient) {
        problems.push(`${input.name}: no gradient`);
        continue;
      }
      if (String(gradient.dims) !== String(input.dims) || gradient.type !== input.type) {
        problems.push(`${input.name}: ${gradient.type}[${gradient.dims}], not ${input.type}[${input.dims}]`);
        continue;
      }
      const step = net.step ?? (net.linear ? 0.5 : net.float || net.castTo ? 4e-3 : 1e-5);
      const tolerance = net.linear ? (net.float ? 3e-5 : 1e-10) : net.float || net.castTo ? 4e-3 : 3e-8;
      const scale = Math.max(1, ...Array.from(gradient.data, Math.abs));
      const n = input.data.length, some = n > 40 ? 24 : n;
      for (let k = 0; k < some; k++) {
        const i = n > 40 ? (k * 7919 + 13) % n : k;
        const moved = (by) => toOrt({ ...input,
          data: input.data.map((x, e) => (e === i ? x + by : x)) });
        const slope = (await lossAt(input.name, moved(step)) - await lossAt(input.name, moved(-step)))
          / (2 * step);
        const error = Math.abs(slope - gradient.data[i]) / scale;
        if (!(error <= tolerance)) {
          problems.push(`${input.name}[${i}]: gradient ${gradient.data[i]}, differences say ${slope}`);
          break;
        }
      }
    }
    return problems;
  } finally {
    await forward.release();
    await backward.release();
  }
}

const jobs = [];
for (const [at, net] of cases.entries()) {
  if (!net.name.includes(only)) continue;
  const inputs = prepare(net, at);
  let y;
  try {
    y = await outputsOf(net, inputs);
  } catch (error) {
    tap.ok(false, net.name, error.message);
    continue;
  }
  const next = random(at + 99991);
  const R = {};
  for (const [o, name] of outputNames(net).entries()) {
    if (net.parts && !net.parts.includes(o)) continue;
    const { dims, type } = y[name];
    R[name] = tensor(type, [...dims], Array.from({ length: product(dims) }, () => 2 * next() - 1));
  }
  for (const way of ['fixed', 'symbolic', 'bare']) {
    const dir = join(tmp, `${at}-${way}`);
    mkdirSync(dir);
    const { bytes, loss } = build(net, inputs, way, R);
    const file = join(dir, 'model.onnx');
    writeFileSync(file, bytes);
    const keep = process.env.PSPLIT_GRADIENT_MODELS;
    if (keep) copyFileSync(file, join(keep, `${at}-${way}`));
    const options = inputs.flatMap((input, i) => (!input?.wanted ? []
      : [way === 'fixed' || (net.fixed && i > 0) ? `train=${input.name}` : `gradient_of=${input.name}`]));
    // An input that is not a weight keeps the default choice from finding one.
    const line = [file, dir, `=${loss}`, ...options,
      ...(options.some((each) => each.startsWith('train')) ? [] : ['freeze=*'])];
    jobs.push({ net, way, inputs, dir, line: line.join('\t') });
  }
}

const made = spawnSync(tool, { input: jobs.map(({ line }) => `${line}\n`).join(''), encoding: 'utf8',
  maxBuffer: 1 << 28 });
const lines = made.stdout.trim().split('\n');
if (made.status !== 0) tap.ok(false, 'make_training ends well', `${made.status} ${made.signal} ${made.stderr}`);
for (const [k, job] of jobs.entries()) {
  const name = `${job.net.name} ${job.way}`;
  const info = lines[k] ? JSON.parse(lines[k]) : { error: 'nothing was printed' };
  if (info.error) {
    tap.ok(false, name, info.error);
    continue;
  }
  try {
    tap.none(await check(job, info), name);
  } catch (error) {
    tap.ok(false, name, error.message);
  }
}
tap.done();
