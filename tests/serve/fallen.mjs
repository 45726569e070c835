// Processes of stages that end, under load:
//
//   node fallen.mjs SERVE RUN SPLIT ODD [KILLS [CLIENTS]]
//
// kill -9 of any of them at random moments, KILLS times (default 15), while CLIENTS (8) ask: each request is answered once, with the right bits
// or with one error that says so; the process is there again. A request that ends its stage twice is told so, and only
// that one; so is one that a stage does not get through with. The server ends its processes with itself, however it ends.
import { sleep, until, within } from '../runtime/runner.mjs';
import { Clients, INFER, KINDS, stageProcesses } from './client.mjs';

const [server, runner, splitter, odd, kills = '15', clients = '8'] = process.argv.slice(2);
const KILLS = Number(kills);
const all = new Clients(server, runner, splitter, odd);
const { tap } = all;
const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const gone = async (pids) => {
  await until(() => !pids.some(isAlive), 60);
  return !pids.some(isAlive);
};

{
  const run = await all.serve(['--isolate', '--max-waiting', '1000']);
  const first = stageProcesses(run.pid);
  tap.ok(first.size === 2, 'a process for each stage', `${[...first]}`);
  const counts = { right: 0, told: 0 };
  const wrong = [];
  let over = false;
  let asked = 0;
  const client = async () => {
    for (; !over; asked++) {
      const seed = asked % KINDS;
      const answer = await within(120000, all.ask(run, 'POST', INFER, all.request(seed, 2)));
      if (answer?.status === 200 && all.isRight(answer.json?.outputs[0].data, seed)) counts.right++;
      else if (answer?.status === 500 && /^stage \d.*its process ended twice while it computed this: signal 9$/.test(answer.json?.error)) counts.told++;
      else wrong.push(answer ? `${answer.status} ${answer.error ?? answer.bytes}` : 'no answer within 120 s');
    }
  };
  const load = Array.from({ length: Number(clients) }, client);
  let random = 1;
  const next = (n) => {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    return Math.floor(random / 2 ** 32 * n);
  };
  let killed = 0;
  for (let tries = 0; killed < KILLS && tries < 100 * KILLS; tries++) {
    await sleep(next(200));
    const pid = stageProcesses(run.pid).get(next(2));
    if (!pid) continue; // on its way
    process.kill(pid, 'SIGKILL');
    killed++;
  }
  await sleep(300);
  over = true;
  await Promise.all(load);
  tap.ok(killed === KILLS, `${KILLS} processes are killed`, `${killed}`);
  tap.ok(wrong.length === 0 && counts.right > KILLS, 'each request is answered once, with the right bits or one error that says so',
    `${JSON.stringify(counts)}\n${wrong.slice(0, 5).join('\n')}`);
  console.log(`# ${counts.right} right, ${counts.told} told that their stage ended twice, of ${asked}`);
  tap.ok(counts.told <= KILLS / 2, 'few are lost', `${counts.told}`);
  const restarts = await all.metric(run, 'stage_restarts_total{stage="0"}') + await all.metric(run, 'stage_restarts_total{stage="1"}');
  tap.ok(restarts >= KILLS - 2 && restarts <= KILLS, 'restarts are counted', `${restarts}`);
  tap.ok(await all.metric(run, 'stage_resident_memory_bytes{stage="1"}') > 1e6, 'memory of a stage is told');
  tap.ok(await all.metric(run, 'stage_busy_seconds_total{stage="1"}') > 0, 'so is how busy it was');

  // With nothing to do, a process that ended is back by itself.
  const idle = stageProcesses(run.pid).get(1);
  process.kill(idle, 'SIGKILL');
  let back;
  await until(() => { back = stageProcesses(run.pid).get(1); return back && back !== idle; }, 60);
  tap.ok(back && back !== idle, 'one that had nothing to do is started again', `${idle} ${back}`);
  const last = [...stageProcesses(run.pid).values()];
  tap.ok(await all.stop(run) === 0 && await gone(last), 'SIGTERM ends the server and its processes', run.stderr);
}
{
  const run = await all.serve(['--isolate']);
  const pids = [...stageProcesses(run.pid).values()];
  for (const pid of pids) process.kill(pid, 'SIGTERM');
  const answer = await all.ask(run, 'POST', INFER, all.request(1, 2));
  tap.ok(answer.status === 200 && pids.every(isAlive), 'a SIGTERM to all of a group does not end them before the server', `${answer.status}`);
  process.kill(run.pid, 'SIGKILL');
  tap.ok(pids.length === 2 && await gone(pids), 'they end with a server that is killed');
}
{
  const run = await all.serve(['--isolate'], all.oddly('die-of stage1'));
  const deadly = all.request(0, 2, {}, { data: Array(16).fill(3e38) });
  const answers = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => all.ask(run, 'POST', INFER, i === 2 ? deadly : all.request(i, 2))));
  tap.ok(answers[2].status === 500 && /^stage 1 .*ended twice while it computed this: signal 9$/.test(answers[2].json?.error),
    'a request that ends its stage twice is told so', `${answers[2].status} ${answers[2].bytes}`);
  tap.ok(answers.every(({ status, json }, i) => i === 2 || (status === 200 && all.isRight(json.outputs[0].data, i))),
    'the others get their bits', answers.map(({ status }) => status).join());
  await all.stop(run);
}
{
  const run = await all.serve(['--isolate', '--timeout', '3'], all.oddly('hang-run stage1'));
  const answer = await all.ask(run, 'POST', INFER, all.request(0, 2));
  tap.ok(answer.status === 500 && /ended twice.*too long/.test(answer.json?.error), 'a stage that computes for ever is killed',
    `${answer.status} ${answer.bytes}`);
  tap.ok((await all.ask(run, 'GET', '/v2/health/ready')).status === 200, 'and the server goes on');
  await all.stop(run);
}
{
  const run = await all.serve(['--isolate', '--deadline', '100'], all.oddly('slow-run stage1 300'));
  const answer = await all.ask(run, 'POST', INFER, all.request(0, 2));
  tap.ok(answer.status === 504 && /deadline/.test(answer.json?.error), 'a deadline', `${answer.status} ${answer.bytes}`);
  await all.stop(run);
}
{
  const { status, stderr } = all.each.start(server, [all.dir, '--isolate', '--listen', '127.0.0.1:0'], { env: all.oddly('die-open stage1') });
  tap.ok(status === 8 && /stage 1 .*its process ended while it opened the stage: signal 9/.test(stderr), 'a stage that cannot be opened',
    `${status} ${stderr}`);
}
all.done();
