// Segments of one device compute one at a time:
//
//   node one_device.mjs RUN SPLIT [LAUNCHER]
//
// Three stages on devices a, b, a, of which the first and the last compute for long: never both at once, which the trace tells, over
// threads and over MPI, with the bits of the whole model; and a rank that is killed while it computes leaves nobody waiting.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env, processesBelow, sleep, until, within } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const COUNT = 24, WORK = 24;

const [model, devices, out, whole] = ['m.onnx', 'devices.json', 'out', 'whole'].map((name) => join(tmp, name));
const sines = (name, from) => Array.from({ length: WORK }, (_, i) => `  [${name}${i}] v${from + i + 1} = Sin (v${from + i})`).join('\n');
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
m (float[256,256] x) => (float y) {
  [a] v0 = Relu (x)
${sines('p', 0)}
  [b] v${WORK + 1} = Softmax (v${WORK})
${sines('q', WORK + 1)}
  [sum] y = ReduceSum <keepdims = 0> (v${2 * WORK + 1})
}`, model);
const device = (name, operators) => ({ name, flops_per_second: { float32: 1e9 }, memory_bandwidth: 1e9, unsupported: { operators } });
writeFileSync(devices, JSON.stringify({ devices: [device('a', ['Softmax']), device('b', ['Relu', 'Sin', 'ReduceSum'])],
  topology: { same_host: { bytes_per_second: 1e12, latency_ns: 0 } } }));
for (const args of [['--devices', devices, '--segments', '2', '-o', out], ['-k', '1', '-o', whole]]) {
  const made = each.start(splitter, [model, ...args, '-q']);
  if (!tap.ok(made.status === 0, 'it is split', made.stderr)) process.exit(1);
}
const { stages } = JSON.parse(readFileSync(join(out, 'pipeline.json')));
tap.ok(stages.map((stage) => stage.device).join('') === 'aba', 'back and forth', JSON.stringify(stages.map((stage) => stage.device)));
const bits = (dir) => readdirSync(dir).sort().map((file) => `${file} ${readFileSync(join(dir, file)).toString('base64')}`).join();
const random = ['--random', '--optimization', '0'];
const alone = each.start(runner, [whole, '-q', ...random, '-m', `${COUNT}`, '-o', join(tmp, 'one')]);
tap.ok(alone.status === 0, 'the whole model runs', alone.stderr);
for (const depth of ['2', '1']) {
  const dir = join(tmp, `out-${depth}`);
  const { status, stderr } = each.run([out, ...random, '-m', `${COUNT}`, '--depth', depth, '--trace', join(tmp, `trace-${depth}`), '-o', dir, '-q']);
  const spans = status === 0 ? JSON.parse(readFileSync(join(tmp, `trace-${depth}`))).traceEvents.filter((e) => e.name === 'compute') : [];
  const [first, last] = [0, 2].map((pid) => spans.filter((e) => e.pid === pid));
  const sum = (list) => list.reduce((all, ms) => all + ms, 0);
  const both = sum(first.flatMap((a) => last.map((b) => Math.max(0, Math.min(a.ts + a.dur, b.ts + b.dur) - Math.max(a.ts, b.ts)))));
  const [one, other] = [first, last].map((list) => sum(list.map((e) => e.dur)));
  const text = `${(both / 1e3).toFixed(1)} ms both, of ${(one / 1e3).toFixed(1)} and ${(other / 1e3).toFixed(1)} ms`;
  console.log(`# depth ${depth}: stages 0 and 2 compute ${text}`);
  tap.ok(status === 0 && readdirSync(dir).length > COUNT && bits(dir) === bits(join(tmp, 'one')), `depth ${depth}: the bits of the whole model`, `${status} ${stderr}`);
  tap.ok(first.length === COUNT && last.length === COUNT && both < 0.1 * Math.min(one, other), `depth ${depth}: one at a time`, text);
}
if (launcher) {
  const [program, ...rest] = each.command([out, '-q', ...random, '-m', '1000000']);
  const child = spawn(program, rest, { env, stdio: 'ignore' });
  const ended = new Promise((resolve) => { child.on('close', (...how) => resolve(how)); });
  await until(() => processesBelow(child.pid, runner).length >= 3);
  await sleep(500);
  const ranks = processesBelow(child.pid, runner);
  if (ranks.length) process.kill(ranks[0], 'SIGKILL');
  const how = await within(20000, ended);
  if (!how) child.kill('SIGKILL');
  tap.ok(ranks.length === 3 && how && how[0] !== 0, 'a rank that is killed ends the run', `${ranks} ${how}`);
}
tap.done();
