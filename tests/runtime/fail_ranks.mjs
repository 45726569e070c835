// An allocation of one process of a run fails:
//
//   node fail_ranks.mjs RUN SPLIT FAILING [LAUNCHER]
//
// FAILING (fail_ranks.c) counts the places that allocate in this project's own code, and has one of them fail, in the
// one process or in a rank. The run ends soon, with a line that says why; or it did without, with the outputs that it
// would have given. Every 6th place is asked; PSPLIT_FAULTS_STEP=1 asks all.
import { readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Runner, env } from './runner.mjs';

const [runner, splitter, failing, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher, 2);
const { tap, tmp } = each;
const { dir } = each.split('long_node');
const out = join(tmp, 'out'), count = join(tmp, 'count'), step = Number(process.env.PSPLIT_FAULTS_STEP ?? 6);
const outputs = () => readFileSync(join(out, '2-0.npy'));

function run(rank, place) {
  rmSync(out, { recursive: true, force: true });
  const since = Date.now();
  const ran = each.run([dir, '--random', '--dim', 'n=3', '-q', '-m', '3', '-o', out, '--timeout', '8'], { timeout: 60000, killSignal: 'SIGKILL',
    env: { ...env, LD_PRELOAD: resolve(failing), PSPLIT_FAIL_PLACE: `${place}`, PSPLIT_FAIL_COUNT: count, ...(launcher ? { PSPLIT_FAIL_RANK: `${rank}` } : {}) } });
  return { ...ran, ms: Date.now() - since };
}

for (const rank of launcher ? [0, 1] : [0]) {
  const title = launcher ? `rank ${rank}` : 'one process';
  const whole = run(rank, 0), problems = [];
  if (!tap.ok(whole.status === 0, `${title}: nothing fails`, whole.stderr)) continue;
  const wanted = outputs(), n = Number(readFileSync(count));
  let told = 0, without = 0;
  for (let place = 1 + rank; place <= n; place += step) {
    const { status, signal, stderr, ms } = run(rank, place);
    if (status === 0 && outputs().equals(wanted)) without++;
    else if (status > 0 && !signal && (launcher || status === 6) && /^error: .*(memory|allocat)/m.test(stderr)) told++;
    else problems.push(`${place}: ${status} ${signal} after ${ms} ms: ${stderr}`);
  }
  tap.none(problems, `${title}: of ${n} places that allocate ${told} are told of, ${without} done without`);
  tap.ok(told > 5, `${title}: most are needed`, `${told}`);
}
tap.done();
