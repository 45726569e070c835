// What does it cost to hand a tensor to another rank?
//
//   node transport.mjs BUILD_DIR [ROUNDS [MIB...]]
//
// BUILD_DIR has tools/onnx-pipeline-run, tools/onnx-pipeline-split and tests/bench/pingpong, built with the MPI
// whose launcher PSPLIT_MPIRUN names ("mpirun -n"). Two stages, one cheap operator each, with one tensor between
// them. In turns, and again in each round:
//
//   ping-pong   half a round trip of a bare message of that size
//   alone       a micro-batch in an idle pipeline: from where the first stage has computed to where the
//               second begins. All that is ours is in it: queues, looking for messages, sizes, fresh memory
//   stream      how long data is under way per micro-batch while the stages compute others, on the same cores
//
// Prints medians per MiB and as ratios to the ping-pong. No test: nothing fails.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeFixture } from '../e2e/fixtures.mjs';
import { library } from '../e2e/places.mjs';

const [build, rounds = '9', ...sizes] = process.argv.slice(2);
const launcher = (process.env.PSPLIT_MPIRUN ?? 'mpirun -n').split(' ');
const tmp = mkdtempSync(join(tmpdir(), 'psplit-transport-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const env = {
  ...process.env,
  PSPLIT_ONNXRUNTIME: process.env.PSPLIT_ONNXRUNTIME || library,
};
const MIB = 1 << 20;
const ROW_BYTES = 8 * 4; // of the tensor: n x 8 floats
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

function run(command, args) {
  const result = spawnSync(command, args, { encoding: 'utf8', env, timeout: 120000 });
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')}\n${result.stderr}`);
  return result.stdout;
}
const ranks = (program, ...args) =>
  run(launcher[0], [...launcher.slice(1), '2', join(build, program), ...args]);

const model = join(tmp, 'model.onnx');
const dir = join(tmp, 'split');
writeFixture('one_edge', model);
run(join(build, 'tools/onnx-pipeline-split'),
  [model, '-k', '2', '-o', dir, '--quiet', '--dim', `n=${MIB / ROW_BYTES}`]);

const trace = join(tmp, 'trace.json');
function pipeline(mib, micro_batches) {
  return JSON.parse(ranks('tools/onnx-pipeline-run', dir, '--random', '--json', '--trace', trace,
    '--dim', `n=${mib * MIB / ROW_BYTES}`, '--warmup', '4', '-m', `${micro_batches}`));
}
const measure = {
  pingpong: (mib) => Number(ranks('tests/bench/pingpong', `${mib * MIB}`).split(' ')[1]),
  alone(mib) {
    pipeline(mib, 1);
    const [first, second] = JSON.parse(readFileSync(trace)).traceEvents
      .filter(({ name }) => name === 'compute').sort((a, b) => a.ts - b.ts);
    return 1e3 * (second.ts - first.ts - first.dur);
  },
  stream: (mib) => pipeline(mib, 40).stages[1].transfer_ns,
};

const row = (...cells) => console.log(cells.map((cell) => `${cell}`.padStart(14)).join(''));
row('MiB', 'ping-pong', 'alone', 'stream', 'alone/p.', 'stream/p.');
for (const mib of sizes.length ? sizes.map(Number) : [1, 4, 16, 64]) {
  const got = { pingpong: [], alone: [], stream: [] };
  for (let round = 0; round < Number(rounds); round++) {
    for (const [kind, list] of Object.entries(got)) list.push(measure[kind](mib));
  }
  const ratio = (kind) => median(got[kind].map((ns, i) => ns / got.pingpong[i])).toFixed(2);
  const per_mib = (kind) => `${(median(got[kind]) / mib / 1e3).toFixed(0)} us/MiB`;
  row(mib, per_mib('pingpong'), per_mib('alone'), per_mib('stream'), ratio('alone'), ratio('stream'));
}
