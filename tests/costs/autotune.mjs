// What --autotune does besides measuring a model as it is:
//
//   node autotune.mjs SPLIT
//
// Ifs that are inlined, sizes of inputs, files of others beside DIR, and interrupts.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFixture } from '../e2e/fixtures.mjs';
import { Tap } from '../e2e/tap.mjs';
import { env as runtime, sleep, within } from '../runtime/runner.mjs';

const [splitter] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-autotune-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
mkdirSync(join(tmp, 'scratch'));
const env = { ...runtime, TMPDIR: join(tmp, 'scratch') };
const out = join(tmp, 'out');
const file = join(tmp, 'one_if_then.onnx');
writeFixture('one_if_then', file);
const options = [file, '-k', '2', '-o', out, '--force', '--autotune', '2', '--inline-if', 'n_y=then'];
const tune = (...args) =>
  spawnSync(splitter, [...options, ...args], { encoding: 'utf8', timeout: 60000, env });
const beside = () => [...readdirSync(tmp).filter((name) => /^\.?out\./.test(name)),
  ...readdirSync(env.TMPDIR)].filter((name) => name !== 'out.autotune');

// A directory that has the name that rounds once had is its owner's.
mkdirSync(join(tmp, 'out.autotune'));
writeFileSync(join(tmp, 'out.autotune', 'note'), 'mine');
const log = join(tmp, 'log.txt');
const tuned = tune('--dim', 'n=64', '--verify', '--log', log, '-v');
const lines = readFileSync(log, 'utf8');
tap.ok(/ {2}profiling the whole model\n[^]* {2}running stages, round 1 of at most 2\n/.test(lines), 'what is done now is told', lines);
tap.ok(/^.*% {2}running stages$/m.test(tuned.stderr) && !/% .*round/.test(tuned.stderr), 'rounds are one part of the times', tuned.stderr);
if (tap.ok(tuned.status === 0, 'a model with an inlined If is tuned', tuned.stderr)) {
  const { plan } = JSON.parse(readFileSync(join(out, 'pipeline.json')));
  tap.ok(plan.measured_frac === 1 && plan.total_compute_ns > 100, 'by the times of the branch',
    JSON.stringify(plan));
  tap.ok(!/rows/.test(tuned.stderr), 'no row of the profile is about the If', tuned.stderr);
}
tap.ok(readFileSync(join(tmp, 'out.autotune', 'note'), 'utf8') === 'mine' && beside().length === 0,
  'what others have beside DIR stays, and nothing else is left', beside().join(' '));

const sizeless = tune();
tap.ok(sizeless.status === 2 && /--shape x=/.test(sizeless.stderr), 'a size that is open is asked for',
  sizeless.stderr);
const shaped = tune('--shape', 'x=3,8');
tap.ok(shaped.status === 0, '--shape gives it', shaped.stderr);
const flag = join(tmp, 'flag.raw');
writeFileSync(flag, Buffer.from([1]));
const given = tune('--shape', 'x=3,8', '--input', `flag=${flag}`);
tap.ok(given.status === 0, '--input gives an input', given.stderr);
const wrong = tune('--shape', 'x=3,8', '--shape', 'z=1');
tap.ok(wrong.status === 2 && /no input z/.test(wrong.stderr), 'an input that the model has not',
  wrong.stderr);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  for (const ms of [60, 250]) {
    const child = spawn(splitter, [...options, '--dim', 'n=200000', '-q'], { env, stdio: 'ignore' });
    const ended = new Promise((resolve) => { child.on('close', (...how) => resolve(how)); });
    await sleep(ms);
    child.kill(signal);
    const how = await within(20000, ended);
    if (!how) child.kill('SIGKILL');
    tap.ok(how && beside().length === 0, `${signal} after ${ms} ms leaves nothing beside DIR`,
      `${how} ${beside().join(' ')}`);
  }
}
tap.done();
