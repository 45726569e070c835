// Gradient nodes of a model become the nodes that compute them: node lower.mjs SPLIT
//
// What the lowered model gives in ONNX Runtime is held against central differences of the value that was
// differentiated, which the same model gives; second derivatives against differences of the first.
import { spawnSync } from 'node:child_process';
import {
  chmodSync, existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';
import { readModel } from '../e2e/wire.mjs';
import { writeModel } from '../support/text_model.mjs';

const [split] = process.argv.slice(2);
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-lower-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const file = join(work, 'model.onnx'), lowered = join(work, 'lowered.onnx');

function lower(text) {
  writeModel(text, file);
  rmSync(lowered, { force: true });
  return spawnSync(split, [file, '--lower-gradient', lowered], { encoding: 'utf8' });
}
let state = 5;
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
const numbers = (...dims) => new ort.Tensor('float64', Float64Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => 2 * random() - 1), dims);
const head = (opset) => `<ir_version: 8, opset_import: ["": ${opset}, "ai.onnx.preview.training": 1]>`;
const gradient = 'ai.onnx.preview.training.Gradient';

// text, feeds, and [derivative, of what, by what]
const cases = [
  ['first and second derivatives', `${head(13)}
main (double[n,3] x, double[3,2] w) => (double[n,2] y, double[n,3] s, double[n,3] dx, double[3,2] dw, double[3,2] ddw) {
  h = MatMul (x, w)
  t = Tanh (h)
  y = Mul (t, h)
  dx, dw = ${gradient} <xs = ["x", "w"], y = "y"> (x, w)
  s = Mul (dx, dx)
  ddw = ${gradient} <xs = ["w"], zs = ["x"], y = "s"> (w, x)
}`, { x: numbers(4, 3), w: numbers(3, 2) }, [['dx', 'y', 'x'], ['dw', 'y', 'w'], ['ddw', 's', 'w']]],
  ['reductions of opset 13', `${head(13)}
main (double[n,3,5] x) => (double y, double[n,3,5] dx) {
  m = ReduceMean <axes = [1]> (x)
  d = Sub (x, m)
  k = ReduceMean <axes = [0, 2], keepdims = 0> (d)
  p = Mul (d, d)
  e = ReduceMax <axes = [2], keepdims = 0> (p)
  f = Mul (e, k)
  y = ReduceSum <keepdims = 0> (f)
  dx = ${gradient} <xs = ["x"], y = "y"> (x)
}`, { x: numbers(2, 3, 5) }, [['dx', 'y', 'x']]],
  ['a value between, and weights', `${head(16)}
main (double[3,4] x) => (double[3,4] h, double[3,2] y, double[3,4] dh, double[4,2] dw) <double[4,2] w = random(3)> {
  h = Sigmoid (x)
  g = MatMul (h, w)
  y = Softmax <axis = -1> (g)
  dh, dw = ${gradient} <xs = ["h", "w"], zs = ["x"], y = "y"> (h, w, x)
}`, { x: numbers(3, 4) }, []],
  ['a Softmax weighed', `${head(18)}
main (double[3,4] x) => (double[3,4] y, double[3,4] dx) <double[4] w = random(3)> {
  s = Softmax <axis = -1> (x)
  y = Mul (s, w)
  dx = ${gradient} <xs = ["x"], y = "y"> (x)
}`, { x: numbers(3, 4) }, [['dx', 'y', 'x']]],
  ['what y does not depend on', `${head(13)}
main (double[2,n] x, double[2,n] z) => (double[2,n] y, double[2,n] dx, double[2,n] dz) {
  y = Exp (x)
  dx, dz = ${gradient} <xs = ["x", "z"], y = "y"> (x, z)
}`, { x: numbers(2, 3), z: numbers(2, 3) }, [['dx', 'y', 'x'], ['dz', 'y', 'z']]],
  ['an output left out', `${head(13)}
main (double[2,n] x, double[2,n] z) => (double[2,n] y, double[2,n] dz) {
  y = Mul (x, z)
  "", dz = ${gradient} <xs = ["x", "z"], y = "y"> (x, z)
}`, { x: numbers(2, 3), z: numbers(2, 3) }, [['dz', 'y', 'z']]],
];

const sum = ({ data }) => [...data].reduce((a, b) => a + b, 0);
for (const [what, text, feeds, derivatives] of cases) {
  const done = lower(text);
  if (!tap.ok(done.status === 0, `${what}: lowered`, done.stderr)) continue;
  const { nodes } = readModel(readFileSync(lowered));
  tap.ok(nodes.length > 3 && nodes.every(({ domain }) => !domain), `${what}: standard operators alone`);
  const session = await ort.InferenceSession.create(lowered, { logSeverityLevel: 4 });
  const given = await session.run(feeds);
  for (const [derivative, of, by] of derivatives) {
    let worst = 0, most = 0;
    for (let i = 0; i < feeds[by].data.length; i++) {
      const moved = [];
      for (const step of [1e-6, -1e-6]) {
        const data = feeds[by].data.slice();
        data[i] += step;
        moved.push(sum((await session.run({ ...feeds, [by]: new ort.Tensor('float64', data, feeds[by].dims) }))[of]));
      }
      worst = Math.max(worst, Math.abs((moved[0] - moved[1]) / 2e-6 - given[derivative].data[i]));
      most = Math.max(most, Math.abs(given[derivative].data[i]));
    }
    tap.ok(given[derivative].dims.join() === feeds[by].dims.join() && worst < 1e-8 * Math.max(most, 1) + 1e-8 && (most > 1e-2 || derivative === 'dz'),
      `${what}: ${derivative} is the gradient of ${of}`, `${worst} of ${most}`);
  }
}
// Rows of a softmax add up to 1, so that the gradient of their sum is 0.
const rows = lower(cases[2][1]);
const flat = rows.status === 0 && await (await ort.InferenceSession.create(lowered)).run(cases[2][2]);
tap.ok(flat && [...flat.dh.data, ...flat.dw.data].every((value) => Math.abs(value) < 1e-12) && flat.dw.dims.join() === '4,2',
  'gradients to a value between and to a weight', rows.stderr);

