// What no runtime takes: refused.mjs SPLIT INSPECT VERIFY
//
// Each model breaks one rule. ONNX Runtime refuses it, when it loads or when it runs; split and inspect
// refuse it in one line that names the node, and write nothing; where that is asked for, it is split all
// the same, with a warning, and the stages are proved to be the model. Models beside them that are near
// and right pass. What ONNX Runtime does run is never refused: oracle.mjs looks at that for each model that
// it asks about. Results as TAP.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tap } from '../e2e/tap.mjs';
import { modelBytes } from '../support/text_model.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const ort = createRequire(join(here, '../e2e/package.json'))('onnxruntime-node');
const header = (opset, more = '') => `<ir_version: 8, opset_import: ["": ${opset}${more}]>`;
const graph = (text, opset = 17) => `${header(opset)} g ${text}`;
const relu = (opset) => graph('(float[2,3] x) => (float[2,3] y) {[n] a = Relu (x) y = Relu (a)}', opset);

// Title, model, what the error names besides the file.
const wrong = [
  ['inputs of two types', graph('(float[2,3] x, int64[2,3] z) => (float[2,3] y) {[n] a = Add (x, z) y = Relu (a)}'),
    'float32 and int64'],
  ['two types in a body', graph(`(float[2] x, int64[2] z, bool c) => (float[2] y) {[i] y = If (c) <
      then_branch = t () => (a) { [n] a = Mul (x, z) }, else_branch = e () => (b) { b = Relu (x) }>}`),
    'float32 and int64'],
  ['two types among many', graph('(float[2] x, int64[2] z) => (y) {[n] y = Concat <axis = 0> (x, x, z)}'),
    'float32 and int64'],
  ['a product of integers in a convolution',
    graph('(int64[1,5,8,8] x, int64[4,5,3,3] w) => (y) {[n] a = Conv (x, w) y = Abs (a)}'), 'floating-point'],
  ['a condition of floats', graph('(float[2] x, float[2] z) => (y) {[n] a = Where (x, x, z) y = Relu (a)}'), 'bool'],
  ['an If on a float', graph(`(float[2] x) => (float[2] y) {[n] y = If (x) <
      then_branch = t () => (a) { a = Abs (x) }, else_branch = e () => (b) { b = Relu (x) }>}`), 'bool'],
  ['a shape of int32', graph('(float[2,5] x, int32[1] s) => (y) {[n] a = Reshape (x, s) y = Relu (a)}'), 'int64'],
  ['a result of another type', graph('(float[2,3] x) => (int64[2,3] y) {[n] y = Relu (x)}'), 'declared as int64'],
  ['5 columns and 6 rows', graph(`(float[2,5] x, float[6,3] w) => (float[2,3] y)
      {a = Relu (x) [n] y = MatMul (a, w)}`), '5 is not 6'],
  ['the same, and the result is not used', graph(`(float[2,5] x, float[6,3] w) => (y)
      {y = Relu (x) [n] z = MatMul (x, w)}`), '5 is not 6'],
  ['batches of 2 and 3', graph('(float[2,4,5] x, float[3,5,6] w) => (y) {[n] a = MatMul (x, w) y = Relu (a)}'),
    '2 is not 3'],
  ['Gemm of 5 and 6', graph('(float[2,5] x, float[6,3] w) => (y) {[n] a = Gemm (x, w) y = Relu (a)}'), '5 is not 6'],
  ['Gemm transposed', graph(`(float[5,2] x, float[3,6] w) => (y)
      {[n] a = Gemm <transA = 1, transB = 1> (x, w) y = Relu (a)}`), '5 is not 6'],
  ['no broadcast', graph('(float[2,5] x, float[2,3] z) => (y) {[n] a = Add (x, z) y = Relu (a)}'), '5 is not 3'],
  ['channels of a convolution', graph(`(float[1,6,8,8] x, float[4,2,3,3] w) => (y)
      {[n] a = Conv <group = 2> (x, w) y = Relu (a)}`), '6 is not 4'],
  ['sizes of a Concat', graph('(float[2,5] x, float[3,4] z) => (y) {[n] a = Concat <axis = 1> (x, z) y = Relu (a)}'),
    '2 is not 3'],
  ['a Reshape to more', graph('(float[2,5] x) => (y) <int64[2] s = {3,4}> {[n] a = Reshape (x, s) y = Relu (a)}'),
    '10 is not 12'],
  ['opset 99', relu(99), '99'],
  ['opset 27', relu(27), '27'],
  ['no operator sets', '<ir_version: 8, opset_import: []> g (float[2] x) => (y) {[n] a = Abs (x) y = Relu (a)}',
    'no operator set'],
  ['an unknown domain without an import', graph('(float[2] x) => (float[2] y) {[n] a = foo.Bar (x) y = Relu (a)}'),
    'foo'],
  ['an input too few', graph('(float[2,3] x) => (float[2,3] y) {[n] a = MatMul (x) y = Relu (a)}'), 'input 1'],
  ['an input without a name', graph('(float[2,3] x) => (float[2,3] y) {[n] a = MatMul (x, "") y = Relu (a)}'),
    'input 1'],
  ['an input that the opset needs', graph('(float[2,5] x) => (y) {[n] a = Slice (x) y = Relu (a)}'), 'input 1'],
  ['no inputs of many', graph('(float[2,5] x) => (y) {[n] a = Concat <axis = 0> () y = Relu (x)}'), 'input 0'],
];

