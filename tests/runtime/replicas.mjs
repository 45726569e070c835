// onnx-pipeline-run --replicas: threads that compute a stage side by side.
//
//   node replicas.mjs RUN SPLIT [LAUNCHER]
//
// Whatever the number of threads, the outputs are those of one, in their order, from files and from a stream; a bad
// micro-batch is one bad micro-batch; a signal ends the run; options that no stage has are refused.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npyBytes, writeNpy } from './npy.mjs';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env, settled, within } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const { dir, manifest: { inputs: [{ name: input }] } } = each.split('fan_out');
const COUNT = 40;
const tensor = (i) => ({ type: 'float32', dims: [1 + (i * 7) % 200, 8],
  data: Float32Array.from({ length: 8 * (1 + (i * 7) % 200) }, (_, k) => Math.sin(i + k)) });
const batches = Array.from({ length: COUNT }, (_, i) => tensor(i));
mkdirSync(join(tmp, 'in'));
batches.forEach((batch, i) => writeNpy(join(tmp, 'in', `${i}.npy`), batch));
const numbered = [dir, '-q', '--input', `${input}=${join(tmp, 'in', '{}.npy')}`, '-m', `${COUNT}`];
const contents = (out) => readdirSync(join(tmp, out)).sort()
  .map((file) => `${file} ${readFileSync(join(tmp, out, file)).toString('base64')}`);

let n = 0;
function gives(title, args, wanted, options) {
  const out = `out${n++}`;
  const { status, stderr } = each.run([...args, '-o', join(tmp, out)], options);
  const got = status === 0 || wanted === undefined ? contents(out) : [];
  tap.ok(status === 0 && (!wanted || JSON.stringify(got) === JSON.stringify(wanted)), title, `${status} ${stderr}`);
  return got;
}
const one = gives('one thread a stage', numbered);
for (const replicas of [['3'], ['0=2', '2=5'], ['64', '1=1']])
  gives(`--replicas ${replicas.join(' ')}: the same outputs`,
    [...numbered, ...replicas.flatMap((text) => ['--replicas', text])], one);
gives('replicas with options of their own', [...numbered, '--replicas', '1=3', '--threads', '1.2=2', '--optimization', '1.0=0'], one);

const stream = [dir, '--stream', '-q', '--input', `${input}=-`, '--replicas', '3'];
const few = 7; // MPICH's launcher gives up where much waits for rank 0 to read it
const first = gives('the first of them', numbered.map((arg) => (arg === `${COUNT}` ? `${few}` : arg)));
gives('a stream', stream, first, { input: Buffer.concat(batches.slice(0, few).map(npyBytes)) });
gives('an empty stream', stream, undefined, { input: '' });