// ---- what is refused ----
const plain = (attributes, inputs = 'x', { opset = 13, middle = 'y = Exp (x)', before = '' } = {}) => `${head(opset)}
main (float[2,3] x, float[2,3] z) => (float[2,3] y, float[2,3] d) {
  ${before}
  ${middle}
  [gr] d = ${gradient} <${attributes}> (${inputs})
}`;
for (const [what, text, status, pattern] of [
  ['another tensor than is bound', plain('xs = ["x"], y = "y"', 'z'), 5, /"gr" \(Gradient\).*another tensor.*"x"/],
  ['a y that is not there', plain('xs = ["x"], y = "nothing"'), 4, /"gr".*no value "nothing"/],
  ['no y', plain('xs = ["x"]'), 4, /"gr".*no attribute "y"/],
  ['more names than inputs', plain('xs = ["x", "z"], y = "y"'), 4, /"gr".*no input is bound to "z"/],
  ['an old operator set', plain('xs = ["x"], y = "y"', 'x', { opset: 12 }), 5, /opset 12.*opset 13/],
  ['an operator without a rule', plain('xs = ["x"], y = "y"', 'x', { middle: '[odd] o = Det (q)\n y = Mul (x, o)', before: 'q = MatMul (x, z)' }), 5, /"odd" \(Det\)/],
  ['what only a later one has', plain('xs = ["x"], y = "y"', 'x', { opset: 15, middle: 'y = GatherElements (x, i)', before: 'i = Constant <value = int64[2,3] {0, 1, 0, 1, 0, 1}> ()' }), 5, /opset 15.*ScatterElements of opset 16/],
]) {
  const done = lower(text);
  tap.ok(done.status === status && pattern.test(done.stderr) && done.stderr.split('\n').length === 2 && !existsSync(lowered),
    `${what} is refused`, `${done.status} ${done.stderr}`);
}
const none = lower('() => (float y) { y = Constant <value_float = 1.0> () }');
tap.ok(none.status === 0 && /: 0 Gradient nodes lowered/.test(none.stdout) && readFileSync(file).equals(readFileSync(lowered)),
  'a model without any stays as it is', none.stdout + none.stderr);
for (const [what, pattern, ...options] of [
  ['a file that is there', /lowered.onnx/, file, '--lower-gradient', lowered],
  ['the model itself', /model.onnx/, file, '--lower-gradient', file, '--force'],
  ['standard output', /standard output/, file, '--lower-gradient', '-'],
  ['with --training', /cannot be combined/, file, '--lower-gradient', lowered, '--training', '--loss', 'mse:'],
]) {
  const before = [file, lowered].map((name) => readFileSync(name));
  const done = spawnSync(split, options, { encoding: 'utf8' });
  tap.ok(done.status !== 0 && pattern.test(done.stderr) && [file, lowered].every((name, i) => readFileSync(name).equals(before[i])),
    `${what} is refused`, `${done.status} ${done.stderr}`);
}
const again = spawnSync(split, [file, '--lower-gradient', lowered, '--force', '-q'], { encoding: 'utf8' });
tap.ok(again.status === 0 && !again.stdout && !again.stderr, 'with --force it is replaced', again.stdout + again.stderr);

// What is not a regular file is written through: a pipe or a device that was replaced would be gone for all others.
const pipe = join(work, 'pipe'), link = join(work, 'link.onnx'), behind = join(work, 'behind.onnx');
const through = spawnSync('/bin/sh', ['-c', 'mkfifo "$1"; timeout 10 cat "$1" > "$3" & timeout 10 "$0" "$2" --lower-gradient "$1" -q; status=$?; wait; exit $status',
  split, pipe, file, behind], { encoding: 'utf8' });
tap.ok(through.status === 0 && statSync(pipe).isFIFO() && readFileSync(behind).equals(readFileSync(file)), 'a pipe stays one', `${through.status} ${through.stderr}`);
symlinkSync('behind.onnx', link);
chmodSync(behind, 0o640);
writeFileSync(behind, '');
const linked = spawnSync(split, [file, '--lower-gradient', link, '--force', '-q'], { encoding: 'utf8' });
tap.ok(linked.status === 0 && lstatSync(link).isSymbolicLink() && statSync(behind).size > 0 && (statSync(behind).mode & 0o777) === 0o640,
  'a link stays, and the mode of what it leads to', linked.stderr);
tap.done();
