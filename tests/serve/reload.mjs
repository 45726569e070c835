// Another split takes the place of the one that is served, under load:
//
//   node reload.mjs SERVE RUN SPLIT ODD
//
// Two models, y = 2x and y = 4x, are put into the served directory in turn: no request is lost, each gets the bits of one
// of them, and once the server says that it has reloaded those of the new one. What cannot be loaded changes nothing.
import { cpSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { sleep, until, within } from '../runtime/runner.mjs';
import { Clients, INFER, stageProcesses, values } from './client.mjs';

const [server, runner, splitter, odd] = process.argv.slice(2);
const all = new Clients(server, runner, splitter, odd);
const { tap, tmp, each } = all;

// In as many stages, y = times x.
function split(times, stages, as) {
  const model = join(tmp, `${as}.onnx`);
  writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
m (float[n,8] x) => (float[n,8] y) <float c = {${times}}> {
  [n_a] a = Mul (x, c)
  [n_b] b = Neg (a)
  [n_d] d = Neg (b)
  [n_e] e = Neg (d)
  [n_y] y = Neg (e)
}`, model);
  const made = each.start(splitter, [model, '-k', `${stages}`, '-o', join(tmp, as), '-q', '--dim', 'n=2']);
  tap.ok(made.status === 0, `y = ${times} x in ${stages} stages`, made.stderr);
}
split(2, 2, 'twice');
split(4, 3, 'four');
const served = join(tmp, 'served');
function put(as) {
  const fresh = join(tmp, 'fresh');
  cpSync(join(tmp, as), fresh, { recursive: true });
  if (existsSync(served)) renameSync(served, join(tmp, 'stale'));
  renameSync(fresh, served);
  rmSync(join(tmp, 'stale'), { recursive: true, force: true });
}
const request = (seed) => JSON.stringify({ inputs: [{ name: 'x', shape: [2, 8], datatype: 'FP32', data: values(seed, 2) }] });
const factor = (answer, seed) => {
  const data = answer?.json?.outputs?.[0].data;
  return [2, 4].find((times) => data?.length === 16 && values(seed, 2).every((value, i) => Math.fround(data[i]) === times * value));
};
const serve = async (args, environment) => {
  const run = await all.serve(args, environment, served);
  await until(() => /admin:/.test(run.stdout));
  const port = Number(/admin: http:\/\/127.0.0.1:(\d+)/.exec(run.stdout)?.[1]);
  return Object.assign(run, { admin: port && { port } });
};
const LOAD = '/v2/repository/models/m/load';
const ADMIN = ['--admin', '127.0.0.1:0'];
const reloads = (run) => (run.stdout.match(/^reloaded$/mg) ?? []).length;

for (const [title, ...args] of [['threads'], ['processes', '--isolate']]) {
  put('twice');
  const run = await serve([...ADMIN, '--max-waiting', '1000', ...args]);
  let over = false;
  let asked = 0;
  const counts = {};
  const wrong = [];
  const load = Array.from({ length: 8 }, async () => {
    while (!over) {
      const seed = asked++;
      const answer = await within(30000, all.ask(run, 'POST', INFER, request(seed)));
      const times = factor(answer, seed);
      counts[times] = (counts[times] ?? 0) + 1;
      if (!times) wrong.push(`${answer?.status} ${answer?.error ?? answer?.bytes}`);
    }
  });
  const after = [];
  for (let i = 1; i <= 6; i++) {
    await sleep(150);
    put(i % 2 ? 'four' : 'twice');
    if (i < 4) {
      const answer = await all.ask(run.admin, 'POST', LOAD);
      if (answer.status !== 200) wrong.push(`reload: ${answer.status} ${answer.bytes}`);
    } else {
      process.kill(run.pid, 'SIGHUP');
      await until(() => reloads(run) >= i);
    }
    after.push(factor(await all.ask(run, 'POST', INFER, request(1000)), 1000));
  }
  over = true;
  await Promise.all(load);
  tap.ok(wrong.length === 0 && counts[2] > 10 && counts[4] > 10, `${title}: no request is lost`, `${JSON.stringify(counts)}\n${wrong.slice(0, 5)}`);
  console.log(`# ${title}: ${JSON.stringify(counts)}`);
  tap.ok(after.join() === '4,2,4,2,4,2', `${title}: the new split answers once it is told`, after.join());
  tap.ok(reloads(run) === 6 && await all.metric(run, 'reloads_total{outcome="ok"}') === 6, `${title}: reloads are told and counted`, run.stdout);
  if (title === 'processes') {
    await until(() => stageProcesses(run.pid).size === 2);
    tap.ok(stageProcesses(run.pid).size === 2, 'processes of old stages have ended', `${[...stageProcesses(run.pid)]}`);
  }

  // What cannot be loaded.
  for (const [what, spoil] of [
    ['no pipeline.json', () => rmSync(join(served, 'pipeline.json'))],
    ['a stage that is none', () => writeFileSync(join(served, 'stage1.onnx'), 'nonsense')],
  ]) {
    put('four');
    if (!existsSync(join(served, 'stage1.onnx'))) tap.ok(false, 'stages are called stage1.onnx');
    spoil();
    const answer = await all.ask(run.admin, 'POST', LOAD);
    const still = await all.ask(run, 'POST', INFER, request(7));
    tap.ok(answer.status === 500 && /pipeline\.json|stage1\.onnx/.test(answer.json?.error) && factor(still, 7) === 2,
      `${title}: ${what}: told, and what was served still is`, `${answer.status} ${answer.bytes}; ${still.status} ${still.bytes}`);
    tap.ok(/error: .*(pipeline\.json|stage1\.onnx).*\nnote: the split that was served before still is/.test(run.stderr),
      `${title}: ${what}: on standard error, too`, run.stderr);
    run.stderr = '';
  }
  tap.ok(await all.metric(run, 'reloads_total{outcome="failed"}') === 2, `${title}: failures are counted`);
  if (title === 'processes') {
    // A stage that ends now finds another file: it does not take it for its own.
    process.kill(stageProcesses(run.pid).get(1), 'SIGKILL');
    const answer = await all.ask(run, 'POST', INFER, request(8));
    tap.ok(answer.status === 503 && /stage1\.onnx has changed since/.test(answer.json?.error), 'a file that has changed is not taken for the old one',
      `${answer.status} ${answer.bytes}`);
    put('four');
    const loaded = await all.ask(run.admin, 'POST', LOAD);
    tap.ok(loaded.status === 200 && factor(await all.ask(run, 'POST', INFER, request(9)), 9) === 4, 'a reload mends that', `${loaded.status}`);
  }
  const there = await all.ask(run, 'POST', LOAD);
  const elsewhere = await all.ask(run.admin, 'POST', '/v2/repository/models/mm/load');
  const get = await all.ask(run.admin, 'GET', LOAD);
  tap.ok(there.status === 404 && elsewhere.status === 404 && get.status === 405, `${title}: clients cannot, nor for other models`,
    `${there.status} ${elsewhere.status} ${get.status}`);
  tap.ok(await all.stop(run) === 0, `${title}: it ends`, run.stderr);
}

// What the old split has accepted, it answers; also where the server ends meanwhile.
for (const ends of [false, true]) {
  put('twice');
  const run = await serve(ADMIN, all.oddly('slow-run stage1 150'));
  const under = [0, 1, 2, 3].map((seed) => all.ask(run, 'POST', INFER, request(seed)));
  const accepted = async () => await all.metric(run, 'requests_under_way') + await all.metric(run, 'requests_waiting') +
    await all.metric(run, 'requests_total{outcome="ok"}');
  for (let i = 0; i < 500 && await accepted() < under.length; i++) await sleep(5);
  put('four');
  const { status } = await all.ask(run.admin, 'POST', LOAD);
  const fresh = ends ? undefined : await all.ask(run, 'POST', INFER, request(4));
  const ended = ends ? all.stop(run) : undefined;
  const answers = await Promise.all(under);
  tap.ok(status === 200 && answers.every((answer, seed) => factor(answer, seed) === 2) && (ends || factor(fresh, 4) === 4),
    `what was accepted before is answered by the old split${ends ? ', also when the server ends' : ''}`,
    `${status} ${answers.map((answer) => `${answer.status} ${answer.error ?? ''}`)}`);
  tap.ok(await (ended ?? all.stop(run)) === 0, 'it ends', run.stderr);
}
{
  const { status, stderr } = each.start(server, [served, '--listen', '127.0.0.1:0', '--admin', '0.0.0.0:0']);
  tap.ok(status === 2 && /on the loopback interface/.test(stderr), 'an address that others reach is refused', `${status} ${stderr}`);
}
// Two at one address would each get some of the requests: of another server, or what only --admin may be asked.
{
  const run = await all.serve([], undefined, served);
  const second = each.start(server, [served, '--listen', `127.0.0.1:${run.port}`], { timeout: 60000 });
  tap.ok(second.status === 3 && /cannot listen at \S+: Address already in use/.test(second.stderr), 'an address that is taken is refused',
    `${second.status} ${second.stderr}`);
  const admin = each.start(server, [served, '--listen', '127.0.0.1:0', '--admin', `127.0.0.1:${run.port}`], { timeout: 60000 });
  tap.ok(admin.status === 3 && /cannot listen at \S+: Address already in use/.test(admin.stderr), 'for --admin, too', `${admin.status} ${admin.stderr}`);
  await all.stop(run);
}
all.done();
