// What does it cost to run stages as ranks of MPI on one host, not as threads?
//
//   node ranks.mjs BUILD_DIR [K [ROUNDS [MODEL...]]]
//
// BUILD_DIR has tools/onnx-pipeline-run and tools/onnx-pipeline-split, built with the MPI whose launcher PSPLIT_MPIRUN
// names ("mpirun -n"). The stages of each model of the cache run over threads and over MPI, in turn and again in each
// round. Prints micro-batches a second, once filled, and the ratio of the two: medians over the rounds, with the least
// and the greatest ratio; and the CPU time that all processes take for a micro-batch, which says more where others want the
// cores: what a run takes over one of a quarter of the micro-batches. `empty` is a model of two operators on eight numbers, cut in two: nothing but handing over.
// No test: nothing fails.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFixture } from '../e2e/fixtures.mjs';
import { cache, library } from '../e2e/places.mjs';

const [build, k = '2', rounds = '9', ...wanted] = process.argv.slice(2);
const launcher = (process.env.PSPLIT_MPIRUN ?? 'mpirun -n').split(' ');
const seconds = Number(process.env.PSPLIT_BENCH_SECONDS ?? 2);
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));
const tmp = mkdtempSync(join(tmpdir(), 'psplit-ranks-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const env = {
  ...process.env,
  PSPLIT_ONNXRUNTIME: process.env.PSPLIT_ONNXRUNTIME || library,
};
const [runner, splitter] = ['onnx-pipeline-run', 'onnx-pipeline-split'].map((name) => join(build, 'tools', name));
const sorted = (list) => [...list].sort((a, b) => a - b);
const median = (list) => sorted(list)[Math.floor(list.length / 2)];

function run(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8', env, timeout: 300000 });
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')}\n${result.stderr}`);
  return result;
}
const ranks = { threads: '1', mpi: k };
// Both by the launcher: systems share cores among sessions of processes, and launchers begin new ones. The shell's `times`
// has a line for itself and one for its children, "MmS.SSs" in user mode and in the system.
function measure(transport, args) {
  const command = [...launcher, ranks[transport], runner, ...args, '--transport', transport];
  const { stdout, stderr } = run('sh', ['-c', '"$@" && times >&2', 'sh', ...command]);
  const times = stderr.trimEnd().split('\n').at(-1).matchAll(/(\d+)m([\d.]+)s/g);
  return {
    rate: JSON.parse(stdout).steady_throughput_per_s,
    cpu: [...times].reduce((sum, [, minutes, rest]) => sum + 60 * Number(minutes) + Number(rest), 0),
  };
}

const row = (name, ...cells) =>
  console.log(name.padEnd(24) + cells.map((cell) => String(cell).padStart(12)).join(''));
row('model', 'threads/s', 'mpi/s', 'us/mb (mpi)', 'mpi/threads', 'least', 'greatest', 'threads CPU', 'mpi CPU us');
const names = wanted.length ? wanted : ['empty', 'wakeword', 'mobilenet_v3_small', 'ppocr_rec', 'resnet50'];
for (const name of names) {
  const file = join(name === 'empty' ? tmp : cache, `${name}.onnx`);
  if (name === 'empty') writeFixture('one_edge', file);
  if (!existsSync(file) || (name === 'empty' && k !== '2')) continue;
  const dims = Object.entries(models[name]?.dims ?? { n: 1 }).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
  const dir = join(tmp, name);
  run(splitter, [file, '-k', k, '-o', dir, '--quiet', ...(name in models && !models[name].dims ? [] : dims)]);
  const args = [dir, '--random', '--json', ...(name in models && !models[name].dims ? [] : dims), '-m'];
  const m = Math.max(80, Math.round(seconds * measure('threads', [...args, '20']).rate));
  const few = Math.floor(m / 4);
  const got = { threads: [], mpi: [] };
  const cpu = { threads: [], mpi: [] };
  for (let round = 0; round < Number(rounds); round++) {
    for (const kind of Object.keys(got)) {
      const [less, all] = [measure(kind, [...args, `${few}`]), measure(kind, [...args, `${m}`])];
      got[kind].push(all.rate);
      cpu[kind].push(1e6 * (all.cpu - less.cpu) / (m - few));
    }
  }
  const ratios = sorted(got.mpi.map((each, i) => each / got.threads[i]));
  row(name, median(got.threads).toFixed(1), median(got.mpi).toFixed(1), (1e6 / median(got.mpi)).toFixed(1),
    median(ratios).toFixed(3), ratios[0].toFixed(3), ratios.at(-1).toFixed(3), median(cpu.threads).toFixed(1),
    median(cpu.mpi).toFixed(1));
}
