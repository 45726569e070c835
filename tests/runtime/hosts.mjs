// Ranks on several hosts, which talk over TCP:
//
//   node hosts.mjs RUN SPLIT mpich|openmpi MPIRUN
//
// Hosts are network namespaces (spaces.mjs). The ranks give the bits that threads give, and what they send passes the network. When a host cannot be reached any more,
// or a rank on it is killed, all end within seconds.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { skipAll } from '../e2e/tap.mjs';
import { Runner, endOf, env, library, sleep, unlessItFalls, until, within } from './runner.mjs';
import { ip, joinHosts, sent, space } from './spaces.mjs';

const [runner, splitter, kind, mpirun] = process.argv.slice(2);
if (kind.startsWith('skip ')) skipAll(kind.slice(5));
const HOSTS = 3;
const BYTES = 200000 * 8 * 4; // of each tensor

const each = new Runner(runner, splitter);
const { tap, tmp } = each;
const { dir, manifest: { inputs: [{ name: input }] } } = each.split('fan_out');
const launch = joinHosts(HOSTS, kind, mpirun, tmp);
const command = (...args) => [...launch, runner, dir,
  '--onnxruntime', library, '--quiet', ...args];

// The runners of this test, by the directory that they run.
const runners = () => readdirSync('/proc').filter((pid) => {
  try {
    const [name, argument] = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
    return /^\d+$/.test(pid) && name === runner && argument === dir;
  } catch {
    return false;
  }
});

const numbers = ['--random', '--shape', `${input}=200000,8`, '-m', '4'];
const before = sent(0);
const result = unlessItFalls(() => spawnSync('ip', command(...numbers, '-o', join(tmp, 'tcp')),
  { encoding: 'utf8', env, timeout: 60000, killSignal: 'SIGKILL' }));
// MPICH 4.0 may hang in MPI_Finalize, when all is done; the runner then leaves without it.
const finished = existsSync(join(tmp, 'tcp', '3-0.npy'));
tap.ok(result.status === 0 || (kind === 'mpich' && finished), 'three hosts',
  `${result.status}\n${result.stderr}`);
const moved = sent(0) - before;
tap.ok(moved > 4 * BYTES, 'what they send passes the network', `${moved} bytes`);
each.run([dir, '--quiet', ...numbers, '-o', join(tmp, 'threads')]);
const names = readdirSync(join(tmp, 'threads'));
tap.none(names.filter((name) => !existsSync(join(tmp, 'tcp', name)) ||
  !readFileSync(join(tmp, 'tcp', name)).equals(readFileSync(join(tmp, 'threads', name)))),
'they give the bits that threads give');

async function ends(title, stop) {
  const out = join(tmp, title.replaceAll(' ', '-'));
  const child = spawn('ip', command('--random', '--dim', 'n=3', '-m', '10000000', '--timeout', '3', '-o', out),
    { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (data) => { stderr += data; });
  const ended = endOf(child);
  await until(() => existsSync(join(out, '9-0.npy')), 60);
  const pids = runners();
  tap.ok(pids.length === HOSTS, `${title}: it runs`, `${pids}\n${stderr}`);
  const start = Date.now();
  stop(pids);
  while (runners().length && Date.now() - start < 40000) await sleep(100);
  tap.none(runners(), `${title}: all ranks have ended after ${Math.round((Date.now() - start) / 1000)} s`);
  // mpirun itself may wait for a daemon that it cannot reach; that is not ours to end.
  const end = await within(5000, ended);
  tap.ok(!end || end.status !== 0, `${title}: it is no success`, stderr);
  if (!end) child.kill('SIGKILL');
  rmSync(out, { recursive: true });
}
await ends('a killed rank', () => process.kill(Number(runners()[1]), 'SIGKILL'));
await ends('a host out of reach', () => ip('-n', space('hub'), 'link', 'set', 'p2', 'down'));
tap.done();
