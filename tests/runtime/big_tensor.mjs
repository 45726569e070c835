// A tensor above 2 GiB between two stages, which no single message of MPI can hold:
//
//   node big_tensor.mjs RUN SPLIT "mpirun -n"
//
// Over MPI the outputs are the bits that threads give, where the tensor changes hands; they are means over all of
// it, so none of its parts may be missing. Takes some 7 GB of memory and a minute, so it is not in the suite.
import { readFileSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { skipAll } from '../e2e/tap.mjs';
import { Runner } from './runner.mjs';

const ROWS = 70000000;
const BYTES = ROWS * 8 * 4;
if (freemem() < 4 * BYTES) skipAll(`${(4 * BYTES / 1e9).toFixed(0)} GB of free memory are needed`);

const [runner, splitter, launcher] = process.argv.slice(2);
const mpi = new Runner(runner, splitter, launcher, 2);
const { tap, tmp } = mpi;
const { dir } = mpi.split('one_edge');
function outputOf(transport, command) {
  const out = join(tmp, transport);
  const [program, ...rest] = [...command, dir, '--random', '--shape', `x=${ROWS},8`, '--warmup', '0',
    '--transport', transport, '--output', out, '--json'];
  const result = mpi.start(program, rest, { timeout: 600000 });
  if (!tap.ok(result.status === 0, `${BYTES} bytes over ${transport}`, result.stderr)) return undefined;
  return { bytes: readFileSync(join(out, '0-0.npy')), report: JSON.parse(result.stdout) };
}
const threads = outputOf('threads', [runner]);
const ranks = outputOf('mpi', [...launcher.split(' '), '2', runner]);
if (threads && ranks) {
  tap.ok(ranks.bytes.equals(threads.bytes), 'both give the same bits');
  const { received_bytes: received, transfer_ns: ns } = ranks.report.stages[1];
  tap.ok(received === BYTES, `all bytes were sent, in ${(ns / 1e9).toFixed(1)} s`, `${received}`);
}
tap.done();
