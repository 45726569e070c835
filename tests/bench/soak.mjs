// A server under load for long: does it answer rightly all the time, and does its memory stay where it is?
//
//   node soak.mjs BUILD_DIR [SECONDS [CLIENTS [OPTION...]]]
//
// Clients (default 16) ask onnx-pipeline-serve for a small split for SECONDS (default 7200, two hours), with the
// OPTIONs ("--isolate"): requests of JSON and of binary tensors, one to 64 rows each, a tenth of them nonsense. Every
// half minute the split is reloaded; with --isolate a stage is killed in between. Every answer is checked. Prints a
// line each minute, or 20 in all: answers, refusals, memory of all its processes together. Fails where an answer is wrong
// or lost, or where memory grows by more than 20 MiB (a stage process anew: up to 60 MiB) after the first tenth.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { join, resolve } from 'node:path';
import { sleep, until, within } from '../runtime/runner.mjs';
import { Clients, INFER, stageProcesses, values } from '../serve/client.mjs';

const [build, seconds = '7200', clients = '16', ...options] = process.argv.slice(2);
const at = (path) => resolve(join(build, path));
process.env.PSPLIT_MAKE_MODEL ??= at('tests/support/make_model');
const isolated = options.includes('--isolate');
const all = new Clients(at('serve/onnx-pipeline-serve'), at('tools/onnx-pipeline-run'), at('tools/onnx-pipeline-split'),
  at('tests/runtime/libodd_onnxruntime.so'));
const { tap } = all;
const run = await all.serve(['--max-waiting', '1000', '--admin', '127.0.0.1:0', ...options]);
await until(() => /admin:/.test(run.stdout));
// A connection of its own for each reload: the server closes those on which nothing moves.
const admin = { port: Number(/admin: http:\/\/127.0.0.1:(\d+)/.exec(run.stdout)?.[1]), agent: new http.Agent({ keepAlive: false }) };

let state = 1;
const random = (n) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(state / 2 ** 32 * n);
};
const resident = (pid) => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`))[1]) / 1024;
  } catch {
    return 0;
  }
};
const memory = () => [run.pid, ...stageProcesses(run.pid).values()].reduce((sum, pid) => sum + resident(pid), 0);

// What a request of so many rows gets: asked once, before the load.
const ROWS = [1, 2, 5, 16, 64];
const learnt = new Map();
const key = (seed, rows) => `${seed},${rows}`;
for (let seed = 0; seed < 4; seed++) {
  for (const rows of ROWS) {
    const { json } = await all.ask(run, 'POST', INFER, all.request(seed, rows));
    learnt.set(key(seed, rows), json.outputs[0].data.map(Math.fround));
  }
}
const same = (data, seed, rows) => {
  const wanted = learnt.get(key(seed, rows));
  return data?.length === wanted.length && wanted.every((value, i) => Math.fround(data[i]) === value);
};
const counts = { right: 0, bad: 0, told: 0, reloads: 0, kills: 0 };
const wrong = [];
let over = false;

async function one() {
  const [seed, rows] = [random(4), ROWS[random(ROWS.length)]];
  if (random(10) === 0) {
    const text = all.request(seed, rows);
    const answer = await within(60000, all.ask(run, 'POST', INFER, text.slice(0, 1 + random(text.length - 2))));
    if (answer?.status === 400) counts.bad++;
    else wrong.push(`nonsense: ${answer?.status} ${answer?.error}`);
    return;
  }
  const binary = random(2);
  const raw = Buffer.from(Float32Array.from(values(seed, rows)).buffer);
  const head = JSON.stringify({ parameters: { binary_data_output: true },
    inputs: [{ name: all.input, shape: [rows, 8], datatype: 'FP32', parameters: { binary_data_size: raw.length } }] });
  const answer = await within(60000, binary
    ? all.ask(run, 'POST', INFER, Buffer.concat([Buffer.from(head), raw]), { 'Inference-Header-Content-Length': head.length })
    : all.ask(run, 'POST', INFER, all.request(seed, rows)));
  let data = answer?.json?.outputs?.[0].data;
  if (binary && answer?.status === 200) {
    const bytes = Uint8Array.from(answer.bytes.subarray(Number(answer.headers['inference-header-content-length'])));
    data = [...new Float32Array(bytes.buffer)];
  }
  if (answer?.status === 200 && same(data, seed, rows)) counts.right++;
  else if (isolated && answer?.status === 500 && /ended twice/.test(answer.json?.error)) counts.told++;
  else wrong.push(`${answer?.status} ${answer?.error ?? answer?.json?.error ?? 'other bits'}`);
}
const load = Array.from({ length: Number(clients) }, async () => {
  while (!over) await one();
});
const troubles = (async () => {
  const every = Math.min(30000, Number(seconds) * 1000 / 10);
  while (!over) {
    await sleep(every / 2);
    if (isolated && !over) {
      const pid = stageProcesses(run.pid).get(random(2));
      if (pid) process.kill(pid, 'SIGKILL');
      counts.kills += Boolean(pid);
    }
    await sleep(every / 2);
    const { status, bytes, error } = over ? { status: 200 } : await all.ask(admin, 'POST', '/v2/repository/models/m/load');
    if (status !== 200) wrong.push(`reload: ${status} ${bytes ?? error}`);
    counts.reloads += !over;
  }
})();

const began = Date.now();
const period = Math.min(60, Number(seconds) / 20);
const samples = [];
console.log('#  seconds     answers  nonsense  reloads  kills  MiB');
while (Date.now() - began < 1000 * Number(seconds) && wrong.length < 10 && run.child.exitCode === null) {
  await sleep(1000 * period);
  // The least of some looks: two splits are there while one takes the place of another.
  let mib = Infinity;
  for (let i = 0; i < 20; i++) {
    const now = memory();
    if (!isolated || stageProcesses(run.pid).size === 2) mib = Math.min(mib, now);
    await sleep(50);
  }
  samples.push(mib);
  const cells = [Math.round((Date.now() - began) / 1000), counts.right, counts.bad, counts.reloads, counts.kills, mib.toFixed(1)];
  console.log(`# ${cells.map((cell) => String(cell).padStart(8)).join('  ')}`);
}
over = true;
await Promise.all([...load, troubles]);
const from = Math.ceil(samples.length / 10);
const [least, last] = [Math.min(...samples.slice(from, from + 3)), Math.min(...samples.slice(-3))];
tap.ok(wrong.length === 0 && counts.right > 0, 'every answer is right', wrong.slice(0, 10).join('\n'));
tap.ok(counts.told <= counts.kills, 'none is lost but by a stage that ended twice', `${counts.told} of ${counts.kills}`);
tap.ok(last - least < (isolated ? 60 : 20), 'memory stays', `${least.toFixed(1)} MiB after a tenth, ${last.toFixed(1)} MiB at the end`);
console.log(`# ${counts.right} right, ${counts.told} told that their stage ended twice; ${least.toFixed(1)} MiB, at the end ${last.toFixed(1)} MiB`);
tap.ok(await all.stop(run) === 0, 'it ends', run.stderr);
all.done();
