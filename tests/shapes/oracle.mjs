// Shape inference against ONNX Runtime: every value of the main graph becomes an untyped output, a
// session with optimisation off runs the model on real inputs, and each tensor that comes out is
// compared with what dump_shapes says under the sizes of that run.
//
//   oracle.mjs DUMP_SHAPES cache            the models of tests/models (PSPLIT_MODEL_CACHE)
//   oracle.mjs DUMP_SHAPES dir DIRECTORY    ONNX backend tests: */model.onnx, test_data_set_0
//   oracle.mjs DUMP_SHAPES list [NAME...]   as `cache`, one line for each value that is not agreed on
//
// A value agrees if rank, type and all sizes are the same, is unknown if a part is not known and the
// rest agrees, and contradicts otherwise. Symbols are compared twice: fixed before inference
// (--bind) and only in the results (--eval).
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { makeFeeds } from '../e2e/feeds.mjs';
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

function varint(value) {
  const out = [];
  for (let n = BigInt(value); ; n >>= 7n) {
    if (n < 128n) return Buffer.from([...out, Number(n)]);
    out.push(Number(n & 127n) | 128);
  }
}
const block = (field, data) =>
  Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);

// The model with more graph outputs, without types. Fields of ModelProto other than the graph stay
// as they are; a message may hold its fields in any order.
function withOutputs(bytes, names) {
  const [graph] = all(bytes, 7);
  const start = graph.byteOffset - bytes.byteOffset;
  const head = bytes.subarray(0, start);
  // Step back over the length and the key of the graph field.
  const prefix = block(7, graph).length - graph.length;
  const more = Buffer.concat(names.map((name) => block(12, block(1, Buffer.from(name)))));
  const whole = Buffer.concat([graph, more]);
  return Buffer.concat([head.subarray(0, start - prefix), block(7, whole),
    bytes.subarray(start + graph.length)]);
}

const unescape = (name) => Buffer.from(
  name.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1',
).toString('utf8');

function inferred(dump, file, option, sizes) {
  const args = Object.entries(sizes).flatMap(([name, size]) => [option, `${name}=${size}`]);
  const out = execFileSync(dump, [file, ...args],
    { maxBuffer: 1 << 30, encoding: 'latin1', stdio: ['ignore', 'pipe', 'ignore'] });
  const values = new Map();
  for (const line of out.split('\n')) {
    const [kind, name, type, elem, rank, wrong, ...dims] = line.split('\t');
    if (kind === 'V')
      values.set(unescape(name), {
        kind: Number(type), elem: Number(elem), rank: Number(rank), wrong: wrong === '1',
        dims: dims.map((dim) => dim.split('=')[0]), text: dims.join(' '),
      });
  }
  return values;
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
    { graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 2 });
  try {
    return await session.run(feeds(session));
  } finally {
    await session.release?.();
  }
}

async function check(dump, file, feeds, report) {
  const bytes = readFileSync(file);
  const base = inferred(dump, file, '--eval', {});
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
  for (const option of ['--bind', '--eval']) {
    const values = inferred(dump, file, option, sizes);
    const count = (counts[option] = newCount());
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
        report(`${option} ${verdict}${mine.wrong ? ' (declared wrong)' : ''}: ${name} is ` +
               `${tensor.type}[${tensor.dims}], inferred type ${mine.elem} rank ${mine.rank} ` +
               mine.text);
    }
  }
  return counts;
}

function row(label, counts) {
  const cells = ['--bind', '--eval'].map((option) => {
    const c = counts[option];
    return `${c.agree}/${c.unknown}/${c.contradict}`;
  });
  return `${label}: agree/unknown/contradict ${cells[0]} fixed before, ${cells[1]} fixed after` +
    (counts['--bind'].wrong ? `, ${counts['--bind'].wrong} wrong declarations` : '');
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
  const total = { '--bind': newCount(), '--eval': newCount() };
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
      for (const option of ['--bind', '--eval'])
        for (const key of Object.keys(total[option])) total[option][key] += counts[option][key];
      models += 1;
      if (lines.some((line) => line.includes('contradict'))) contradicted.push(...lines);
      else if (counts['--bind'].unknown) unknown.push(...lines);
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

const [dump, mode, ...rest] = process.argv.slice(2);
const tap = new Tap();
if (mode === 'dir') {
  const contradicted = await directory(dump, rest[0], rest[1] === 'list');
  tap.none(contradicted, `no contradiction in ${rest[0]}`);
} else {
  const cache = process.env.PSPLIT_MODEL_CACHE ?? join(here, '../../.cache/models');
  const { models } = JSON.parse(readFileSync(join(here, '../models/models.json'), 'utf8'));
  for (const [name, model] of Object.entries(models)) {
    if (mode === 'list' && rest.length && !rest.includes(name)) continue;
    const file = join(cache, `${name}.onnx`);
    if (!existsSync(file)) {
      tap.skip(name, 'not in the model cache');
      continue;
    }
    for (const [i, settings] of model.runs.entries()) {
      const lines = [];
      const counts = await check(dump, file,
        (session) => makeFeeds(session.inputMetadata, settings), (line) => lines.push(line));
      const label = model.runs.length > 1 ? `${name} run ${i}` : name;
      tap.none(lines.filter((line) => line.includes('contradict')), row(label, counts));
      if (mode === 'list') for (const line of lines) console.log(`# ${line}`);
    }
  }
}
tap.done();
