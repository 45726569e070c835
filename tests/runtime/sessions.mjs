// Options of the sessions reach the stages they are for:
//
//   node sessions.mjs RUN SPLIT [LAUNCHER]
//
// ONNX Runtime refuses a bad configuration entry when it opens a session, and so tells which stages
// were given it. Threads are counted in /proc.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env, sleep } from './runner.mjs';

const [runner, splitter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher);
const { tap, tmp } = each;
const devices = (...sessions) => {
  const file = join(tmp, 'devices.json');
  writeFileSync(file, JSON.stringify({
    devices: sessions.map((session, i) => ({ name: `cpu${i}`, preset: 'cpu', ...session && { session } })),
  }));
  return file;
};
const { dir, model } = each.split('fan_out');
const args = [dir, '--random', '--dim', 'n=3', '--quiet'];
const runs = (title, ...more) => {
  const { status, stderr } = each.run([...args, ...more]);
  tap.ok(status === 0, title, `exit status ${status}\n${stderr}`);
};
const fails = (title, status, pattern, ...more) =>
  each.fails(title, status, pattern, [...args, ...more]);
const bad = 'session.intra_op_thread_affinities=nonsense'; // looked at where there are threads

runs('the CPU by name', '--provider', 'CPUExecutionProvider', '--provider', '1=cpu');
fails('a provider that is not there', 5,
  /stage \d \(stage\d\.onnx\): execution provider NoSuch is not in this ONNX Runtime, which has .*CPU/,
  '--provider', 'NoSuch');
fails('a provider whose library is not there', 5, /stage \d .*provider CUDA/, '--provider', 'CUDA');
fails('a provider of one stage', 5, /stage 1 .*NoSuch/, '--provider', '1=NoSuch');
fails('the stage goes before all', 5, /stage 2 .*Other/, '--provider', '2=Other', '--provider', 'CPU');
fails('options of a provider that has none', 2, /stage 1 .*provider CPU: there are no options/,
  '--provider', 'CPU', '--provider-option', '1=device_id=0');
fails('options of no provider', 2, /stage 0.*no --provider/, '--provider-option', 'device_id=0');
fails('no such stage', 2, /stages are 0 to 2/, '--threads', '3=2');
fails('not a number', 2, /--threads/, '--threads', '1=x');
fails('no such level', 2, /0, 1, 2 or 99/, '--optimization', '1=3');
runs('levels and threads by stage', '--optimization', '0', '--optimization', '2=99', '--threads', '1=2');
fails('a configuration entry of one stage', 4, /stage 1 \(stage1\.onnx\)/, '--threads', '2',
  '--session-config', `1=${bad}`);

// The devices file says the same, by the names of the devices that the stages were planned for.
runs('devices without sessions', '--devices', devices(null, null, null));
runs('devices', '--devices', devices(
  { threads: 2 }, { optimization: 0, provider: 'CPU' }, { config: { 'session.disable_prepacking': 1 } }));
fails('a provider of a device', 5, /stage 2 .*NoSuch/,
  '--devices', devices(null, null, { provider: 'NoSuch', provider_options: { a: 'b', c: 2 } }));
runs('an option goes before the file', '--provider', '2=CPU',
  '--devices', devices(null, null, { provider: 'NoSuch', provider_options: { a: 'b' } }));
fails('a configuration entry of a device', 4, /stage 1 /, '--devices', devices(
  null, { threads: 2, config: { 'session.intra_op_thread_affinities': 'nonsense' } }, null));
fails('a device that is missing', 2, /stage 2 was planned for device cpu2/,
  '--devices', devices(null, null));
fails('a key that is not known', 4, /devices\[0\]\.session\.provder/,
  '--devices', devices({ provder: 'x' }));
fails('options without a provider', 4, /session\.provider: is missing/,
  '--devices', devices({ provider_options: { a: 'b' } }, null, null));

// ONNX Runtime fuses a Pad with the pool behind it, and loses what the pool reads where that is sent as well.
const padded = join(tmp, 'padded.onnx'), parts = join(tmp, 'padded');
writeModel(`(float[1,2,8,8] x) => (float[1,2,4,4] y, float[1,2,8,8] z) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
  a = Neg (x) b = Pad (a, p) c = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (b)
  d = Abs (c) z = Exp (a) y = Exp (d) }`, padded);
