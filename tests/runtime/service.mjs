// A pipeline that takes requests, in a program of its own (use_service.c, which says what it checks):
//
//   node service.mjs PROGRAM SPLIT ODD [LAUNCHER|processes]
import { Runner, env, library } from './runner.mjs';

const [program, splitter, odd, how] = process.argv.slice(2);
const launcher = how === 'processes' ? '' : how;
const over = launcher ? 'mpi' : how || 'threads';
const each = new Runner(program, splitter, launcher);
const { tap } = each;
const oddly = (what) => ({ ...env, ODD: what, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd });

for (const model of ['fan_out', 'several_outputs']) {
  const { dir } = each.split(model);
  for (const [what, environment, ...checks] of [
    ['as it comes', env, 'many', 'inputs', 'dropped'],
    ['a slow stage', oddly('slow-run stage1 100'), 'slow'],
    ['stopped', oddly('slow-run stage1 100'), 'stopping'],
    ['a stage that fails', oddly('fail-run stage1 20'), 'failing'],
    ['joined requests', env, 'batches', ...(launcher ? [] : ['no-batches'])],
    ['joined requests that fail', oddly('fail-run stage1 16'), 'failing-batch'],
  ]) {
    const { status, stdout, stderr } = each.run([over, dir, ...checks], { env: environment });
    tap.ok(status === 0 && /^1\.\.[1-9]/m.test(stdout) && !/^(not ok|Bail)/m.test(stdout), `${model}: ${what}`,
      `exit status ${status}\n${stdout}\n${stderr}`);
  }
}
tap.done();
