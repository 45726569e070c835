// Replicated stages of real models give the bits of the whole model:
//
//   node tests/bench/replicas.mjs BUILD [MODEL...]
//
// Each model of the cache, in four devices of which a stage may have two, beside the model in one stage: six
// micro-batches of random numbers with ONNX Runtime's optimiser off, every output byte for byte. A line for each, and the number of those that differ.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cache, library } from '../e2e/places.mjs';

const [build, ...wanted] = process.argv.slice(2);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { models } = JSON.parse(readFileSync(here('../models/models.json')));
const tmp = mkdtempSync(join(tmpdir(), 'psplit-replicas-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const run = (tool, args) => spawnSync(join(build, 'tools', `onnx-pipeline-${tool}`), args,
  { encoding: 'utf8', timeout: 300000, env: { PSPLIT_ONNXRUNTIME: library, ...process.env } });

// What a split gives, file by file; or a line that says why there is nothing.
function outputs(name, file, model, args) {
  const dir = join(tmp, name), out = join(tmp, `${name}-out`);
  const dims = Object.entries(model.dims ?? {}).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
  const made = run('split', [file, '-o', dir, '--force', '-q', ...dims, ...(model.options ?? []), ...args]);
  if (made.status !== 0) return { why: made.stderr.trim().split('\n').pop() };
  rmSync(out, { recursive: true, force: true });
  const ran = run('run', [dir, '-q', '--random', '-m', '6', '--optimization', '0', '-o', out, ...dims]);
  if (ran.status !== 0) return { why: ran.stderr.trim().split('\n').pop() };
  const { stages } = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
  return { stages, files: readdirSync(out).sort().map((each) => `${each} ${createHash('sha256').update(readFileSync(join(out, each))).digest('hex')}`) };
}

let n = 0, n_differ = 0;
for (const [name, model] of Object.entries(models)) {
  const file = join(cache, `${model.of ?? name}.onnx`);
  if ((wanted.length && !wanted.includes(name)) || !existsSync(file)) continue;
  const whole = outputs('whole', file, model, ['-k', '1']);
  const split = outputs('split', file, model, ['-k', '4', '--replicas', '2']);
  const why = whole.why ?? split.why;
  if (why) {
    console.log(`${name}: ${why}`);
    continue;
  }
  const differs = JSON.stringify(whole.files) !== JSON.stringify(split.files);
  n++;
  n_differ += differs;
  console.log(`${name}: ${split.stages.map(({ replicas = 1 }) => replicas).join(' + ')} devices, ${differs ? 'OTHER BITS' : 'the same bits'}`);
}
console.log(`${n} models, ${n_differ} with other bits`);
process.exitCode = n_differ ? 1 : 0;
