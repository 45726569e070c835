// What tests of onnx-pipeline-run share: a directory of their own, ONNX Runtime, a split of a small
// model, the command that runs it.
import { spawnSync } from 'node:child_process';
import { closeSync, constants, existsSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFixture } from '../e2e/fixtures.mjs';
import { library } from '../e2e/places.mjs';
import { Tap, skipAll } from '../e2e/tap.mjs';

export { library };
export const env = { ...process.env, PSPLIT_ONNXRUNTIME: library };

// Whether MPICH 4.0's launcher or its proxy fell, with what the ranks said: where all ranks end at once it writes to one
// that has gone (2 in 100 on a busy machine). Then a run says nothing of ours.
export const launcherFell = ({ signal, stderr }) => signal === 'SIGPIPE' ||
  /^\[(mpiexec|proxy)[^\n]*(error writing to control socket|write error \(Broken pipe\))/m.test(`${stderr}`);

// What `start` gives, once more while the launcher falls.
export function unlessItFalls(start) {
  let done = start();
  for (let more = 3; more > 0 && launcherFell(done); more--) done = start();
  return done;
}

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

  start(program, args, options = {}) {
    const start = () => spawnSync(program, args, {
      encoding: 'utf8', timeout: 60000, env, maxBuffer: 1 << 28, ...options,
    });
    return program === this.launcher.split(' ')[0] ? unlessItFalls(start) : start();
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

// What `holds` gives once that is true, or after so many seconds what it gave last. Looks are counted, not the clock: where
// others have the processor, that is longer.
export async function until(holds, seconds = 30) {
  let held = await holds();
  for (let left = 50 * seconds; !held && left > 0; left--) {
    await sleep(20);
    held = await holds();
  }
  return held;
}

// What `promise` gives, or undefined after so long. Node does not wait for the clock at its end.
export function within(ms, promise) {
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// How and when a process ended, once what it printed has come; a rank that is left may keep its pipes open for long.
export const endOf = (child) => new Promise((resolve) => {
  const closed = new Promise((done) => { child.on('close', done); });
  child.on('exit', async (status, signal) => {
    const at = Date.now();
    await within(2000, closed);
    resolve({ status, signal, at });
  });
});

// Once a run has ended, its pipes let go whoever still waits for it to open them: Node does not end before its threads do.
export const letGo = (ended, pipes) => ended.then(() => {
  for (const pipe of pipes.filter(existsSync)) closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK));
});

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

// A file of each thread of a process.
function ofThreads(pid, name) {
  const found = new Map();
  try {
    for (const task of readdirSync(`/proc/${pid}/task`)) found.set(task, readFileSync(`/proc/${pid}/task/${task}/${name}`, 'latin1'));
  } catch { /* the process, or one of them, has ended */ }
  return found;
}

// What the first thread of a process, which ends it, has waited for a processor that others had.
function waitedMs(pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}

// Since when: how long a process takes, but for what it waits for a processor.
export class Watch {
  #pid;
  #since = performance.now();
  #first;
  #last;

  constructor(pid) {
    this.#pid = pid;
    this.#first = this.#last = waitedMs(pid);
  }

  ms() {
    this.#last = Math.max(this.#last, waitedMs(this.#pid)); // none of one that is gone
    return performance.now() - this.#since - (this.#last - this.#first);
  }

  // Once it has ended, or should have long ago.
  async untilEnded() {
    let ms = this.ms();
    while (!hasEnded(this.#pid) && ms < 20000) {
      const own = waitedMs(process.pid);
      await sleep(10);
      ms = this.ms() - (waitedMs(process.pid) - own); // it may have ended while this one waited to look again
    }
    return ms;
  }
}

// Until a process takes SIGTERM and all its threads sleep, or it has used `most` seconds of a processor.
export async function settled(pid, most = Infinity) {
  const look = () => {
    const stats = [...ofThreads(pid, 'stat').values()].map((text) => text.replace(/^.*\) /s, '').split(' '));
    return stats.some(([state]) => state === 'R') ? undefined : stats.map((fields) => fields.slice(11, 13).join()).join(' ');
  };
  for (const since = Date.now(); !hasEnded(pid) && Date.now() - since < 120000;) {
    const before = look();
    await sleep(300);
    let taken = 0;
    try {
      taken = parseInt(/^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1].slice(-8), 16) >> 14 & 1;
    } catch { /* it has ended */ }
    const used = [...ofThreads(pid, 'schedstat').values()].reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e9, 0);
    if (taken && ((before !== undefined && before === look()) || used > most)) return;
  }
}
