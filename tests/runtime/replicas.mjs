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
import { Runner, env, sleep, within } from './runner.mjs';

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
  await sleep(300);
  child.kill('SIGINT');
  const how = await within(10000, ended);
  if (!how) child.kill('SIGKILL');
  tap.ok(how && how[0] === 130, 'a signal ends it', `${how}`);
}
for (const [args, why] of [
  [['--replicas', '0'], /whole number from 1 to 64/], [['--replicas', '65'], /whole number from 1 to 64/],
  [['--replicas', '3=2'], /for stage 3; there are stages 0 to 2/], [['--replicas', '1.1=2'], /takes \[STAGE=\]N/],
  [['--replicas', '1=2', '--threads', '1.2=2'], /replica 2 of stage 1, which has 2/],
]) each.fails(`refused: ${args.join(' ')}`, 2, why, [...numbered, ...args]);
tap.done();
