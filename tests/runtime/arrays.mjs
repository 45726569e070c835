// Arrays as numpy may write them, and outputs that are none:
//
//   node arrays.mjs RUN SPLIT ['no zlib']
//
// Compressed archives, Fortran order, either byte order, types whose values another holds: each gives what the plain
// array gives, or says what it is. Damaged archives are named.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { npyBytes, readNpy, writeNpy, writeNpz } from './npy.mjs';
import { Runner } from './runner.mjs';

const [runner, splitter, noZlib] = process.argv.slice(2);
const each = new Runner(runner, splitter, '', 2);
const { tap, tmp } = each;

function split(name, text) {
  const model = join(tmp, `${name}.onnx`);
  const dir = join(tmp, name);
  writeModel(text, model);
  const made = spawnSync(splitter, [model, '-k', '2', '-o', dir, '--quiet', '--dim', 'n=3'], { encoding: 'utf8' });
  if (!tap.ok(made.status === 0, `${name} is split`, made.stderr)) process.exit(1);
  return dir;
}
const WEIGHTS = 'float[8,8] w0 = random(1), float[8,8] w1 = random(2)';
const BODY = `[n_a] a0 = MatMul (x, w0)
  [n_b] a1 = Tanh (a0)
  [n_c] a2 = MatMul (a1, w1)
  [n_d] y = Tanh (a2)`;

// Orders and archives.
const TYPES = { d: 'float64', h: 'float16', l: 'int64', i: 'int32', s: 'int16', u: 'uint64', t: 'string', f: 'float32' };
const ONNX = { float64: 'double', float32: 'float' };
const typed = (type) => ONNX[type] ?? type;
const inputs = Object.entries(TYPES);
const dir = split('typed', `<ir_version: 8, opset_import: [{version: 17}]>
typed (float[n,8] x, ${inputs.map(([name, type]) => `${typed(type)}[p,q,r] ${name}`).join(', ')})
  => (float[n,8] y, ${inputs.map(([name, type]) => `${typed(type)}[p,q,r] ${name}_out`).join(', ')})
<${WEIGHTS}> {
  ${BODY}
  ${inputs.map(([name]) => `[o_${name}] ${name}_out = Identity (${name})`).join('\n  ')}
}`);
const { outputs } = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
const x = { type: 'float32', dims: [3, 8], data: Float32Array.from({ length: 24 }, (_, i) => i / 24) };
const make = {
  float64: (i) => i / 7 - 1e300, float32: (i) => i / 7, float16: (i) => 0x3c00 + i, int64: (i) => -(1n << 62n) + BigInt(i),
  int32: (i) => i - 0x7ffffff0, int16: (i) => 300 * i - 32000, uint64: (i) => (1n << 63n) + BigInt(i),
  string: (i) => `${'ab'.repeat(i % 3)}ñ😀`.slice(i % 2),
};
const kinds = { float64: Float64Array, float32: Float32Array, float16: Uint16Array, int64: BigInt64Array,
  int32: Int32Array, int16: Int16Array, uint64: BigUint64Array, string: Array };
