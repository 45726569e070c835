// What tests of onnx-pipeline-run share: a directory of their own, ONNX Runtime, a split of a small
// model, the command that runs it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFixture } from '../e2e/fixtures.mjs';
import { library } from '../e2e/places.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';

export { library };
export const env = { ...process.env, PSPLIT_ONNXRUNTIME: library };

// The launcher takes a number of ranks behind it ("mpirun -n"); "skip WHY" skips all, "" is threads.
export class Runner {
  constructor(runner, splitter, launcher = '', ranks = 3) {
    if (launcher.startsWith('skip ')) skipAll(launcher.slice(5));
    Object.assign(this, { runner, splitter, launcher, ranks });
    this.tap = new Tap();
    this.tmp = mkdtempSync(join(tmpdir(), 'psplit-run-'));
    process.on('exit', () => rmSync(this.tmp, { recursive: true, force: true }));
  }

  // Splits a model of ../e2e/fixtures.mjs; gives the directory and what pipeline.json says.
  split(name, { as = name, stages = this.ranks, args = [] } = {}) {
    const model = join(this.tmp, `${name}.onnx`);
    const dir = join(this.tmp, as);
    writeFixture(name, model);
    const made = spawnSync(this.splitter,
      [model, '-k', `${stages}`, '-o', dir, '--quiet', '--dim', 'n=3', ...args],
      { encoding: 'utf8' });
    if (!this.tap.ok(made.status === 0, `${name} is split`, made.stderr)) process.exit(1);
    return { model, dir, manifest: JSON.parse(readFileSync(join(dir, 'pipeline.json'))) };
  }

  command(args) {
    return this.launcher ? [...this.launcher.split(' '), `${this.ranks}`, this.runner, ...args]
      : [this.runner, ...args];
  }

  run(args, options = {}) {
    const [program, ...rest] = this.command(args);
    return this.start(program, rest, options);
  }

  // Where all ranks end at once with an error, MPICH 4.0's launcher tells a proxy that has gone to end
  // the others, and falls itself (2 in 100 on a busy machine) with what the ranks said: once more.
  start(program, args, options = {}) {
    const start = () => spawnSync(program, args, {
      encoding: 'utf8', timeout: 60000, env, maxBuffer: 1 << 28, ...options,
    });
    const fell = ({ signal, stderr }) => program === this.launcher.split(' ')[0] &&
      (signal === 'SIGPIPE' || /^\[mpiexec@.*error writing to control socket/m.test(`${stderr}`));
    let done = start();
    for (let more = 3; more > 0 && fell(done); more--) done = start();
    return done;
  }

  // One of the error lines has to match.
  fails(title, status, pattern, args, options) {
    const result = this.run(args, options);
    const lines = `${result.stderr}`.split('\n').filter((line) => line.startsWith('error:'));
    return this.tap.ok(result.status === status && lines.some((line) => pattern.test(line)), title,
      `exit status ${result.status}\n${result.stderr}`);
  }
}

export const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// What `promise` gives, or undefined after so long. Node does not wait for the clock at its end.
export function within(ms, promise) {
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const parentOf = (pid) => {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) . /s, '').split(' ')[0]);
  } catch {
    return 0;
  }
};

// The processes that run `program` and that process `root` started, itself or through others.
export function processesBelow(root, program) {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
  return all.filter((pid) => {
    let command = '';
    try {
      command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0];
    } catch { /* it has ended */ }
    let at = pid;
    for (let depth = 0; command === program && at > 1 && at !== root && depth < 8; depth++) at = parentOf(at);
    return command === program && at === root;
  });
}

// Of them, the one that MPI numbered so; undefined where there is none.
export const rankBelow = (root, program, rank) => processesBelow(root, program).find((pid) =>
  new RegExp(`(^|\\0)(PMI_RANK|OMPI_COMM_WORLD_RANK)=${rank}(\\0|$)`).test(readFileSync(`/proc/${pid}/environ`, 'latin1')));

// Whether it is gone, or dead and not yet waited for.
export const hasEnded = (pid) => {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true;
  }
};
