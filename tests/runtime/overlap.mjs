// A stage receives and sends while it computes:
//
//   node overlap.mjs RUN SPLIT LAUNCHER BYTES_A_SECOND
//
// Three ranks over links of so many bytes a second (slow_link.c, which the launcher loads). Tensors take 20 ms to cross, and the stage
// between two of them computes for about as long: it hides half of the shorter of the two at least. Outputs are the bits of the
// whole model, also where one micro-batch at most waits between stages.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Runner } from './runner.mjs';

const [runner, splitter, launcher, rate] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const ROWS = 512, COLUMNS = 256, COUNT = 24, WORK = 40;
const crossing_ms = ROWS * COLUMNS * 4 / Number(rate) * 1e3;

const model = join(tmp, 'chain.onnx'), [out, whole] = ['out', 'whole'].map((name) => join(tmp, name));
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
m (float[${ROWS},${COLUMNS}] x) => (float y) {
  [c0] v0 = Softmax (x)
${Array.from({ length: WORK }, (_, i) => `  [m${i}] v${i + 1} = Sin (v${i})`).join('\n')}
  [last] w = Relu (v${WORK})
  [sum] y = ReduceSum <keepdims = 0> (w)
}`, model);
const pins = ['c0=0', 'm*=1', 'last=2', 'sum=2'].flatMap((pin) => ['--pin', pin]);
for (const args of [['-k', '3', ...pins, '-o', out], ['-k', '1', '-o', whole]]) {
  const made = each.start(splitter, [model, ...args, '-q']);
  if (!tap.ok(made.status === 0, 'it is split', made.stderr)) process.exit(1);
}
const bits = (dir) => readdirSync(dir).sort().map((file) => `${file} ${readFileSync(join(dir, file)).toString('base64')}`).join();
const random = ['--random', '-m', `${COUNT}`, '--optimization', '0'];
const one = join(tmp, 'one-out');
const ran = each.start(runner, [whole, '-q', ...random, '-o', one]);
tap.ok(ran.status === 0, 'the whole model runs', ran.stderr);
// Where others want the cores threads are woken late: one of a few runs has to show it. Sending behind computing never does.
for (const depth of ['2', '1']) {
  const dir = join(tmp, `out-${depth}`);
  let hidden = false;
  for (let round = 0; round < 5 && !hidden; round++) {
    const { status, stdout, stderr } = each.run([out, ...random, '--depth', depth, '--json', '-o', dir]);
    const report = status === 0 ? JSON.parse(stdout) : {};
    const period_ms = 1e3 / report.steady_throughput_per_s, busy_ms = report.stages?.[1].busy_ns / 1e6;
    console.log(`# depth ${depth}: ${period_ms.toFixed(1)} ms, a crossing ${crossing_ms.toFixed(1)} ms, stage 1 computes ${busy_ms?.toFixed(1)} ms`);
    if (!tap.ok(status === 0 && readdirSync(dir).length > COUNT && bits(dir) === bits(one), `depth ${depth}: the bits of the whole model`, `${status} ${stderr}`)) break;
    tap.ok(period_ms > 0.95 * crossing_ms, `depth ${depth}: the link is slow`, `${period_ms}`);
    hidden = period_ms < Math.max(crossing_ms, busy_ms) + Math.min(crossing_ms, busy_ms) / 2;
  }
  tap.ok(hidden, `depth ${depth}: it sends while it computes`);
}
tap.done();
