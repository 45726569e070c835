// Shape inference against ONNX Runtime: every value of the main graph becomes an untyped output, a
// session with optimisation off runs the model on real inputs, and each tensor that comes out is
// compared with what dump_shapes says under the sizes of that run.
//
//   oracle.mjs DUMP_SHAPES cache            the models of tests/models (PSPLIT_MODEL_CACHE)
//   oracle.mjs DUMP_SHAPES dir DIRECTORY    ONNX backend tests: */model.onnx, test_data_set_0
//   oracle.mjs DUMP_SHAPES file MODEL RUN   one model; RUN is a run of models.json, as JSON
//   oracle.mjs DUMP_SHAPES cases            the one-node models of cases.mjs
//   oracle.mjs DUMP_SHAPES sweep [NAME...]  the cases that sweep.mjs generates
//   oracle.mjs DUMP_SHAPES fixtures         the models of tests/e2e/fixtures.mjs
//   oracle.mjs DUMP_SHAPES list [NAME...]   as `cache`, one line for each value that is not agreed on
//
// A value agrees if rank, type and all sizes are the same, is unknown if a part is not known and the
// rest agrees, and contradicts otherwise. A fault that inference finds (no runtime takes the model)
// contradicts too: it has run. It is asked three ways: of the model as it is; of the model
// without the types that it declares for anything but its inputs, so that the rules alone answer;
// and the latter with symbols fixed only in the results (--eval), not before inference (--bind). The
// backend tests are asked a fourth way, with their inputs as constants, since most rules that depend
// on contents are fed through inputs there.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { makeFeeds } from '../e2e/feeds.mjs';
import { build, buildAll, cases } from './cases.mjs';
import { sweeps } from './sweep.mjs';
import { fixtures, writeFixture } from '../e2e/fixtures.mjs';
import { Tap } from '../e2e/tap.mjs';
import { fields } from '../e2e/wire.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const ort = createRequire(join(here, '../e2e/package.json'))('onnxruntime-node');
const typeNumbers = {
  float32: 1, uint8: 2, int8: 3, uint16: 4, int16: 5, int32: 6, int64: 7, string: 8, bool: 9,
  float16: 10, float64: 11, uint32: 12, uint64: 13,
};

const all = (buffer, wanted) =>
  [...fields(buffer)].filter(([field]) => field === wanted).map(([, value]) => value);
const text = (buffer, wanted) => all(buffer, wanted).map(String).at(-1) ?? '';

// Models of any origin get other outputs and declarations: their bytes are changed where they stand.
function varint(value) {
  const out = [];
  for (let n = BigInt(value); ; n >>= 7n) {
    if (n < 128n) return Buffer.from([...out, Number(n)]);
    out.push(Number(n & 127n) | 128);
  }
}
const block = (field, data) =>
  Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);

// The model with another graph. Fields of ModelProto other than the graph stay as they are.
function withGraph(bytes, make) {
  const [graph] = all(bytes, 7);
  const start = graph.byteOffset - bytes.byteOffset;
  const prefix = block(7, graph).length - graph.length;
  return Buffer.concat([bytes.subarray(0, start - prefix), block(7, make(graph)),
    bytes.subarray(start + graph.length)]);
}

// More graph outputs, without types. A message may hold its fields in any order.
const output = (name) => block(12, block(1, Buffer.from(name)));
const withOutputs = (bytes, names) =>
  withGraph(bytes, (graph) => Buffer.concat([graph, ...names.map(output)]));

// Only what inference needs: nodes, initializers, inputs, and outputs by name.
const undeclared = (bytes) => withGraph(bytes, (graph) => Buffer.concat([...fields(graph)]
  .filter(([field]) => [1, 2, 5, 11, 12, 15].includes(field))
  .map(([field, value]) => (field === 12 ? output(text(value, 1)) : block(field, value)))));

// TensorProto of a fed tensor; nothing for strings.
function initializer(name, tensor) {
  if (!ArrayBuffer.isView(tensor.data)) return Buffer.alloc(0);
  const { buffer, byteOffset, byteLength } = tensor.data;
  return block(5, Buffer.concat([
    ...tensor.dims.map((dim) => Buffer.concat([varint(1 * 8), varint(dim)])),
    varint(2 * 8), varint(typeNumbers[tensor.type]), block(8, Buffer.from(name)),
    block(9, Buffer.from(buffer, byteOffset, byteLength))]));
}

