// Models that go back and forth between devices give the bits of the whole model:
//
//   node tests/bench/segments_bits.mjs BUILD [MODEL...]
//
// Two devices, of which one is five times as fast and does not run a fifth of each model's operators, drawn by name; what crosses costs
// little. Each model of the cache is split with --segments 3 and --non-contiguous, for throughput and latency, and runs beside the model in
// one stage with ONNX Runtime's optimiser off: six micro-batches of random numbers, every output byte for byte, over threads with queues of
// one and of two, and with PSPLIT_MPIRUN ("mpirun -n") over MPI where there are no more than MOST_RANKS stages. A line for
// each, with the plan's gap, and the number of those that differ.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cache, library } from '../e2e/places.mjs';

const [build, ...wanted] = process.argv.slice(2);
const MOST_RANKS = 8;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { models } = JSON.parse(readFileSync(here('../models/models.json')));
const launcher = process.env.PSPLIT_MPIRUN?.split(' ');
const tmp = mkdtempSync(join(tmpdir(), 'psplit-segments-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const [devices, dir, whole, out] = ['devices.json', 'split', 'whole', 'out'].map((name) => join(tmp, name));
const call = (program, args) => spawnSync(program, args, { encoding: 'utf8', timeout: 300000, maxBuffer: 1 << 28,
  env: { PSPLIT_ONNXRUNTIME: library, ...process.env } });
const tool = (name) => join(build, 'tools', `onnx-pipeline-${name}`);
const last = ({ stderr, status }) => `${stderr.trim().split('\n').pop()} (${status})`;

const digest = (text) => createHash('sha1').update(text).digest('hex');
function writeDevices(file, dims, options) {
  const asked = call(tool('inspect'), [file, ...dims, ...options, '-q', '--level', 'operators', '--format', 'json']);
  const names = [...new Set(JSON.parse(asked.stdout).operators.filter((node) => !node.constant && !node.dead)
    .map(({ domain, op }) => (domain ? `${domain}.${op}` : op)))].sort((a, b) => (digest(a) < digest(b) ? -1 : 1));
  const device = (name, flops, more) => ({ name, flops_per_second: { float32: flops }, memory_bandwidth: flops / 6, overhead_ns: 1000, ...more });
  writeFileSync(devices, JSON.stringify({
    devices: [device('slow', 2e10), device('fast', 1e11, { unsupported: { operators: names.slice(0, Math.max(1, Math.round(names.length / 5))) } })],
    topology: { same_host: { bytes_per_second: 1e11, latency_ns: 100 } } }));
}

// Outputs of a split, as digests; a text that says why there are none.
function outputs(split, dims, more = [], launch = []) {
  rmSync(out, { recursive: true, force: true });
  const ran = call(launch[0] ?? tool('run'), [...launch.slice(1), ...(launch.length ? [tool('run')] : []),
    split, '-q', '--random', '-m', '6', '--optimization', '0', '-o', out, ...more, ...dims]);
  if (ran.status !== 0) return last(ran);
  return readdirSync(out).sort().map((each) => `${each} ${createHash('sha256').update(readFileSync(join(out, each))).digest('hex')}`).join();
}

let n = 0, n_differ = 0;
for (const [name, model] of Object.entries(models)) {
  const file = join(cache, `${model.of ?? name}.onnx`);
  if ((wanted.length && !wanted.includes(name)) || !existsSync(file)) continue;
  const dims = Object.entries(model.dims ?? {}).flatMap(([dim, size]) => ['--dim', `${dim}=${size}`]), options = model.options ?? [];
  const one = call(tool('split'), [file, '-k', '1', '-o', whole, '--force', '-q', ...dims, ...options]);
  const wished = one.status === 0 ? outputs(whole, dims) : last(one);
  if (!wished.includes('.npy')) {
    console.log(`${name}: ${wished}`);
    continue;
  }
  writeDevices(file, dims, options);
  for (const objective of ['throughput', 'latency']) {
    for (const segments of [['--segments', '3'], ['--non-contiguous']]) {
      const made = call(tool('split'), [file, '--devices', devices, '-o', dir, '--force', '-q', '--verify', '--objective', objective, ...segments, ...dims, ...options]);
      const title = `${name}, ${objective}, ${segments.join(' ')}`;
      if (made.status !== 0) {
        console.log(`${title}: ${last(made)}`);
        continue;
      }
      const { stages, plan } = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
      const runs = [['1'], ['2'], ...(launcher && stages.length <= MOST_RANKS ? [['2', ...launcher, `${stages.length}`]] : [])];
      const wrong = runs.map(([depth, ...launch]) => [depth, launch, outputs(dir, dims, ['--depth', depth], launch)]).filter(([, , got]) => got !== wished);
      n++;
      n_differ += wrong.length > 0;
      console.log(`${title}: ${stages.length} stages, gap ${(100 * plan.gap_frac).toFixed(1)} % (${plan.bound}), ${wrong.length ? `OTHER BITS ${JSON.stringify(wrong).slice(0, 300)}`
        : `the same bits over threads${runs.length > 2 ? ' and MPI' : ''}`}`);
    }
  }
}
console.log(`${n} splits, ${n_differ} with other bits`);
process.exitCode = n_differ ? 1 : 0;
