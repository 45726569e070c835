// Ranks on several hosts, which talk over TCP:
//
//   node hosts.mjs RUN SPLIT mpich|openmpi MPIRUN
//
// Hosts are network namespaces, joined by a bridge; that needs root and iproute2, and is skipped
// elsewhere. mpirun starts its daemons with a script that stands for ssh. The ranks give the bits
// that threads give, and what they send passes the network. When a host cannot be reached any more,
// or a rank on it is killed, all end within seconds.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { skipAll } from '../e2e/tap.mjs';
import { Runner, env, library, sleep, within } from './runner.mjs';

const [runner, splitter, kind, mpirun] = process.argv.slice(2);
if (kind.startsWith('skip ')) skipAll(kind.slice(5));
const HOSTS = 3;
const BYTES = 200000 * 8 * 4; // of each tensor
const prefix = `psplit${process.pid}`;
const space = (i) => `${prefix}-${i}`;
const address = (i) => `10.213.77.${i + 1}`;
const ip = (...args) => spawnSync('ip', args, { encoding: 'utf8' });

// With what daemons are left in them, which a launcher that cannot reach a host leaves behind.
function takeDown() {
  for (const name of ['hub', 0, 1, 2]) {
    const pids = ip('netns', 'pids', space(name)).stdout?.split('\n').filter(Boolean) ?? [];
    for (const pid of pids) {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch { /* it has ended */ }
    }
    ip('netns', 'del', space(name));
  }
}
function setUp() {
  const steps = [['netns', 'add', space('hub')],
    ['-n', space('hub'), 'link', 'add', 'br0', 'type', 'bridge'],
    ['-n', space('hub'), 'link', 'set', 'br0', 'up']];
  for (let i = 0; i < HOSTS; i++) {
    steps.push(['netns', 'add', space(i)], ['-n', space(i), 'link', 'set', 'lo', 'up'],
      ['-n', space(i), 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', `p${i}`, 'netns', space('hub')],
      ['-n', space(i), 'addr', 'add', `${address(i)}/24`, 'dev', 'eth0'],
      ['-n', space(i), 'link', 'set', 'eth0', 'up'],
      ['-n', space('hub'), 'link', 'set', `p${i}`, 'master', 'br0', 'up']);
  }
  for (const step of steps) {
    const { status, error, stderr } = ip(...step);
    if (status === 0) continue;
    takeDown();
    skipAll(`no network namespaces: ip ${step.join(' ')}: ${error?.message ?? stderr.trim()}`);
  }
  process.on('exit', takeDown);
}
setUp();

const each = new Runner(runner, splitter);
const { tap, tmp } = each;
const { dir, manifest: { inputs: [{ name: input }] } } = each.split('fan_out');
const agent = join(tmp, 'agent');
writeFileSync(agent, `#!/bin/sh
# ssh [OPTION]... HOST COMMAND...
while [ "\${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec ${prefix}-$((\${host##*.} - 1)) sh -c "$*"
`, { mode: 0o755 });
const hosts = Array.from({ length: HOSTS }, (_, i) => address(i));
const launch = {
  mpich: [mpirun, '-launcher', 'ssh', '-launcher-exec', agent, '-hosts', hosts.join(','),
    '-genv', 'UCX_TLS', 'tcp,self'],
  openmpi: [mpirun, '--allow-run-as-root', '--leave-session-attached', '--mca', 'plm_rsh_agent', agent,
    '--mca', 'pml', 'ob1', '--mca', 'btl', 'tcp,self', '-H', hosts.map((host) => `${host}:1`).join(',')],
}[kind];
const command = (...args) => ['netns', 'exec', space(0), ...launch, '-n', `${HOSTS}`, runner, dir,
  '--onnxruntime', library, '--quiet', ...args];
const sent = (i) => Number(spawnSync('ip',
  ['netns', 'exec', space(i), 'cat', '/sys/class/net/eth0/statistics/tx_bytes']).stdout);

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
const result = spawnSync('ip', command(...numbers, '-o', join(tmp, 'tcp')),
  { encoding: 'utf8', env, timeout: 60000, killSignal: 'SIGKILL' });
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
  const ended = new Promise((resolve) => {
    child.on('exit', (status, signal) => resolve({ status, signal }));
  });
  for (let i = 0; i < 500 && !existsSync(join(out, '9-0.npy')); i++) await sleep(20);
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