// The fed inputs as initializers, and no longer as inputs.
function constant(bytes, feeds) {
  const fixed = new Map(Object.entries(feeds).map(([name, tensor]) => [name, initializer(name, tensor)])
    .filter(([, init]) => init.length));
  return withGraph(bytes, (graph) => Buffer.concat([
    ...[...fields(graph)].filter(([field, value]) => field !== 11 || !fixed.has(text(value, 1)))
      .map(([field, value]) => block(field, value)),
    ...fixed.values()]));
}

const unescape = (name) => Buffer.from(
  name.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1',
).toString('utf8');

function inferred(dump, file, option, sizes) {
  const args = Object.entries(sizes).flatMap(([name, size]) => [option, `${name}=${size}`]);
  const out = execFileSync(dump, [file, ...args],
    { maxBuffer: 1 << 30, encoding: 'latin1', stdio: ['ignore', 'pipe', 'ignore'] });
  const values = new Map();
  const faults = [];
  for (const line of out.split('\n')) {
    const [kind, name, type, elem, rank, wrong, ...dims] = line.split('\t');
    if (kind === 'V')
      values.set(unescape(name), {
        kind: Number(type), elem: Number(elem), rank: Number(rank), wrong: wrong === '1',
        dims: dims.map((dim) => dim.split('=')[0]), text: dims.join(' '),
      });
    else if (kind === 'F') faults.push(unescape(name));
  }
  return { values, faults };
}

// Sizes that the inputs of a run give to the symbols of the model.
function sizesOf(bytes, feeds) {
  const sizes = {};
  const [graph] = all(bytes, 7);
  for (const input of all(graph, 11)) {
    const feed = feeds[text(input, 1)];
    const [type] = all(input, 2);
    const [tensor] = type ? all(type, 1) : [];
    const [shape] = tensor && feed ? all(tensor, 2) : [];
    if (!shape) continue;
    all(shape, 1).forEach((dim, axis) => {
      const param = text(dim, 2);
      if (param) sizes[param] = feed.dims[axis];
    });
  }
  return sizes;
}

function compare(mine, tensor) {
  const problems = [];
  let unknown = false;
  if (mine.kind === 0 || mine.rank < 0) unknown = true;
  else if (mine.rank !== tensor.dims.length) problems.push(`rank ${mine.rank}`);
  if (mine.elem === 0) unknown = true;
  else if (mine.elem !== typeNumbers[tensor.type]) problems.push(`type ${mine.elem}`);
  if (mine.rank === tensor.dims.length)
    mine.dims.forEach((dim, axis) => {
      if (dim === '?') unknown = true;
      else if (Number(dim) !== tensor.dims[axis]) problems.push(`axis ${axis} ${dim}`);
    });
  return problems.length ? 'contradict' : unknown ? 'unknown' : 'agree';
}

const [dump, mode, ...rest] = process.argv.slice(2);
const ways = ['declared', 'bare', 'later', ...(mode === 'dir' ? ['constant'] : [])];
const scratch = mkdtempSync(join(tmpdir(), 'oracle-'));
const bare = join(scratch, 'bare.onnx');
const newCount = () => ({ agree: 0, unknown: 0, contradict: 0, skipped: 0, wrong: 0 });

// What a session can hand out: names of node outputs that are not outputs yet and are tensors.
function extraOutputs(bytes, values) {
  const [graph] = all(bytes, 7);
  const have = new Set(all(graph, 12).map((output) => text(output, 1)));
  const names = [];
  for (const node of all(graph, 1))
    for (const output of all(node, 2).map(String)) {
      const kind = values.get(output)?.kind;
      if (output && !have.has(output) && (kind === 1 || kind === 0)) names.push(output);
      have.add(output);
    }
  return names;
}

async function run(bytes, names, feeds) {
  const session = await ort.InferenceSession.create(withOutputs(bytes, names),
    { graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1 });
  try {
    return await session.run(feeds(session));
  } finally {
    await session.release?.();
  }
}