const dims = [2, 3, 4];
const tensors = { x };
for (const [name, type] of inputs) {
  tensors[name] = { type, dims, data: kinds[type].from({ length: 24 }, (_, i) => make[type](i)) };
}
const contents = (out) => readdirSync(out).sort().map((file) => readFileSync(join(out, file)).toString('base64')).join();
let wanted;
function gives(title, ...args) {
  const out = join(tmp, title.replaceAll(' ', '-'));
  const { status, stderr } = each.run([dir, '-q', '-o', out, ...args]);
  if (!tap.ok(status === 0, title, stderr)) return;
  wanted ??= contents(out);
  tap.ok(contents(out) === wanted, `${title}: the same`);
}
function files(as, options) {
  return Object.entries(tensors).flatMap(([name, tensor]) => {
    writeFileSync(join(tmp, `${name}-${as}.npy`), npyBytes(tensor, options));
    return ['-i', `${name}=${join(tmp, `${name}-${as}.npy`)}`];
  });
}
gives('plain', ...files('plain'));
const plain = readNpy(join(tmp, 'plain', `0-${outputs.findIndex(({ name }) => name === 'l_out')}.npy`));
tap.ok(plain.data.every((value, i) => value === tensors.l.data[i]), 'they pass as they are');
gives('Fortran order', ...files('fortran', { fortran: true }));
gives('big-endian', ...files('big', { big: true }));
gives('both', ...files('both', { fortran: true, big: true }));
writeNpz(join(tmp, 'stored.npz'), tensors);
gives('an archive', '-i', join(tmp, 'stored.npz'));
// As the directory tells it: bzip2 and LZMA, a member under a password.
for (const [what, at, value] of [['bzip2', 10, 12], ['LZMA', 10, 14], ['a password', 8, 1]]) {
  const other = readFileSync(join(tmp, 'stored.npz')), file = join(tmp, 'other.npz');
  for (let entry = -1; (entry = other.indexOf('PK\x01\x02', entry + 1, 'latin1')) >= 0;) other.writeUInt16LE(value, entry + at);
  writeFileSync(file, other);
  each.fails(`an archive with ${what}`, 5, /other\.npz is encrypted, or not compressed as numpy does it/, [dir, '-i', file]);
}
writeNpz(join(tmp, 'packed.npz'), tensors, { deflate: true });
if (noZlib) {
  each.fails('a compressed archive', 5, /compressed.*without zlib/, [dir, '-i', join(tmp, 'packed.npz')]);
} else {
  gives('a compressed archive', '-i', join(tmp, 'packed.npz'));
  // One byte after the other is another: it is noticed, or is one that nobody reads (names, dates).
  const bytes = readFileSync(join(tmp, 'packed.npz'));
  const bad = join(tmp, 'bad.npz');
  const problems = [];
  for (let at = 60; at < 460; at += 20) {
    const spoilt = Buffer.from(bytes);
    spoilt[at] ^= 0x55;
    writeFileSync(bad, spoilt);
    const out = join(tmp, `bad${at}`);
    const { status, stderr } = each.run([dir, '-q', '-o', out, '-i', bad]);
    if (status === 0 ? contents(out) !== wanted : status !== 4 && status !== 2) problems.push(`${at}: ${status} ${stderr}`);
  }
  tap.none(problems, 'damage is noticed');
  const huge = Buffer.from(bytes); // of the first member, as the directory tells it
  huge.writeUInt32LE(0xfffffff0, huge.indexOf('PK\x01\x02', 0, 'latin1') + 24);
  writeFileSync(bad, huge);
  each.fails('more bytes than can be in it', 4, /damaged/, [dir, '-i', bad]);
  // Zeros take a thousandth of their size: as many are unpacked as the input needs, where that is known, or 64 MiB.
  const open = split('open', `<ir_version: 8, opset_import: [{version: 17}]>\nopen (float[n,8] x) => (float[n,8] y) <${WEIGHTS}> {\n${BODY}\n}`);
  const zeros = (rows) => {
    const file = join(tmp, `zeros-${rows}.npz`);
    writeNpz(file, { x: { type: 'float32', dims: [rows, 8], data: new Float32Array(rows * 8) } }, { deflate: true });
    return file;
  };
  const few = zeros(2000000), many = zeros(2200000);
  for (const [title, file, ...more] of [['61 MiB of zeros', few], ['67 MiB, with --dim', many, '--dim', 'n=2200000'],
    ['with --shape', many, '--shape', 'x=2200000,8'], ['with --max-unpacked', many, '--max-unpacked', '68']]) {
    const { status, stderr } = each.run([open, '-q', '-i', file, ...more]);
    tap.ok(status === 0, `zeros: ${title}`, `${status} ${stderr}`);
  }
  const refused = /zeros-2200000\.npz: an array of 70400128 bytes is packed into \d+, more than 67108864 are not unpacked; the limit is lifted by --max-unpacked MIB$/m;
  each.fails('zeros: more, of a size that is not known', 6, refused, [open, '-i', many]);
  each.fails('zeros: more than the input needs', 6, refused, [open, '-i', many, '--dim', 'n=3']);
}
writeFileSync(join(tmp, 'short.npy'), npyBytes(tensors.d, { fortran: true }).subarray(0, 200));
each.fails('an array that is cut off', 4, /size of its shape/,
  [dir, ...files('plain'), '-i', `d=${join(tmp, 'short.npy')}`].filter((arg, i, all) =>
    !(/^d=.*plain/.test(arg) || (arg === '-i' && /^d=.*plain/.test(all[i + 1])))));

