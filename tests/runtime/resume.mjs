// A run that ends early says what it has delivered, and can be gone on with:
//
//   node resume.mjs RUN SPLIT ODD [LAUNCHER]
//
// A stage that fails (ODD: odd_onnxruntime.c), a run or a rank that is killed: what is delivered is named, as it is in
// the directory, and --resume-from makes the rest, with the bits and numbers of a run that nothing befell.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { npyBytes, writeNpy } from './npy.mjs';
import { Runner, env, library, processesBelow, until, within } from './runner.mjs';

const [runner, splitter, odd, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const oddly = (what) => ({ env: { ...env, ODD: what, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd } });
const M = 20;
mkdirSync(join(tmp, 'in'));
const tensor = (m) => ({ type: 'float32', dims: [2, 8], data: Float32Array.from({ length: 16 }, (_, i) => Math.sin(m + i)) });
for (let m = 0; m < M; m++) writeNpy(join(tmp, 'in', `${m}.npy`), tensor(m));

function suite(model) {
  const { dir, manifest: { inputs: [{ name: input }], outputs } } = each.split(model);
  const files = ['-i', `${input}=${join(tmp, 'in', '{}.npy')}`];
  const random = ['--random', '--dim', 'n=3'];
  const wanted = {};
  for (const [kind, args] of [['files', files], ['random', random]]) {
    wanted[kind] = join(tmp, `${model}-${kind}`);
    const made = each.run([dir, ...args, '-m', `${M}`, '-o', wanted[kind], '-q']);
    tap.ok(made.status === 0, `${model}: ${kind}: a run that nothing befalls`, made.stderr);
  }
  const same = (kind, out) => {
    const names = readdirSync(wanted[kind]).sort();
    return names.join() === readdirSync(out).sort().join() &&
      names.every((name) => readFileSync(join(wanted[kind], name)).equals(readFileSync(join(out, name))));
  };
  const whole = (out) => Array.from({ length: M }, (_, m) => m).filter((m) =>
    outputs.every((_, o) => existsSync(join(out, `${m}-${o}.npy`))));
  const ranges = (list) => list.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));

  for (const [kind, args] of [['files', files], ['random', random], ['stream', ['--stream', ...files]]]) {
    const out = join(tmp, `${model}-failed`);
    rmSync(out, { recursive: true, force: true });
    const all = [dir, ...args, '-m', `${M}`, '-o', out, '--warmup', '0'];
    const failed = each.run([...all, '--json'], oddly('fail-run stage1 12'));
    const told = /delivered: (\d+) micro-batches: 0-(\d+); --resume-from (\d+) goes on/.exec(failed.stderr);
    tap.ok(failed.status !== 0 && /stage 1.*micro-batch 12/.test(failed.stderr) && told?.slice(1).map(Number).join() === '12,11,12',
      `${model}: ${kind}: a stage that fails: what is delivered`, `${failed.status} ${failed.stderr}`);
    let report = {};
    try {
      report = JSON.parse(failed.stdout.slice(failed.stdout.indexOf('{')));
    } catch { /* it is none */ }
    tap.ok(report.resume_from === 12 && JSON.stringify(report.delivered) === '[[0,11]]' && report.error && report.code === 'INVALID',
      `${model}: ${kind}: the same as JSON`, failed.stdout);
    tap.ok(whole(out).join() === ranges([[0, 11]]).join(), `${model}: ${kind}: that is what is there`, whole(out).join());
    const again = each.run([...all, '--resume-from', '12', '--json']);
    tap.ok(again.status === 0 && same(kind === 'random' ? 'random' : 'files', out), `${model}: ${kind}: the rest`,
      `${again.status} ${again.stderr}`);
    const rest = JSON.parse(again.stdout);
    tap.ok(rest.first_micro_batch === 12 && rest.micro_batches === M - 12 && JSON.stringify(rest.delivered) === `[[12,${M - 1}]]`,
      `${model}: ${kind}: its report`, again.stdout);
  }

  const out = join(tmp, `${model}-skipped`);
  const skipped = each.run([dir, ...files, '-m', `${M}`, '-o', out, '--warmup', '0', '--json', '--on-error', 'skip'], oddly('fail-run stage1 12'));
  tap.ok(skipped.status === 1 && JSON.stringify(JSON.parse(skipped.stdout).delivered) === `[[0,11],[13,${M - 1}]]`,
    `${model}: a gap is told`, `${skipped.status} ${skipped.stdout}`);
  const filled = each.run([dir, ...files, '-m', `${M}`, '-o', out, '--resume-from', 'last']);
  tap.ok(filled.status === 0 && same('files', out) && filled.stderr.includes(`holds micro-batches 0-11, 13-${M - 1}; going on with 12`),
    `${model}: and filled`, `${filled.status} ${filled.stderr}`);
  const over = each.run([dir, ...files, '-m', `${M}`, '-o', out, '--resume-from', 'last'], oddly('fail-run stage1 0'));
  tap.ok(over.status === 0, `${model}: nothing is left to do`, `${over.status} ${over.stderr}`);
  return { dir, files, input, same, whole, out: join(tmp, `${model}-killed`) };
}

const { dir, files, input, same, whole, out } = suite('fan_out');
suite('several_outputs');

// A run that is killed, over MPI one of its ranks: what it delivered is in the directory.
{
  const args = [dir, ...files, '-m', `${M}`, '-o', out, '--warmup', '0', '-q'];
  const [program, ...rest] = each.command(args);
  const child = spawn(program, rest, { ...oddly('slow-run stage1 50'), stdio: 'ignore' });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  await until(() => existsSync(out) && whole(out).length > 3, 60);
  const pids = launcher ? processesBelow(child.pid, runner) : [child.pid];
  process.kill(pids[pids.length - 1], 'SIGKILL');
  tap.ok(await within(20000, ended) !== 0, 'it is killed');
  const there = whole(out).length;
  const again = each.run([...args.filter((arg) => arg !== '-q'), '--resume-from', 'last']);
  tap.ok(again.status === 0 && again.stderr.includes(`holds micro-batches 0-${there - 1}; going on with ${there}`) && there < M,
    'what it had delivered is found', `${there}; ${again.status} ${again.stderr}`);
  tap.ok(same('files', out), 'and the rest is made');
}

// What cannot be meant.
each.fails('a place behind the end', launcher ? 2 : 2, /--resume-from 20: there are 20/, [dir, ...files, '-m', `${M}`, '--resume-from', '20']);
each.fails('a place that is none', 2, /resume-from/, [dir, ...files, '-m', `${M}`, '--resume-from', 'here']);
each.fails('no directory to look into', 2, /--output DIR/, [dir, ...files, '-m', `${M}`, '--resume-from', 'last']);
each.fails('a pipe has no place to begin at', 2, /cannot be read from micro-batch 3 on/,
  [dir, '--stream', '-i', `${input}=-`, '--resume-from', '3', '-o', join(tmp, 'none')], { input: npyBytes(tensor(0)) });
tap.done();
