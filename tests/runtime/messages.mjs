// How many messages a micro-batch costs over MPI:
//
//   node messages.mjs RUN SPLIT COUNTER LAUNCHER
//
// None on one host. Elsewhere, as where ranks get no memory in common (FEW_WINDOWS), one for each link, however many small
// tensors go over it, and one back for the place that is free again, or for a quarter of the places at once. COUNTER is
// count_sends.c; signs of life and the like do not depend on the number of micro-batches.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env } from './runner.mjs';

const [runner, splitter, counter, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher, 2);
const { tap } = each;
// Two values all the way, each from both before it.
const steps = [0, 1, 2, 3, 4, 5].map((i) => `[n_m${i}] m${i} = MatMul (a${i}, w)
  [n_l${i}] l${i} = MatMul (b${i}, w)
  [n_a${i}] a${i + 1} = Add (m${i}, b${i})
  [n_b${i}] b${i + 1} = Sub (l${i}, a${i})`);
const model = join(each.tmp, 'two.onnx');
const dir = join(each.tmp, 'two');
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
two (float[n,8] x) => (float[n,8] y) <float[8,8] w = random(1)> {
  [n_a] a0 = Tanh (x)
  [n_b] b0 = Sin (x)
  ${steps.join('\n  ')}
  [n_y] y = Add (a6, b6)
}`, model);
const made = each.start(splitter, [model, '-k', '2', '-o', dir, '-q', '--dim', 'n=3']);
tap.ok(made.status === 0, 'it is split', made.stderr);
const { transfers } = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
const links = new Set(transfers.map(({ from, to }) => `${from}-${to}`));
tap.ok(transfers.length > links.size, 'several tensors go over a link', JSON.stringify(transfers));

let windows = 0;
function messages(m, ...args) {
  const { status, stderr } = each.run([dir, '--random', '--dim', 'n=3', '-q', '-m', `${m}`, ...args],
    { env: { ...env, LD_PRELOAD: counter, FEW_WINDOWS: `${windows}` } });
  const counts = [...stderr.matchAll(/^(\d+) messages$/mg)].map(([, n]) => Number(n));
  tap.ok(status === 0 && counts.length === each.ranks, `${m} micro-batches`, `${status}\n${stderr}`);
  return counts.reduce((a, b) => a + b, 0);
}
const [FEW, MANY] = [100, 1100];
const most = 2 * links.size;
const shallow = ['--depth', '2'];
const per = (messages(MANY, ...shallow) - messages(FEW, ...shallow)) / (MANY - FEW);
tap.ok(per <= most + 0.1, 'a message for each link and one back', `${per}, at most ${most}`);
const deep = ['--depth', '32'];
const together = (messages(MANY, ...deep) - messages(FEW, ...deep)) / (MANY - FEW);
tap.ok(together <= links.size * (1 + 1 / 8) + 0.1, 'one back for eight where 32 may wait', `${together}`);
const chunk = [...shallow, '--chunk', '16'];
const chunks = (messages(MANY, ...chunk) - messages(FEW, ...chunk)) / (MANY - FEW);
tap.ok(chunks > per + 1, 'more where messages may not be so long', `${chunks}`);
windows = 2;
const none = (messages(MANY, ...shallow) - messages(FEW, ...shallow)) / (MANY - FEW);
tap.ok(none < 0.1, 'none through memory in common', `${none}`);
tap.done();
