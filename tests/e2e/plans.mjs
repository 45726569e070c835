// How good are the plans? node plans.mjs TOOL [K]: a table over the models in the cache.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cache } from './places.mjs';

const [tool, wanted = '4'] = process.argv.slice(2);
const { models } = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));

const row = (...cells) =>
  console.log(cells.map((cell, i) => (i ? String(cell).padStart(14) : cell.padEnd(24))).join(''));
row('model', 'stages', 'bottleneck us', 'bound us', 'gap', 'optimal', 'transfers', 'seconds');
for (const [name, { dims = {}, max_stages: most = Infinity }] of Object.entries(models)) {
  const file = join(cache, `${name}.onnx`);
  if (!existsSync(file)) continue;
  const k = String(Math.min(Number(wanted), most));
  const fixed = Object.entries(dims).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]);
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(tool,
    [file, '-k', k, '--plan-only', '--json', '--quiet', ...fixed],
    { encoding: 'utf8', maxBuffer: 1 << 30 });
  const seconds = ((performance.now() - start) / 1000).toFixed(2);
  if (status !== 0) {
    row(name, k, stderr.trim());
    continue;
  }
  const { plan, transfers } = JSON.parse(stdout);
  const us = (ns) => (ns === null ? '?' : (ns / 1000).toFixed(1));
  row(name, k, us(plan.bottleneck_ns), us(plan.lower_bound_ns),
    plan.gap_frac === null ? '?' : `${(100 * plan.gap_frac).toFixed(2)} %`,
    plan.proved_optimal ? 'proved' : 'no', transfers.length, seconds);
}
