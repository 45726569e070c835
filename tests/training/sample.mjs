// The sample of a trainer trains a GPT and a ResNet-18 in stages: node sample.mjs SPLIT
//
// The models are what torch exports (../gradient/families.py). The sample runs as its comment says,
// on its own numbers; the losses that it prints have to fall, and to be the same with everything
// computed again.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tap, skipAll } from '../e2e/tap.mjs';

const [split] = process.argv.slice(2);
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-sample-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const path = (name) => fileURLToPath(new URL(name, import.meta.url));
if (spawnSync('/usr/bin/python3', ['-c', 'import torch, torchvision, onnx']).status !== 0) {
  skipAll('there is no /usr/bin/python3 with torch and torchvision; Debian has python3-torchvision');
}

const models = {
  gpt: { loss: 'softmax-cross-entropy:labels=target,ignore=-100,axis=-1', steps: 12,
    arguments: ['--below', 'tokens=61', '--below', 'target=61', '--lr', '0.003', 'batch=2', 'length=12'] },
  resnet18: { loss: 'softmax-cross-entropy:labels=target', steps: 4,
    arguments: ['--below', 'target=1000', '--lr', '0.0005'] },
};
const exported = spawnSync('/usr/bin/python3', [path('../gradient/families.py'), work, ...Object.keys(models)], { encoding: 'utf8' });
if (exported.status !== 0) throw new Error(exported.stderr);

const source = readFileSync(path('../../samples/train_stages.mjs'), 'utf8');
tap.ok(source.split('\n').length - 1 < 100, 'the sample has less than 100 lines');
for (const [name, { loss, steps, arguments: given }] of Object.entries(models)) {
  const losses = ['none', 'heavy'].map((recompute) => {
    const dir = join(work, `${name}-${recompute}`);
    const made = spawnSync(split, [join(work, name, 'model.onnx'), '-k', '2', '-o', dir, '--quiet', '--training', '--loss', loss,
      '--trained-weights', 'input', '--recompute', recompute], { encoding: 'utf8' });
    const done = spawnSync('node', [path('../../samples/train_stages.mjs'), dir, '--steps', String(steps), '--micro-batches', '2', ...given],
      { encoding: 'utf8', cwd: path('../e2e') });
    const lines = [...done.stdout.matchAll(/^step \d+: loss ([\d.]+)$/gm)].map(([, number]) => Number(number));
    tap.ok(lines.length === steps && lines.at(-1) < 0.95 * lines[0], `${name}, recompute ${recompute}: loss ${lines[0]} -> ${lines.at(-1)}`,
      made.stderr + done.stdout + done.stderr);
    return lines;
  });
  const far = Math.max(...losses[0].map((each, i) => Math.abs(each - losses[1][i])));
  tap.ok(far <= 1e-4 * losses[0][0], `${name}: the same losses with either`, JSON.stringify(losses));
}
tap.done();