// What came is given, though nothing comes behind it.
{
  const [program, ...rest] = each.command([...stream, '-o', '-']);
  const child = spawn(program, rest, { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => { child.on('close', resolve); });
  let n_bytes = 0;
  const some = new Promise((resolve) => { child.stdout.on('data', (data) => { if ((n_bytes += data.length) > 64) resolve(true); }); });
  child.stdin.write(npyBytes(batches[1]));
  tap.ok(await within(20000, some), 'a micro-batch is given before the next one comes');
  child.stdin.end();
  tap.ok(await within(20000, ended) === 0, 'and the stream ends');
  child.kill('SIGKILL');
}

writeFileSync(join(tmp, 'in', '7.npy'), 'torn');
const skipped = each.run([...numbered, '--replicas', '4', '--on-error', 'skip', '-o', join(tmp, 'skipped'), '--json'].filter((arg) => arg !== '-q'));
const report = skipped.status === 1 ? JSON.parse(skipped.stdout) : {};
const kept = skipped.status === 1 ? contents('skipped').filter((line) => /^\d+-/.test(line)) : [];
tap.ok(report.failed === 1 && report.failures[0].micro_batch === 7 &&
  JSON.stringify(kept) === JSON.stringify(one.filter((line) => /^\d+-/.test(line) && !line.startsWith('7-'))),
  'one bad micro-batch is one bad micro-batch', `${skipped.status} ${skipped.stderr} ${JSON.stringify(report.failures)}`);
tap.ok(report.stages?.every(({ replicas }) => replicas === 4), 'the report has the replicas', JSON.stringify(report.stages));
each.fails('or ends the run', 4, /micro-batch 7/, [...numbered, '--replicas', '4']);

if (!launcher) {
  const [program, ...rest] = each.command([dir, '--random', '--dim', 'n=3', '-q', '-m', '10000000', '--replicas', '3']);
  const child = spawn(program, rest, { env, stdio: 'ignore' });
  const ended = new Promise((resolve) => { child.on('close', (...how) => resolve(how)); });
  await settled(child.pid, 0.3);
  child.kill('SIGINT');
  const how = await within(10000, ended);
  if (!how) child.kill('SIGKILL');
  tap.ok(how && how[0] === 130, 'a signal ends it', `${how}`);
}
// A plan with replicas: as many devices for each stage as make the slowest one fast, by enumeration.
if (!launcher) {
  const ms = [3, 9, 2, 14, 4, 1, 5];
  const lines = ms.map((_, i) => `[c${i}] ${i === ms.length - 1 ? 'y' : `v${i}`} = Neg (${i ? `v${i - 1}` : 'x'})`);
  const model = join(tmp, 'chain.onnx'), costs = join(tmp, 'chain.json'), out = join(tmp, 'chain');
  writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
m (float[n,8] x) => (float[n,8] y) { ${lines.join('\n')} }`, model);
  writeFileSync(costs, JSON.stringify({ format: 'onnx-pipeline-split-costs', version: 1, measured: true, complete: true,
    costs: ms.map((time, i) => ({ nodes: [`c${i}`], ns: time * 1e6 })) }));
  const best = (from, devices, most) => {
    if (from === ms.length) return 0;
    let least = Infinity, sum = 0;
    for (let to = from; to < ms.length; to++) {
      sum += ms[to];
      for (let r = 1; r <= Math.min(most, devices); r++) {
        least = Math.min(least, Math.max(sum / r, best(to + 1, devices - r, most)));
      }
    }
    return least;
  };
  for (const [k, most] of [[3, 2], [5, 2], [5, 3], [6, 4], [4, 'auto']]) {
    const made = each.start(splitter, [model, '-k', `${k}`, '-o', out, '--force', '-q', '--dim', 'n=3', '--costs', costs,
      '--replicas', `${most}`, '--passes', 'infer-shapes,cost,mark,attach,partition', '--verify']);
    const { plan = {}, stages = [] } = made.status === 0 ? JSON.parse(readFileSync(join(out, 'pipeline.json'))) : {};
    const least = 1e6 * best(0, k, most === 'auto' ? k : most), used = stages.reduce((sum, { replicas = 1 }) => sum + replicas, 0);
    tap.ok(plan.proved_optimal && plan.bottleneck_ns >= least && plan.bottleneck_ns < 1.02 * least + 30000 && used <= k &&
      stages.every(({ replicas = 1, devices = [0] }) => replicas === devices.length && replicas <= (most === 'auto' ? k : most)),
      `${k} devices, at most ${most} for a stage`, `${made.status} ${made.stderr} ${plan.bottleneck_ns} ${least} ${used}`);
  }
  const one = join(tmp, 'one.onnx'), constants = join(tmp, 'constants.onnx');
  writeModel('<ir_version: 8, opset_import: [{version: 17}]>\nm (float[n,8] x) => (float[n,8] y) { [c0] y = Neg (x) }', one);
  writeModel('<ir_version: 8, opset_import: [{version: 17}]>\nm () => (float[1] y) { y = Constant <value_floats = [1.0]> () }', constants);
  const node = each.start(splitter, [one, '-k', '3', '--plan-only', '--json', '--dim', 'n=3', '--replicas', 'auto']);
  tap.ok(node.status === 0 && JSON.parse(node.stdout).stages[0].replicas === 3, 'a model of one node has three devices', node.stderr);
  for (const [file, k, status, why] of [[one, 65, 7, /65 stages cannot all have work/], [constants, 2, 5, /constants alone/]]) {
    const refused = each.start(splitter, [file, '-k', `${k}`, '--plan-only', '--replicas', 'auto']);
    tap.ok(refused.status === status && why.test(refused.stderr), `refused: -k ${k}`, `${refused.status} ${refused.stderr}`);
  }
  const whole = join(tmp, 'whole');
  each.start(splitter, [model, '-k', '1', '-o', whole, '-q', '--dim', 'n=3']);
  const random = ['--random', '--dim', 'n=3', '-m', '20'];
  const alone = gives('the whole model', [whole, '-q', ...random]);
  gives('as it is planned, the same', [out, '-q', ...random], alone);
  const { stages } = JSON.parse(each.run([out, '--json', ...random]).stdout);
  tap.ok(stages.reduce((sum, { replicas }) => sum + replicas, 0) === 4, 'with the threads that are planned', JSON.stringify(stages));
  // Each replica runs as the devices file says of its own device.
  const devices = join(tmp, 'devices.json');
  writeFileSync(devices, JSON.stringify({ devices: [0, 1, 2, 3].map((i) => ({ name: `d${i}`, preset: 'cpu',
    session: { threads: i + 1 } })) }));
  const apart = join(tmp, 'apart');
  each.start(splitter, [model, '-k', '4', '-o', apart, '-q', '--dim', 'n=3', '--replicas', '4', '--devices', devices]);
  gives('on devices with sessions of their own', [apart, '-q', ...random, '--devices', devices], alone);
  // A profile runs one stage at a time, and the first replica of each.
  for (const more of [['--devices', devices], ['--replicas', '2', '--threads', '0.1=2']]) {
    const table = join(tmp, 'profile.json'), made = each.start(runner, ['--profile', table, apart, ...random, ...more]);
    const { costs = [] } = made.status === 0 ? JSON.parse(readFileSync(table)) : {};
    tap.ok(costs.length === ms.length, `a profile with ${more[0]} that tell replicas apart`, `${made.status} ${made.stderr} ${costs.length}`);
  }
  writeFileSync(devices, JSON.stringify({ devices: [0, 1].map((i) => ({ name: `d${i}`, preset: 'cpu' })) }));
  const missing = each.run([apart, '-q', ...random, '--devices', devices]);
  tap.ok(missing.status === 2 && /planned for device d2/.test(missing.stderr), 'a device that is not there', missing.stderr);
  writeFileSync(join(tmp, 'unlike.json'), JSON.stringify({ devices: [{ name: 'a', preset: 'cpu' }, { name: 'b', preset: 'cpu', memory_bytes: 1e9 }] }));
  for (const [args, status, why] of [
    [['--pin', 'c0=0'], 5, /nodes that are pinned/], [['--objective', 'latency'], 5, /latency/], [['--segments', '2'], 5, /segments/],
    [['--devices', join(tmp, 'unlike.json')], 5, /require identical devices/], [['--training', '--loss-output', 'y'], 2, /cannot be combined with/],
  ]) {
    const refused = each.start(splitter, [model, '-k', '2', '--plan-only', '--dim', 'n=3', '--replicas', '2', ...args]);
    tap.ok(refused.status === status && why.test(refused.stderr), `refused: ${args[0]}`, `${refused.status} ${refused.stderr}`);
  }
}
for (const [args, why] of [
  [['--replicas', '0'], /whole number from 1 to 64/], [['--replicas', '65'], /whole number from 1 to 64/],
  [['--replicas', '3=2'], /for stage 3, but stages are 0 to 2/], [['--replicas', '1.1=2'], /takes \[STAGE=\]N/],
  [['--replicas', '1=2', '--threads', '1.2=2'], /replica 2 of stage 1, which has 2/],
]) each.fails(`refused: ${args.join(' ')}`, 2, why, [...numbered, ...args]);
tap.done();