async function check(dump, file, feeds, report) {
  const bytes = readFileSync(file);
  const base = inferred(dump, file, '--eval', {}).values;
  const names = extraOutputs(bytes, base);
  let given;
  const keep = (session) => (given = feeds(session));
  let results;
  try {
    results = await run(bytes, names, keep);
  } catch {
    results = await run(bytes, [], keep); // an intermediate of a type that JavaScript cannot hold
  }
  const sizes = sizesOf(bytes, given);
  const counts = {};
  for (const way of ways) {
    if (way !== 'declared' && way !== 'later')
      writeFileSync(bare, way === 'bare' ? undeclared(bytes) : constant(undeclared(bytes), given));
    const { values, faults } = inferred(dump, way === 'declared' ? file : bare,
      way === 'later' ? '--eval' : '--bind', sizes);
    for (const fault of faults) report(`${way} contradict: it ran, and "${fault}"`);
    const count = (counts[way] = newCount());
    for (const [name, tensor] of Object.entries(results)) {
      const mine = values.get(name);
      if (!mine || !tensor || !tensor.dims || typeNumbers[tensor.type] === undefined) {
        count.skipped += 1;
        continue;
      }
      const verdict = compare(mine, tensor);
      count[verdict] += 1;
      if (mine.wrong) count.wrong += 1;
      if (verdict !== 'agree' || mine.wrong)
        report(`${way} ${verdict}${mine.wrong ? ' (declared wrong)' : ''}: ${name} is ` +
               `${tensor.type}[${tensor.dims}], inferred type ${mine.elem} rank ${mine.rank} ` +
               mine.text);
    }
  }
  return counts;
}

function row(label, counts) {
  const cells = ways.map((way) => {
    const c = counts[way];
    return `${way} ${c.agree}/${c.unknown}/${c.contradict}`;
  });
  const { wrong } = counts.declared;
  return `${label}: agree/unknown/contradict ${cells.join(', ')}` +
    (wrong ? `, ${wrong} wrong declarations` : '');
}

// --- tensors of the backend tests ---

const readers = {
  1: [Float32Array, 'float32'], 2: [Uint8Array, 'uint8'], 3: [Int8Array, 'int8'],
  4: [Uint16Array, 'uint16'], 5: [Int16Array, 'int16'], 6: [Int32Array, 'int32'],
  7: [BigInt64Array, 'int64'], 9: [Uint8Array, 'bool'], 10: [Uint16Array, 'float16'],
  11: [Float64Array, 'float64'], 12: [Uint32Array, 'uint32'], 13: [BigUint64Array, 'uint64'],
};

function* varints(value) {
  if (!Buffer.isBuffer(value)) {
    yield BigInt(value);
    return;
  }
  let n = 0n;
  let shift = 0n;
  for (const byte of value) {
    n |= BigInt(byte & 127) << shift;
    shift += 7n;
    if (byte >= 128) continue;
    yield BigInt.asIntN(64, n);
    n = 0n;
    shift = 0n;
  }
}

const aligned = (buffer, Type) => new Type(
  buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.length));

function tensorOf(bytes) {
  const dims = all(bytes, 1).flatMap((value) => [...varints(value)].map(Number));
  const type = Number(all(bytes, 2).at(-1) ?? 0);
  const count = dims.reduce((a, b) => a * b, 1);
  if (type === 8) return new ort.Tensor('string', all(bytes, 6).map(String), dims);
  if (!readers[type]) throw new Error(`tensor type ${type}`);
  const [Type, name] = readers[type];
  const [raw] = all(bytes, 9);
  if (raw) return new ort.Tensor(name, aligned(raw, Type), dims);
  const data = new Type(count);
  const lists = { 1: 4, 11: 10, 7: 7, 12: 11, 13: 11 };
  const chunks = all(bytes, lists[type] ?? 5);
  if (type === 1 || type === 11) {
    const joined = Buffer.concat(chunks);
    data.set(aligned(joined, Type));
  } else {
    const big = type === 7 || type === 13;
    let i = 0;
    for (const chunk of chunks)
      for (const n of varints(chunk)) data[i++] = big ? n : Number(n);
  }
  return new ort.Tensor(name, data, dims);
}

