// Hosts that are network namespaces, joined by a bridge: that needs root and iproute2, and the test is
// skipped elsewhere. mpirun starts its daemons with a script that stands for ssh.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { skipAll } from '../e2e/tap.mjs';

const prefix = `psplit${process.pid}`;
const address = (i) => `10.213.77.${i + 1}`;
export const space = (i) => `${prefix}-${i}`;
export const ip = (...args) => spawnSync('ip', args, { encoding: 'utf8' });

// With what daemons are left in them, which a launcher that cannot reach a host leaves behind.
function takeDown(n) {
  for (const name of ['hub', ...Array(n).keys()]) {
    const pids = ip('netns', 'pids', space(name)).stdout?.split('\n').filter(Boolean) ?? [];
    for (const pid of pids) {
      try {
        process.kill(Number(pid), 'SIGKILL');
      } catch { /* it has ended */ }
    }
    ip('netns', 'del', space(name));
  }
}

// Hosts 0 .. n - 1; the word that starts a launcher on host 0, with `n` ranks, one on each.
// `kind` is mpich or openmpi, or "skip WHY".
export function joinHosts(n, kind, mpirun, tmp) {
  if (kind.startsWith('skip ')) skipAll(kind.slice(5));
  const steps = [['netns', 'add', space('hub')],
    ['-n', space('hub'), 'link', 'add', 'br0', 'type', 'bridge'],
    ['-n', space('hub'), 'link', 'set', 'br0', 'up']];
  for (let i = 0; i < n; i++) {
    steps.push(['netns', 'add', space(i)], ['-n', space(i), 'link', 'set', 'lo', 'up'],
      ['-n', space(i), 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', `p${i}`, 'netns', space('hub')],
      ['-n', space(i), 'addr', 'add', `${address(i)}/24`, 'dev', 'eth0'],
      ['-n', space(i), 'link', 'set', 'eth0', 'up'],
      ['-n', space('hub'), 'link', 'set', `p${i}`, 'master', 'br0', 'up']);
  }
  for (const step of steps) {
    const { status, error, stderr } = ip(...step);
    if (status === 0) continue;
    takeDown(n);
    skipAll(`no network namespaces: ip ${step.join(' ')}: ${error?.message ?? stderr.trim()}`);
  }
  process.on('exit', () => takeDown(n));
  const agent = join(tmp, 'agent');
  writeFileSync(agent, `#!/bin/sh
# ssh [OPTION]... HOST COMMAND...
while [ "\${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec ${prefix}-$((\${host##*.} - 1)) sh -c "$*"
`, { mode: 0o755 });
  const hosts = Array.from({ length: n }, (_, i) => address(i));
  const launch = {
    mpich: [mpirun, '-launcher', 'ssh', '-launcher-exec', agent, '-hosts', hosts.join(','),
      '-genv', 'UCX_TLS', 'tcp,self'],
    openmpi: [mpirun, '--allow-run-as-root', '--leave-session-attached', '--mca', 'plm_rsh_agent', agent,
      '--mca', 'pml', 'ob1', '--mca', 'btl', 'tcp,self', '-H', hosts.map((host) => `${host}:1`).join(',')],
  }[kind];
  return ['netns', 'exec', space(0), ...launch, '-n', `${n}`];
}

// Bytes that a host has sent.
export const sent = (i) => Number(spawnSync('ip',
  ['netns', 'exec', space(i), 'cat', '/sys/class/net/eth0/statistics/tx_bytes']).stdout);