// Casts: each type with its least and its greatest value.
const HALF_MOST = 0x7bff;
const extremes = {
  float64: [-Number.MAX_VALUE, Number.MAX_VALUE], float32: [-3.4028234663852886e38, 3.4028234663852886e38],
  float16: [0x8000 | HALF_MOST, HALF_MOST], int64: [-(1n << 63n), (1n << 63n) - 1n], uint64: [0n, (1n << 64n) - 1n],
  int32: [-(2 ** 31), 2 ** 31 - 1], uint32: [0, 2 ** 32 - 1], int16: [-32768, 32767], uint16: [0, 65535],
  int8: [-128, 127], uint8: [0, 255], bool: [0, 1],
};
const arrays = { ...kinds, uint32: Uint32Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array };
const HOLDS = {
  float64: ['float32', 'float16', 'int32', 'uint32', 'int16', 'uint16', 'int8', 'uint8', 'bool'],
  float32: ['float16', 'int16', 'uint16', 'int8', 'uint8', 'bool'], float16: ['int8', 'uint8', 'bool'],
  int64: ['int32', 'uint32', 'int16', 'uint16', 'int8', 'uint8', 'bool'], uint64: ['uint32', 'uint16', 'uint8', 'bool'],
  int32: ['int16', 'uint16', 'int8', 'uint8', 'bool'], int16: ['int8', 'uint8', 'bool'],
};
const number = (type, value) => (type !== 'float16' ? Number(value)
  : (value & 0x8000 ? -1 : 1) * 2 ** ((value >> 10 & 31) - 25) * (1024 + (value & 1023)) * (value & 0x7fff ? 1 : 0));
const problems = [];
for (const from of Object.keys(extremes)) {
  const file = join(tmp, `${from}.npy`);
  const source = { type: from, dims: [1, 1, 2], data: arrays[from].from(extremes[from]) };
  writeNpy(file, source);
  const one = { ...tensors };
  for (const [name, type] of inputs) {
    const casts = HOLDS[type]?.includes(from);
    if (from === type || (from === 'uint16' && type === 'float16')) continue; // taken for the bits of it
    const args = ['x', ...inputs.map(([other]) => other)].flatMap((other) => {
      const { type: t } = one[other];
      const small = { type: t, dims: [1, 1, 2], data: t === 'string' ? ['a', 'b'] : arrays[t].from(extremes[t]) };
      if (other !== 'x') writeNpy(join(tmp, `${other}-small.npy`), small);
      return ['-i', `${other}=${other === name ? file : join(tmp, `${other}-${other === 'x' ? 'plain' : 'small'}.npy`)}`];
    });
    const out = join(tmp, `cast-${from}-${type}`);
    const { status, stderr } = each.run([dir, '-q', '--safe-casts', '-o', out, ...args]);
    if (status !== (casts ? 0 : 4)) problems.push(`${from} as ${type}: ${status} ${stderr}`);
    if (!casts || status !== 0) continue;
    const got = readNpy(join(out, `0-${outputs.findIndex((output) => output.name === `${name}_out`)}.npy`));
    if (![0, 1].every((i) => number(type, got.data[i]) === number(from, source.data[i]))) {
      problems.push(`${from} as ${type}: ${got.data} is not ${source.data}`);
    }
    if (from === 'int8' && each.run([dir, '-q', ...args]).status !== 4) problems.push(`${from} as ${type}, not asked for`);
  }
}
tap.none(problems, 'types are cast on request, and only where all values fit');