async function directory(dump, path, list) {
  const total = Object.fromEntries(ways.map((way) => [way, newCount()]));
  const contradicted = [];
  const unknown = [];
  const refused = new Map();
  let models = 0;
  const names = readdirSync(path).filter((name) => existsSync(join(path, name, 'model.onnx'))).sort();
  for (const name of names) {
    const file = join(path, name, 'model.onnx');
    try {
      const [graph] = all(readFileSync(file), 7);
      const set = join(path, name, 'test_data_set_0');
      const inputs = all(graph, 11).map((input) => text(input, 1));
      const feeds = {};
      for (const [i, input] of inputs.entries()) {
        const data = join(set, `input_${i}.pb`);
        if (existsSync(data)) feeds[input] = tensorOf(readFileSync(data));
      }
      const lines = [];
      const counts = await check(dump, file, () => feeds, (line) => lines.push(`${name} ${line}`));
      for (const way of ways)
        for (const key of Object.keys(total[way])) total[way][key] += counts[way][key];
      models += 1;
      if (lines.some((line) => line.includes('contradict'))) contradicted.push(...lines);
      else if (counts.constant.unknown) unknown.push(...lines);
    } catch (error) {
      const reason = String(error.message).split('\n')[0].replace(/[0-9]+/g, 'N').slice(0, 60);
      refused.set(reason, (refused.get(reason) ?? 0) + 1);
    }
  }
  console.log(`# ${models} of ${names.length} models ran`);
  console.log(`# ${row(path, total)}`);
  for (const [reason, n] of refused) console.log(`# not run: ${n} ${reason}`);
  if (list) for (const line of unknown) console.log(`# ${line}`);
  return contradicted;
}

// --- generated cases ---

// Of a model of many cases (cases.mjs) a function that takes some of them alone. The model is read once: mostly it is asked
// for one case after the other.
function divided(bytes) {
  const caseOf = (name) => Number(/^[aby](\d+)/.exec(name)?.[1]);
  const read = {
    1: (node) => ({ of: caseOf(text(node, 2)), inputs: all(node, 1).map(String) }),
    5: (tensor) => ({ name: text(tensor, 8) }),
    11: (input) => ({ name: text(input, 1) }),
    12: (output) => ({ of: caseOf(text(output, 1)) }),
  };
  const parts = [...fields(all(bytes, 7)[0])]
    .map(([field, value]) => ({ data: block(field, value), ...read[field]?.(value) }));
  return (cases) => {
    const kept = new Set(cases);
    const used = new Set(parts.flatMap(({ of, inputs = [] }) => (kept.has(of) ? inputs : [])));
    const isKept = ({ of, name }) => (of === undefined ? name === undefined || used.has(name) : kept.has(of));
    return withGraph(bytes, () => Buffer.concat(parts.filter(isKept).map(({ data }) => data)));
  };
}

// Those that ONNX Runtime runs: mostly all of a batch do, else each is asked.
async function runnable(specs) {
  const { bytes, run: settings } = buildAll(specs);
  const only = divided(bytes);
  const good = async (cases) => {
    try {
      await run(only(cases), [], (session) => makeFeeds(session.inputMetadata, settings));
      return cases;
    } catch {
      if (cases.length === 1) return [];
      const parts = [];
      const size = cases.length > 16 ? 16 : 1;
      for (let i = 0; i < cases.length; i += size) parts.push(...await good(cases.slice(i, i + size)));
      return parts;
    }
  };
  return (await good([...specs.keys()])).map((i) => specs[i]);
}

async function sweep(name, specs) {
  const total = Object.fromEntries(ways.map((way) => [way, newCount()]));
  const file = join(scratch, 'sweep.onnx');
  const contradicted = [];
  const byOpset = new Map();
  for (const spec of specs) byOpset.set(spec[1], [...(byOpset.get(spec[1]) ?? []), spec]);
  let ran = 0;
  for (const group of byOpset.values()) {
    for (let i = 0; i < group.length; i += 256) {
      const good = await runnable(group.slice(i, i + 256));
      if (!good.length) continue;
      ran += good.length;
      const { bytes, run: settings } = buildAll(good);
      writeFileSync(file, bytes);
      const counts = await check(dump, file, (session) => makeFeeds(session.inputMetadata, settings),
        (line) => {
          const which = Number(line.match(/: [aby](\d+)/)[1]);
          if (line.includes('contradict')) contradicted.push(`${line} in ${JSON.stringify(good[which])}`);
          else if (process.env.PSPLIT_LIST) console.log(`# ${line} in ${JSON.stringify(good[which])}`);
        });
      for (const way of ways)
        for (const key of Object.keys(total[way])) total[way][key] += counts[way][key];
    }
  }
  tap.none(contradicted.slice(0, 8), row(`${name}: ${ran} of ${specs.length} cases`, total));
}

