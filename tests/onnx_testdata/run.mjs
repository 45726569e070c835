// The ONNX project's own test models: each is opened, split, proved and run.
//
//   node run.mjs SPLIT VERIFY [--data DIR] [--tap] [--jobs N] [--only TEXT]
//
// For each model: K = 1 in both kinds of boundary, proved (the model survives the round trip);
// where it has more than one node K = 2 likewise, and, where ONNX Runtime runs the whole model,
// stage by stage on the inputs that come with it: every output has the bits of the whole run.
// Prints a table, each refusal with its reason, and totals; with --tap one test for each model.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Tap, skipAll } from '../e2e/tap.mjs';
import { fields } from '../e2e/wire.mjs';

const places = ['/usr/share/libonnx-testdata/data',
  '/usr/lib/python3/dist-packages/onnx/backend/test/data'];

// --- the data sets: TensorProto files ---

const types = {
  1: ['float32', Float32Array], 2: ['uint8', Uint8Array], 3: ['int8', Int8Array],
  4: ['uint16', Uint16Array], 5: ['int16', Int16Array], 6: ['int32', Int32Array],
  7: ['int64', BigInt64Array], 8: ['string'], 9: ['bool', Uint8Array],
  10: ['float16', Uint16Array], 11: ['float64', Float64Array], 12: ['uint32', Uint32Array],
  13: ['uint64', BigUint64Array],
};
const packedVarints = (value) => {
  if (typeof value === 'number') return [BigInt(value)];
  const out = [];
  for (let at = 0; at < value.length;) {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(value[at++]);
      n |= (byte & 127n) << shift;
      if (byte < 128n) break;
    }
    out.push(BigInt.asIntN(64, n));
  }
  return out;
};

function readTensor(bytes, ort) {
  const dims = [], varints = [], strings = [], floats = [];
  let type, raw;
  for (const [field, value] of fields(bytes)) {
    if (field === 1) dims.push(...packedVarints(value).map(Number));
    else if (field === 2) type = value;
    else if (field === 4 || field === 10) floats.push(value);
    else if (field === 5 || field === 7 || field === 11) varints.push(...packedVarints(value));
    else if (field === 6) strings.push(value.toString());
    else if (field === 9) raw = value;
  }
  if (!types[type]) throw new Error(`input of element type ${type}`);
  const [name, View] = types[type];
  if (name === 'string') return new ort.Tensor('string', strings, dims);
  const packed = raw ?? (floats.length ? Buffer.concat(floats) : undefined);
  const data = packed ? new View(Uint8Array.from(packed).buffer)
    : View.from(varints, (n) => (View.name.startsWith('Big') ? n : Number(n)));
  return new ort.Tensor(name, data, dims);
}

// --- one model, in a worker: a crash of the runtime costs one model, not the run ---

const countNodes = (file) => {
  for (const [field, graph] of fields(readFileSync(file))) {
    if (field === 7) return [...fields(graph)].filter(([inner]) => inner === 1).length;
  }
  return 0;
};
const reason = (text) => text.trim().split('\n')[0].replace(/^error: (.*?[.]onnx: )?/, '');

async function examine(tools, directory, tmp, chain, ort) {
  const file = join(directory, 'model.onnx');
  const out = { nodes: 0, opened: false, proved: [], identical: [], notes: [] };
  try {
    out.nodes = countNodes(file);
  } catch (error) {
    out.notes.push(`its bytes cannot be read: ${error.message}`);
  }
  const splitAndProve = (k, boundary) => {
    const dir = join(tmp, `${k}-${boundary}`);
    rmSync(dir, { recursive: true, force: true });
    const args = { encoding: 'utf8', timeout: 60000 };
    const split = spawnSync(tools[0], [file, '-k', `${k}`, '-o', dir, '--boundary', boundary, '-q'],
      args);
    if (split.status !== 0) {
      const known = [4, 5, 6, 7].includes(split.status) && /^error: .+/.test(split.stderr);
      return { refused: known, status: split.status, why: reason(split.stderr) };
    }
    const proof = spawnSync(tools[1], [dir, '--model', file], args);
    if (proof.status === 0) return { dir };
    return { status: proof.status, why: `not proved: ${reason(proof.stderr)}` };
  };
  let whole;
  const runWhole = async () => {
    const session = await chain.open(file);
    try {
      const set = join(directory, 'test_data_set_0');
      const feeds = {};
      for (const [i, name] of session.inputNames.entries()) {
        const from = join(set, `input_${i}.pb`);
        if (session.inputMetadata[i] && !session.inputMetadata[i].isTensor) {
          throw new Error('an input is not a tensor, which the Node binding cannot pass');
        }
        if (existsSync(from)) feeds[name] = readTensor(readFileSync(from), ort);
      }
      return { feeds, outputs: await session.run(feeds) };
    } finally {
      await session.release();
    }
  };
  for (const k of out.nodes > 1 ? [1, 2] : [1]) {
    for (const boundary of ['sendrecv', 'io']) {
      const key = `${k}-${boundary}`;
      const result = splitAndProve(k, boundary);
      if (!result.dir) {
        const verdict = result.refused ? 'refused' : 'FAILED';
        out.notes.push(`K=${k}: ${verdict} (${result.status}): ${result.why}`);
        if (!result.refused) out.failed = true;
        continue;
      }
      if (k === 1) out.opened = true;
      out.proved.push(key);
      if (k === 1) continue;
      try {
        whole ??= await runWhole();
      } catch (error) {
        whole = { why: String(error.message ?? error) };
      }
      if (whole.why) {
        out.unrun = whole.why.split('\n')[0];
        continue;
      }
      const manifest = JSON.parse(readFileSync(join(result.dir, 'pipeline.json')));
      let problem = '';
      try {
        const staged = await chain.runChain(result.dir, manifest, whole.feeds);
        for (const [name, tensor] of Object.entries(whole.outputs)) {
          const difference = chain.difference(tensor, staged[name]);
          if (difference) problem ||= `${name}: ${difference}`;
        }
      } catch (error) {
        problem = String(error.message ?? error).split('\n')[0];
      }
      if (problem) {
        out.failed = true;
        out.notes.push(`${key}: run: ${problem}`);
      } else {
        out.identical.push(key);
      }
    }
  }
  return out;
}

