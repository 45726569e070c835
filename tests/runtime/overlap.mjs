// A stage receives and sends while it computes:
//
//   node overlap.mjs RUN SPLIT LAUNCHER
//
// Three ranks over slow links (slow_link.c, which the launcher loads). Tensors take 20 ms to cross, and the stage between two of them
// computes for about as long: it hides half of the shorter of the two at least. Outputs are the bits of the whole model, also where
// one micro-batch at most waits between stages.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const ROWS = 512, COLUMNS = 256, COUNT = 24, WORK = 40;
const BYTES = ROWS * COLUMNS * 4, SOON_MS = 20, MOST_MS = 1000;

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
// Where others use the cores, threads are woken late and computing takes far longer than a crossing, which is then lost in it. So one of
// several runs has to show it, each over links as slow as the stage was. A pipeline that sends after computing never does.
for (const depth of ['2', '1']) {
  const dir = join(tmp, `out-${depth}`);
  let hidden = false, crossing_ms = SOON_MS;
  for (let round = 0; round < 20 && !hidden; round++) {
    const { status, stdout, stderr } = each.run([out, ...random, '--depth', depth, '--json', '-o', dir],
      { env: { ...env, SLOW_LINK: `${1e3 * BYTES / crossing_ms}` } });
    const report = status === 0 ? JSON.parse(stdout) : {};
    const period_ms = 1e3 / report.steady_throughput_per_s, busy_ms = report.stages?.[1].busy_ns / 1e6;
    console.log(`# depth ${depth}: ${period_ms.toFixed(1)} ms, a crossing ${crossing_ms.toFixed(1)} ms, stage 1 computes ${busy_ms?.toFixed(1)} ms`);
    if (!tap.ok(status === 0 && readdirSync(dir).length > COUNT && bits(dir) === bits(one), `depth ${depth}: the bits of the whole model`, `${status} ${stderr}`)) break;
    // Of the whole run: a last stage that is woken late for its first micro-batch has the next ones at hand already.
    tap.ok(1e3 * report.seconds > 0.95 * COUNT * crossing_ms, `depth ${depth}: the link is slow`, `${report.seconds} s`);
    hidden = period_ms < Math.max(crossing_ms, busy_ms) + Math.min(crossing_ms, busy_ms) / 2;
    crossing_ms = Math.min(Math.max(SOON_MS, busy_ms), MOST_MS);
  }
  tap.ok(hidden, `depth ${depth}: it sends while it computes`);
}
tap.done();