const tap = new Tap();
if (mode === 'dir' && !existsSync(rest[0])) {
  tap.skip(rest[0], 'not there; package libonnx-testdata has it');
} else if (mode === 'dir') {
  const contradicted = await directory(dump, rest[0], rest[1] === 'list');
  tap.none(contradicted, `no contradiction in ${rest[0]}`);
} else if (mode === 'sweep') {
  for (const [name, make] of Object.entries(sweeps)) {
    if (!rest.length || rest.includes(name)) await sweep(name, [...make()]);
  }
} else if (mode === 'cases' || mode === 'fixtures') {
  const models = mode === 'cases'
    ? cases.map((spec, i) => ({ label: `case ${i} ${spec[0]}`, ...build(spec) }))
    : Object.entries(fixtures).filter(([, { files, unrunnable }]) => !files && !unrunnable)
      .flatMap(([label, { runs }]) => {
        const path = join(scratch, 'fixture.onnx');
        writeFixture(label, path);
        const bytes = readFileSync(path);
        return runs.map((settings) => ({ label, bytes, run: settings }));
      });
  const total = Object.fromEntries(ways.map((way) => [way, newCount()]));
  const file = join(scratch, 'case.onnx');
  const contradicted = [];
  let ran = 0;
  for (const { label, bytes, run: settings } of models) {
    writeFileSync(file, bytes);
    try {
      const lines = [];
      const counts = await check(dump, file,
        (session) => makeFeeds(session.inputMetadata, settings), (line) => lines.push(line));
      for (const way of ways)
        for (const key of Object.keys(total[way])) total[way][key] += counts[way][key];
      ran += 1;
      contradicted.push(...lines.filter((line) => line.includes('contradict'))
        .map((line) => `${label} ${line}`));
      for (const line of lines) if (line.startsWith('bare')) console.log(`# ${label} ${line}`);
    } catch (error) {
      console.log(`# not run: ${label}: ${String(error.message).split('\n')[0].slice(0, 110)}`);
    }
  }
  console.log(`# ${row(`${ran} of ${models.length} models`, total)}`);
  tap.none(contradicted, `no contradiction in ${mode}`);
} else if (mode === 'file') {
  const lines = [];
  const settings = JSON.parse(rest[1] ?? '{}');
  const counts = await check(dump, rest[0],
    (session) => makeFeeds(session.inputMetadata, settings), (line) => lines.push(line));
  for (const line of lines) console.log(`# ${line}`);
  tap.none(lines.filter((line) => line.includes('contradict')), row(rest[0], counts));
} else {
  const cache = process.env.PSPLIT_MODEL_CACHE ?? join(here, '../../.cache/models');
  const { models } = JSON.parse(readFileSync(join(here, '../models/models.json'), 'utf8'));
  for (const [name, model] of Object.entries(models)) {
    if (model.on_request || (mode === 'list' && rest.length && !rest.includes(name))) continue;
    const file = join(cache, `${name}.onnx`);
    if (!existsSync(file)) {
      tap.skip(name, 'not in the model cache');
      continue;
    }
    for (const [i, settings] of (model.runs ?? []).entries()) {
      const lines = [];
      const counts = await check(dump, file,
        (session) => makeFeeds(session.inputMetadata, settings), (line) => lines.push(line));
      const label = model.runs.length > 1 ? `${name} run ${i}` : name;
      // What the file declares and a run does otherwise is not inferred wrongly, but with the file.
      const untrue = model.untrue ? new RegExp(model.untrue) : /^$/;
      const isTold = (line) => untrue.test(line.match(/^declared contradict[^:]*: (.*) is /)?.[1] ?? '');
      tap.none(lines.filter((line) => line.includes('contradict') && !isTold(line)), row(label, counts));
      if (mode === 'list') for (const line of lines) console.log(`# ${line}`);
    }
  }
}
rmSync(scratch, { recursive: true });
tap.done();