// "opset_import" of an operator without a name cannot be said in text.
const nameless = () => {
  const bytes = modelBytes(graph('(float[2,3] x) => (float[2,3] y) {[n] a = Relu (x) y = Abs (a)}'));
  const at = bytes.indexOf('Relu');
  const copy = Buffer.concat([bytes.subarray(0, at - 2), bytes.subarray(at + 4)]);
  // The node, and the graph around it, are shorter by the field: a tag, a length and four letters.
  const node = copy.indexOf(Buffer.from([0x0a, 0x01, 0x78])) - 1;
  copy[node] -= 6;
  copy[copy.indexOf(0x3a) + 1] -= 6;
  return copy;
};

const right = [
  ['opset 26', relu(26)],
  ['sizes that broadcast', graph('(float[2,1] x, float[3] z) => (y) {[n] a = Add (x, z) y = Relu (a)}')],
  ['a Reshape with an open size', graph('(float[2,5] x) => (y) <int64[2] s = {5,-1}> {a = Reshape (x, s) y = Relu (a)}')],
  ['optional inputs left out', graph('(float[2] x) => (y) <float m = {1}> {a = Clip (x, "", m) y = Relu (a)}')],
  ['Slice before opset 10', graph('(float[2,5] x) => (y) {a = Slice <starts = [0], ends = [1]> (x) y = Relu (a)}', 9)],
  ['a Loop that carries nothing', graph('(float[2] x) => (y, n) <int64 m = {3}> {y = Relu (x) n = Loop (m, "") '
    + '<body = b (int64 i, bool c) => (bool d, int64 k) {d = Identity (c) k = Identity (i)}>}')],
  ['a SequenceMap of a sequence alone', graph('(float[2] x) => (y) <int64 p = {0}> {s = SequenceConstruct (x, x) '
    + 't = SequenceMap (s) <body = b (float[2] i) => (float[2] o) {o = Relu (i)}> y = SequenceAt (t, p)}')],
  ['com.microsoft without an import', graph('(float[2] x) => (float[2] y) {a = com.microsoft.QuickGelu (x) y = Relu (a)}')],
];

const [split, inspect, verify] = process.argv.slice(2).map((path) => resolve(path));
const scratch = mkdtempSync(join(tmpdir(), 'refused-'));
const file = join(scratch, 'm.onnx');
const tap = new Tap();
const arrays = { int64: BigInt64Array, int32: Int32Array, bool: Uint8Array, float32: Float32Array };