async function work(tools) {
  const chain = await import('../e2e/chain.mjs');
  const { ort } = chain;
  const tmp = mkdtempSync(join(tmpdir(), 'psplit-testdata-'));
  process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
  for await (const directory of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await examine(tools, directory, tmp, chain, ort)));
  }
  process.exit(0);
}

// --- all models ---

// Feeds one worker from the common queue, one model at a time.
async function drain(tools, queue, results) {
  while (queue.length) {
    const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--worker', ...tools],
      { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.on('error', () => {});
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    for (let crashed = false; queue.length && !crashed;) {
      const directory = queue.shift();
      child.stdin.write(`${directory}\n`);
      const { value, done } = await lines.next();
      crashed = done;
      results.set(directory, done
        ? { nodes: 0, proved: [], identical: [], failed: true, notes: ['ONNX Runtime crashed'] }
        : JSON.parse(value));
    }
    child.kill();
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string' }, tap: { type: 'boolean' }, jobs: { type: 'string', default: '2' },
    only: { type: 'string', default: '' }, worker: { type: 'boolean' },
  },
});
if (values.worker) await work(positionals);

const data = values.data ?? places.find((place) => existsSync(join(place, 'node')));
if (!data || !existsSync(data)) {
  skipAll('the ONNX test models are not installed; Debian has them in libonnx-testdata');
}
const queue = readdirSync(data).sort().flatMap((group) => {
  const folder = join(data, group);
  return statSync(folder).isDirectory()
    ? readdirSync(folder).sort().map((name) => join(folder, name))
      .filter((each) => existsSync(join(each, 'model.onnx')) && each.includes(values.only)) : [];
});
const models = [...queue];
const results = new Map();
await Promise.all(
  Array.from({ length: Number(values.jobs) }, () => drain(positionals, queue, results)));

const columns = ['models', 'opened', 'several', 'split', 'identical', 'refused', 'failed'];
const tap = new Tap(values.tap ? console.log : () => {});
const groups = new Map();
const reasons = new Map();
const note = (text, name) => reasons.set(text, [...(reasons.get(text) ?? []), name]);
for (const directory of models) {
  const [group, name] = directory.split('/').slice(-2);
  const result = results.get(directory);
  const row = groups.get(group) ?? Object.fromEntries(columns.map((each) => [each, 0]));
  groups.set(group, row);
  const bad = Boolean(result.failed);
  row.models += 1;
  row.opened += result.opened ? 1 : 0;
  row.several += result.nodes > 1 ? 1 : 0;
  row.split += result.proved.filter((key) => key.startsWith('2-')).length === 2 ? 1 : 0;
  row.identical += result.identical.length === 2 ? 1 : 0;
  row.refused += !bad && result.notes.length ? 1 : 0;
  row.failed += bad ? 1 : 0;
  for (const each of new Set(result.notes)) note(each, name);
  const unrun = result.unrun?.replace(/^Load model from \S+ failed:(Fatal error: )?/, '');
  if (unrun) note(`split and proved, not run: ${unrun}`, name);
  const what = `${result.proved.length} of ${result.nodes > 1 ? 4 : 2} proved` +
    (result.nodes > 1 ? `, ${result.identical.length} run` : '');
  tap.ok(!bad, `${group}/${name}: ${what}`, result.notes.join('\n'));
}
if (values.tap) {
  tap.done();
} else {
  const line = (name, row) => console.log(
    name.padEnd(20) + columns.map((each) => String(row[each]).padStart(10)).join(''));
  line('', Object.fromEntries(columns.map((each) => [each, each])));
  const total = Object.fromEntries(columns.map((each) => [each, 0]));
  for (const [group, row] of groups) {
    line(group, row);
    for (const each of columns) total[each] += row[each];
  }
  line('all', total);
  console.log('\nreasons:');
  for (const [text, names] of [...reasons].sort(([, a], [, b]) => b.length - a.length)) {
    const some = names.slice(0, 3).join(', ') + (names.length > 3 ? ', ...' : '');
    console.log(`${String(names.length).padStart(5)}  ${text}  (${some})`);
  }
  process.exitCode = total.failed ? 1 : 0;
}
