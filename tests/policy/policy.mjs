// A policy's file is what the C network computes: node policy.mjs STEPS INSPECT SPLIT VERIFY POLICY.onnx
//
// ONNX Runtime computes scores and memory of every decision within 1e-5, and decides the same in 99.9 % of them; the
// model is opened by onnx-pipeline-inspect, and split and verified by the tool itself.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';

const [steps, inspect, split, verify, policy] = process.argv.slice(2);
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-policy-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const run = (command, ...args) => spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
const good = (name, { status, stderr }) => tap.ok(status === 0, name, `exit status ${status}: ${stderr}`);

const said = run(steps, policy);
good('the C network reads the policy', said);
const problems = JSON.parse(said.stdout);
const session = await ort.InferenceSession.create(policy, { logSeverityLevel: 3, intraOpNumThreads: 1 });
const floats = (data, dims) => new ort.Tensor('float32', Float32Array.from(data), dims);
const ids = (data, dims) => new ort.Tensor('int64', BigInt64Array.from(data.map(BigInt)), dims);
const apart = (a, b) => Math.max(...a.map((x, i) => Math.abs(x - b[i]) / Math.max(1, Math.abs(x))));
const likeliest = (score) => score.indexOf(Math.max(...score));
let worst = 0, decisions = 0, same = 0, of_schedules = 0, same_schedules = 0;
for (const { n, x, start, edges, schedules, steps: list } of problems) {
  const degree = (end) => edges.map((edge) => edges.filter((other) => other[end] === edge[end]).length);
  const graph = {
    item_features: floats(x, [n, 16]),
    edge_from: ids(edges.map((e) => e[0]), [edges.length]),
    edge_to: ids(edges.map((e) => e[1]), [edges.length]),
    share_of_to: floats(degree(1).map((d) => 1 / d), [edges.length, 1]),
    share_of_from: floats(degree(0).map((d) => 1 / d), [edges.length, 1]),
  };
  for (const step of list) {
    const count = step.score.length;
    const out = await session.run({
      ...graph,
      item: ids([step.item], [1]),
      memory: floats(step.memory, [1, 32]),
      candidate_features: floats(step.candidates, [count, 24]),
      chosen: ids([step.chosen], [1]),
      schedule_features: floats(schedules.features, [schedules.score.length, 16]),
    });
    const score = [...out.score.data];
    worst = Math.max(worst, apart(step.score, score), apart(step.next, [...out.next_memory.data]),
      apart(start, [...out.start_memory.data]), apart(schedules.score, [...out.schedule_score.data]));
    if (step === list[0]) {
      of_schedules++;
      same_schedules += likeliest([...out.schedule_score.data]) === likeliest(schedules.score);
    }
    if (count < 2) continue;
    decisions++;
    same += likeliest(score) === step.chosen;
  }
}
tap.ok(worst <= 1e-5, `scores and memory within 1e-5: ${worst.toExponential(1)}`);
tap.ok(decisions > 500 && same >= 0.999 * decisions, `${same} of ${decisions} decisions are the same`);
tap.ok(of_schedules === 24 && same_schedules === of_schedules, `${same_schedules} of ${of_schedules} schedules are the same`);

good('onnx-pipeline-inspect opens it', run(inspect, policy));
const out = join(work, 'split');
good('onnx-pipeline-split cuts it in two', run(split, policy, '-k', '2', '-o', out, '--dim', 'items=100',
  '--dim', 'edges=200', '--dim', 'candidates=8', '--dim', 'schedules=20'));
good('and the stages are the model', run(verify, out, '--model', policy));
tap.done();