// Sequences and optional values as outputs.
const sequences = split('sequences', `<ir_version: 8, opset_import: [{version: 17}]>
sequences (float[n,8] x) => (seq(float[n,1]) s, float[n,8] y, optional(float[n,8]) o)
<${WEIGHTS}> {
  ${BODY}
  [n_s] s = SplitToSequence <axis = 1> (y)
  [n_o] o = Optional (y)
}`);
const out = join(tmp, 'sequences-out');
const { status, stderr } = each.run([sequences, '-q', '-o', out, '-i', `x=${join(tmp, 'x-plain.npy')}`]);
tap.ok(status === 0 && readdirSync(out).sort().join() === '0-0.pb,0-1.npy,0-2.npy,outputs.json', 'sequences are written',
  `${stderr}${readdirSync(out)}`);
// SequenceProto: field 2 is 1 (tensors), field 3 each of them; TensorProto: raw_data is field 9, and the last.
const bytes = readFileSync(join(out, '0-0.pb'));
const y = readNpy(join(out, '0-1.npy'));
const columns = [];
for (let at = 2; at < bytes.length; at += 2 + bytes[at + 1]) {
  const raw = bytes.subarray(at + 2 + bytes[at + 1] - 12, at + 2 + bytes[at + 1]);
  columns.push([0, 4, 8].map((i) => raw.readFloatLE(i)));
}
tap.ok(bytes[0] === 0x10 && bytes[1] === 1 && columns.length === 8 &&
  columns.every((column, c) => column.every((value, row) => value === y.data[8 * row + c])), 'with their values');

// Sequences as inputs: what was written is read, and written as it was.
const taken = split('taken', `<ir_version: 8, opset_import: [{version: 17}]>
taken (seq(float[n,1]) s, float[n,8] x) => (seq(float[n,1]) same, float[n,8] y, float[n,1] last)
<${WEIGHTS}, int64 i = {-1}> {
  ${BODY}
  [n_same] same = Identity (s)
  [n_last] last = SequenceAt (s, i)
}`);
const given = (file, ...more) => [taken, '-q', '-i', `x=${join(tmp, 'x-plain.npy')}`, '-i', `s=${file}`, ...more];
const again = join(tmp, 'taken-out');
const ran = each.run(given(join(out, '{}-0.pb'), '-o', again));
tap.ok(ran.status === 0 && readFileSync(join(again, '0-0.pb')).equals(bytes), 'a sequence is read', ran.stderr);
tap.ok(readNpy(join(again, '0-2.npy')).data.every((value, row) => value === columns[7][row]), 'with its values');
const name = join(tmp, 'other.pb');
const refused = (title, code, pattern, content, ...more) => {
  writeFileSync(name, content);
  each.fails(title, code, pattern, given(name, ...more));
};
refused('a torn sequence', 4, /other\.pb: not a SequenceProto/, bytes.subarray(0, bytes.length - 1));
refused('a length beyond the file', 4, /not a SequenceProto/, Buffer.from([0x10, 1, 0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 1]));
refused('a sequence of sequences', 5, /not a sequence of tensors/, Buffer.from([0x10, 3]));
refused('an empty sequence', 5, /an empty sequence/, Buffer.from([0x10, 1]));
refused('a sequence of no tensors', 4, /not a TensorProto|data and dims|holds|too large|type/, Buffer.from([0x10, 1, 0x1a, 1, 0xff]));
refused('a sequence from a stream', 5, /input s is not a tensor/, bytes, '--stream');
each.fails('a sequence from an array', 5, /x-plain\.npy: a sequence is read from a \.pb/, given(join(tmp, 'x-plain.npy')));
each.fails('no sequence is made', 2, /there is no data for input s, a sequence/, [taken, '-q', '--random']);
each.fails('a sequence into a stream', 5, /output s: .*not a dense tensor/,
  [sequences, '-q', '-o', '-', '-i', `x=${join(tmp, 'x-plain.npy')}`]);
tap.done();