const cut = spawnSync(splitter, [padded, '-k', '3', '-o', parts, '--quiet', '--pin', '[abc]=0', '--pin', 'd=1',
  '--pin', '[yz]=2'], { env, encoding: 'utf8' });
const padding = each.run([parts, '--random', '--quiet']);
tap.ok(cut.status === 0 && padding.status === 0, 'a padded pool beside what is sent', `${cut.stderr}${padding.stderr}`);

// A whole model that is profiled has the options of all stages, and no others.
if (!launcher) {
  const profile = ['--profile', join(tmp, 'costs.json'), model, '--dim', 'n=3', '-m', '1', '-q'];
  const ends = (title, status, pattern, ...more) => {
    const { status: got, stderr } = each.start(runner, [...profile, ...more]);
    tap.ok(got === status && pattern.test(stderr), `a profile: ${title}`, `exit status ${got}\n${stderr}`);
  };
  ends('the CPU by name, and a level', 0, /^/, '--provider', 'cpu', '--optimization', '1');
  ends('a provider whose library is not there', 5, /provider CUDA/, '--provider', 'CUDA');
  ends('a configuration entry', 4, /nonsense/, '--threads', '2', '--session-config', bad);
  ends('options of a provider that has none', 2, /provider CPU: there are no options/, '--provider', 'CPU', '--provider-option', 'device_id=0');
  ends('options of no provider', 2, /--provider-option, but no --provider/, '--provider-option', 'device_id=0');
  ends('an option of a stage', 2, /stage 0, and a whole model has no stages/, '--threads', '0=2');
  ends('devices', 2, /--devices is for the stages of a split/, '--devices', devices(null, null, null));
}

// While a run of `dir` is under way: what `look` makes of each of its threads, by what /proc says of it; of the look
// that saw most threads.
async function threadsOf(split, more, look) {
  const child = spawn(runner, [split, ...args.slice(1), '-m', '10000000', ...more],
    { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  let most = [], used = 0; // ticks of a processor: threads come late where others want it
  for (let i = 0; i < 100 || (i < 3000 && used < 50 && child.exitCode === null); i++) {
    await sleep(20);
    try {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1').replace(/^.*\) /s, '').split(' ');
      used = Number(stat[11]) + Number(stat[12]);
      const tasks = `/proc/${child.pid}/task`;
      const seen = readdirSync(tasks).map((task) => look(readFileSync(join(tasks, task, 'status'), 'utf8')));
      if (seen.length >= most.length) most = seen;
    } catch { /* it has ended */ }
  }
  child.kill('SIGKILL');
  await ended;
  return most;
}
if (!launcher) {
  // ONNX Runtime starts n - 1 threads for a session of n.
  const [one, more] = [await threadsOf(dir, [], () => 1),
    await threadsOf(dir, ['--threads', '2', '--threads', '1=4'], () => 1)];
  tap.ok(more.length - one.length === 1 + 3 + 1, 'threads: 2 in two stages, 4 in the other',
    `${one.length}, then ${more.length}`);
  // Another pipeline on the machine may have the same cores.
  const two = each.split('fan_out', { as: 'two', stages: 2 });
  const cpus = (status) => /Cpus_allowed_list:\s+(\S+)/.exec(status)[1];
  const mine = cpus(readFileSync('/proc/self/status', 'utf8'));
  const free = await threadsOf(two.dir, [], cpus);
  tap.ok(free.length > 2 && free.every((list) => list === mine), 'no thread is kept on a core', `${mine}: ${free}`);
  if (availableParallelism() < 2) {
    tap.skip('--pin', 'there is one core');
  } else {
    const pinned = await threadsOf(two.dir, ['--pin'], cpus);
    tap.ok(new Set(pinned.filter((list) => /^\d+$/.test(list))).size === 2, '--pin: a core for each stage', `${pinned}`);
    const last = await threadsOf(two.dir, ['--pin', '--no-pin'], cpus);
    tap.ok(last.every((list) => list === mine), '--no-pin takes it back', `${last}`);
  }
}
tap.done();