async function runs(bytes) {
  let session;
  try {
    session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4 });
    const feeds = Object.fromEntries(session.inputMetadata.map(({ name, type, shape }) =>
      [name, new ort.Tensor(type, new arrays[type](shape.reduce((a, b) => a * b, 1)), shape)]));
    await session.run(feeds);
    return 'it ran';
  } catch (error) {
    return '';
  } finally {
    await session?.release?.();
  }
}

const call = (tool, ...args) => spawnSync(tool, args, { cwd: scratch, encoding: 'utf8' });
const report = (title, done, problems) => tap.none(
  problems.concat(problems.length ? [`status ${done.status}: ${done.stderr}`.trim()] : []), title);

function refused(title, words, forbidden = false) {
  for (const [tool, ...args] of [[split, file, '-k', '1', '-o', 'out'], [split, file, '-k', '1', '--plan-only', '-q'],
    [inspect, file, '-q'], [inspect, file, '-k', '1', '--format', 'json']]) {
    const done = call(tool, ...args);
    const lines = done.stderr.split('\n').filter((line) => line.startsWith('error: '));
    const [line = ''] = lines;
    report(`${title}: refused by ${tool.split('/').at(-1)} ${args.slice(1).join(' ')}`, done, [
      done.status === 4 ? '' : 'exit status is not 4', lines.length === 1 ? '' : `${lines.length} error lines`,
      line.includes('m.onnx: ') ? '' : 'no file', line.includes('--allow-invalid') ? '' : 'no way out',
      line.includes(forbidden ? 'ONNX forbids' : 'no runtime accepts') ? '' : 'no reason',
      forbidden || /node n \(|node #\d+ \(/.test(line) ? '' : 'no node',
      words.every((word) => line.includes(word)) ? '' : `not a word of ${words}`,
      existsSync(join(scratch, 'out')) ? 'DIR was written' : '', done.stdout,
    ].filter(Boolean));
  }
  const done = call(split, file, '-k', '1', '-o', 'out', '--allow-invalid');
  const proof = call(verify, 'out', '--model', file);
  report(`${title}: split where asked for, with a warning, and proved`, done, [
    done.status === 0 ? '' : 'not split', proof.status === 0 ? '' : `not proved: ${proof.stderr}`,
    /^warning: .*(no runtime accepts|ONNX forbids)/m.test(done.stderr) ? '' : 'no warning',
  ].filter(Boolean));
  rmSync(join(scratch, 'out'), { recursive: true, force: true });
}

for (const [title, text, ...words] of wrong) {
  const bytes = modelBytes(text);
  writeFileSync(file, bytes);
  const ran = await runs(bytes);
  tap.none(ran ? [ran] : [], `${title}: ONNX Runtime refuses it`);
  refused(title, words);
}
writeFileSync(file, nameless());
refused('a node without an operator', ['no operator']);
writeFileSync(file, modelBytes(graph('(float[2] x) => (float[2] y, float[2] y) {[n] a = Relu (x) y = Relu (a)}')));
refused('an output listed twice', ['"y"', 'twice'], true); // which ONNX Runtime runs
for (const [title, text] of right) {
  const bytes = modelBytes(text);
  writeFileSync(file, bytes);
  tap.none([await runs(bytes) ? '' : 'it does not run'].filter(Boolean), `${title}: ONNX Runtime runs it`);
  const done = call(split, file, '-k', '1', '--plan-only');
  report(`${title}: planned`, done, done.status === 0 ? [] : ['refused']);
}
// Sizes that the caller gave, and that do not fit together, say nothing of the model.
writeFileSync(file, modelBytes(graph('(float[a,5] x, float[b,5] z) => (float[c,5] y) {m = Add (x, z) y = Relu (m)}')));
const done = call(split, file, '-k', '1', '--plan-only', '--dim', 'a=2', '--dim', 'b=3');
report('sizes of --dim that do not fit: planned', done, done.status === 0 ? [] : ['refused']);
rmSync(scratch, { recursive: true });
tap.done();
