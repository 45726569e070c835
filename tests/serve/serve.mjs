// onnx-pipeline-serve as clients see it:
//
//   node serve.mjs SERVE RUN SPLIT VERIFY ODD [LAUNCHER]
//
// The Open Inference Protocol in JSON and binary gives the bits that onnx-pipeline-run gives; what is wrong is refused
// with a status and a reason; what has no room is told to come back; all that was accepted is answered before it ends.
// ODD: ../runtime/odd_onnxruntime.c.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Watch, settled, sleep, within } from '../runtime/runner.mjs';
import { Clients, INFER, KINDS, values } from './client.mjs';

const [server, runner, splitter, verifier, odd, launcher] = process.argv.slice(2);
const clients = new Clients(server, runner, splitter, odd, launcher);
const { each, tap, tmp, dir, input, output } = clients;
const serve = (...args) => clients.serve(...args);
const ask = (...args) => clients.ask(...args);
const stop = (...args) => clients.stop(...args);
const request = (...args) => clients.request(...args);
const oddly = (what) => clients.oddly(what);
const isRight = (data, seed) => clients.isRight(data, seed);
const wanted = clients.wanted;

{
  const run = await serve();
  for (const path of ['/v2/health/live', '/v2/health/ready', '/v2/models/m/ready', '/v2/models/m/versions/1/ready', '/v2']) {
    const { status } = await ask(run, 'GET', path);
    tap.ok(status === 200, path, `${status}`);
  }
  const { json: model } = await ask(run, 'GET', '/v2/models/m');
  tap.ok(model?.name === 'm' && model.inputs[0].name === input && model.inputs[0].datatype === 'FP32' &&
    model.inputs[0].shape.join() === '-1,8' && model.outputs[0].name === output, 'metadata', JSON.stringify(model));

  const { status, json, headers } = await ask(run, 'POST', INFER, request(1, 2));
  tap.ok(status === 200 && json.id === 'r1' && json.model_name === 'm' && json.outputs[0].datatype === 'FP32' &&
    json.outputs[0].shape.join() === '2,8' && isRight(json.outputs[0].data, 1) && /json/.test(headers['content-type']),
  'JSON', JSON.stringify(json));
  // What comes back of an id; what would be lost is refused below.
  for (const [id, wanted] of [['7', '7'], ['-9007199254740993', '-9007199254740993'], ['18446744073709551615', '18446744073709551615'], ['0', '0'], ['""', '""'], ['"é\\n"', '"é\\u000a"'],
    ['null', undefined]]) {
    const { status: code, bytes } = await ask(run, 'POST', INFER, request(1, 2).replace('"id":"r1"', `"id":${id}`));
    tap.ok(code === 200 && /"id":("[^"]*"|[^,]+)/.exec(`${bytes}`)?.[1] === wanted, `the id ${id}`, `${code} ${bytes}`);
  }
  const nulls = await ask(run, 'POST', INFER, request(1, 2, { outputs: null, parameters: null }, { parameters: { binary_data: null } }));
  tap.ok(nulls.status === 200 && isRight(nulls.json.outputs[0].data, 1), 'null for what is left out', `${nulls.status} ${nulls.bytes}`);
  // As clients of proxies ask.
  for (const [path, wanted] of [['http://m.example:1/v2/health/live', 200], ['HTTPS://[::1]/v2?a=/', 200], ['http://m.example', 404],
    ['http://m.example?/v2', 404], ['ftp://m.example/v2', 404], ['/http://m.example/v2', 404]]) {
    const { status: code } = await ask(run, 'GET', path);
    tap.ok(code === wanted, `GET ${path}`, `${code}`);
  }
  const absolute = await ask(run, 'POST', `http://m.example${INFER}`, request(2, 2));
  tap.ok(absolute.status === 200 && isRight(absolute.json.outputs[0].data, 2), 'a request in absolute form', `${absolute.status} ${absolute.bytes}`);

  const rows = JSON.stringify({ inputs: [{ name: input, shape: [2, 8], datatype: 'FP32',
    data: [values(2, 2).slice(0, 8), values(2, 2).slice(8)] }] });
  const nested = await ask(run, 'POST', '/v2/models/m/versions/1/infer', rows);
  tap.ok(nested.status === 200 && isRight(nested.json.outputs[0].data, 2), 'lists within lists', JSON.stringify(nested.json));

  const raw = Buffer.from(Float32Array.from(values(3, 2)).buffer);
  const head = JSON.stringify({ parameters: { binary_data_output: true },
    inputs: [{ name: input, shape: [2, 8], datatype: 'FP32', parameters: { binary_data_size: raw.length } }] });
  const binary = await ask(run, 'POST', INFER, Buffer.concat([Buffer.from(head), raw]),
    { 'Inference-Header-Content-Length': head.length });
  const n = Number(binary.headers['inference-header-content-length']);
  const got = binary.bytes.subarray(n);
  tap.ok(binary.status === 200 && binary.json.outputs[0].parameters.binary_data_size === got.length &&
    isRight(new Float32Array(Uint8Array.from(got).buffer), 3), 'binary both ways', JSON.stringify(binary.json));
  const back = await ask(run, 'POST', INFER, request(4, 2, { outputs: [{ name: output, parameters: { binary_data: true } }] }));
  tap.ok(back.status === 200 && back.bytes.length > Number(back.headers['inference-header-content-length']) &&
    isRight(new Float32Array(Uint8Array.from(back.bytes.subarray(
      Number(back.headers['inference-header-content-length']))).buffer), 4), 'binary back');

  // Many at once.
  const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => ask(run, 'POST', INFER, request(i % KINDS, 2))
    .then((answer) => (answer.status === 503 ? 'busy' : answer.status === 200 && isRight(answer.json.outputs[0].data, i % KINDS)))));
  tap.ok(answers.every(Boolean) && answers.filter((answer) => answer === true).length > 100, 'many at once, each its own',
    `${answers.filter((answer) => !answer).length} wrong`);

  // What is wrong.
  for (const [title, code, pattern, method, path, body, more] of [
    ['no JSON', 400, /JSON/, 'POST', INFER, '{'], ['another object', 400, /inputs/, 'POST', INFER, '{}'],
    ['a list', 400, /inputs/, 'POST', INFER, '[]'], ['no inputs', 400, /there is no data for input/, 'POST', INFER, '{"inputs":[]}'],
    ['an unknown input', 400, /no input nix/, 'POST', INFER, request(1, 2).replace(`"${input}"`, '"nix"')],
    ['an unknown output', 400, /no output nix/, 'POST', INFER, request(1, 2, { outputs: [{ name: 'nix' }] })],
    ['an unknown datatype', 400, /datatype/, 'POST', INFER, request(1, 2, {}, { datatype: 'FP99' })],
    ['another datatype', 400, /float64/, 'POST', INFER, request(1, 2, {}, { datatype: 'FP64' })],
    ['another shape', 400, /dimension 1 is 4/, 'POST', INFER, request(1, 2, {}, { shape: [4, 4] })],
    ['too few values', 400, new RegExp(`^input ${input}: data does not have as many values`), 'POST', INFER, request(1, 2, {}, { shape: [3, 8] })],
    ['an input without a name', 400, /^an input has a name/, 'POST', INFER, request(1, 2, {}, { name: 7 })],
    ['a huge shape', 400, /as many values|too large/, 'POST', INFER, request(1, 2, {}, { shape: [1e15, 8] })],
    ['a negative shape', 400, /shape/, 'POST', INFER, request(1, 2, {}, { shape: [-2, 8] })],
    ['texts for numbers', 400, /another type/, 'POST', INFER, request(1, 1, {}, { data: Array(8).fill('1') })],
    ['less binary data than it says', 400, /binary_data_size/, 'POST', INFER,
      request(1, 2, {}, { data: undefined, parameters: { binary_data_size: 64 } })],
    ...[-1, 64.5, '64', null].map((size) => [`binary data of ${JSON.stringify(size)} bytes`, 400, /has to be a number of bytes/,
      'POST', INFER, request(1, 2, {}, { data: undefined, parameters: { binary_data_size: size } })]),
    ...[1.5, 1e20, true, [], {}].map((id) => [`an id ${JSON.stringify(id)}`, 400, /id has to be a string or a whole number/, 'POST', INFER,
      request(1, 2, { id })]),
    ...[1, 'true', []].flatMap((flag) => [
      [`binary_data_output ${JSON.stringify(flag)}`, 400, /binary_data_output has to be true or false/, 'POST', INFER,
        request(1, 2, { parameters: { binary_data_output: flag } })],
      [`binary_data ${JSON.stringify(flag)}`, 400, /binary_data has to be true or false/, 'POST', INFER,
        request(1, 2, { outputs: [{ name: output, parameters: { binary_data: flag } }] })]]),
    ...[[{ parameters: [] }, {}], [{}, { parameters: 1 }], [{ outputs: [{ name: output, parameters: '' }] }, {}]].map(([more, of]) => [
      `parameters that are none ${JSON.stringify([more, of])}`, 400, /parameters has to be an object/, 'POST', INFER, request(1, 2, more, of)]),
    ['outputs that are no list', 400, /outputs has to be a list/, 'POST', INFER, request(1, 2, { outputs: {} })],
    ['data twice', 400, /not both/, 'POST', INFER, request(1, 2, {}, { parameters: { binary_data_size: 64 } })],
    ['a number beyond FP32', 400, /out of range/, 'POST', INFER, request(1, 1, {}, { data: Array(8).fill(3.5e38) })],
    ['a compressed body', 415, /compress none/, 'POST', INFER, request(1, 2), { 'Content-Encoding': 'gzip' }],
    ['null for a number', 400, /data has values/, 'POST', INFER, request(1, 1, {}, { data: Array(8).fill(null) })],
    ['a header beyond the body', 400, /length/, 'POST', INFER, request(1, 2), { 'Inference-Header-Content-Length': '99999' }],
    ...['-5', '+5', '5x', 'x', '1e2', '0x10', '18446744073709551617', ''].map((length) => [`a header ${length || 'without a number'}`, 400, /length within/,
      'POST', INFER, request(1, 2), { 'Inference-Header-Content-Length': length }]),
    ['a header of no JSON', 400, /JSON/, 'POST', INFER, request(1, 2), { 'Inference-Header-Content-Length': '0' }],
    ['another model', 404, /not found/, 'GET', '/v2/models/mm'], ['another path', 404, /not found/, 'GET', '/etc/passwd'],
    ['a POST elsewhere', 404, /not found/, 'POST', '/v2', '{}'], ['a GET of what infers', 405, /method/, 'GET', INFER],
    ['another method', 405, /method/, 'DELETE', '/v2/models/m'],
  ]) {
    const answer = await ask(run, method, path, body, more);
    const allow = code === 405 ? (method === 'GET' ? 'POST' : 'GET, HEAD') : undefined;
    tap.ok(answer.status === code && pattern.test(answer.json?.error) && answer.headers.allow === allow, title,
      `${answer.status} ${answer.headers?.allow} ${answer.bytes}`);
  }
  const whole = await ask(run, 'POST', INFER, request(1, 2), { 'Inference-Header-Content-Length': `00${Buffer.byteLength(request(1, 2))}` });
  tap.ok(whole.status === 200 && isRight(whole.json.outputs[0].data, 1), 'a header of the whole body', `${whole.status} ${whole.bytes}`);
  const { bytes: metrics } = await ask(run, 'GET', '/metrics');
  const metric = (name) => Number(new RegExp(`^psplit_${name} (\\S+)$`, 'm').exec(`${metrics}`)?.[1]);
  tap.ok(metric('requests_total{outcome="ok"}') >= 100 && metric('requests_total{outcome="bad"}') >= 15 &&
    metric('request_duration_seconds_count') >= 100 && metric('stage_micro_batches_total{stage="0"}') >= 100 &&
    metric('stage_busy_seconds_total{stage="0"}') > 0 && metric('requests_waiting') === 0, 'metrics', `${metrics}`);
  const buckets = [...`${metrics}`.matchAll(/^psplit_request_duration_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)];
  tap.ok(buckets.length > 2 && buckets.at(-1)[1] === '+Inf' && buckets.slice(1, -1).every(([, le], i) => +le > +buckets[i][1]) &&
    buckets.slice(1).every(([, , n], i) => +n >= +buckets[i][2]) && +buckets.at(-1)[2] === metric('request_duration_seconds_count'),
  'a histogram of durations', `${buckets}`);
  // What goes over a socket as it stands; parts are sent half a second apart.
  {
    const send = async (...parts) => {
      const socket = net.connect(run.port, '127.0.0.1');
      let got = '';
      socket.on('data', (data) => { got += data; });
      socket.on('error', () => {});
      const closed = new Promise((resolve) => { socket.on('close', resolve); });
      for (const [i, part] of parts.entries()) {
        if (i) await sleep(500);
        socket.write(part);
      }
      await within(20000, closed);
      return got;
    };
    const [text, start] = [request(1, 2), `POST ${INFER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`];
    const length = `Content-Length: ${text.length}\r\n`;
    const before = await clients.metric(run, 'request_duration_seconds_sum');
    const slow = await send(`${start}${length}\r\n`, text.slice(0, 9), text.slice(9, 99), text.slice(99, -9), text.slice(-9));
    const took = await clients.metric(run, 'request_duration_seconds_sum') - before;
    tap.ok(/^HTTP\/1\.1 200 /.test(slow) && took > 0 && took < 1.5, 'how long a body takes to come is not counted', `${took} s ${slow}`);
    for (const [title, more] of [['two lengths', `${length}Content-Length: 3\r\n`], ['a length and chunks', `${length}Transfer-Encoding: chunked\r\n`]]) {
      const answer = await send(`${start}${more}\r\n${text}`);
      tap.ok(/^HTTP\/1\.1 400 .*told twice"\}$/s.test(answer), `${title} of a body`, answer);
    }
  }
  const stage = (name) => metric(`stage_${name}{stage="0"}`);
  const drift = stage('busy_seconds_total') / stage('micro_batches_total') / stage('predicted_seconds');
  tap.ok(Math.abs(stage('drift_ratio') / drift - 1) < 1e-9, 'measured over predicted time', `${metrics}`);
  // Of the other stage, too: over MPI another rank tells, each second.
  let last;
  for (let i = 0; i < 60 && !(last >= metric('stage_micro_batches_total{stage="0"}')); i++) {
    await sleep(100);
    last = await clients.metric(run, 'stage_micro_batches_total{stage="1"}');
  }
  const busy = await clients.metric(run, 'stage_busy_seconds_total{stage="1"}');
  const memory = await Promise.all([0, 1].map((s) => clients.metric(run, `stage_resident_memory_bytes{stage="${s}"}`)));
  tap.ok(last >= 100 && busy > 0, 'metrics of the last stage', `${last} ${busy}`);
  tap.ok(memory.every((bytes) => (launcher ? bytes > 1e6 : bytes === undefined)), 'memory by stage, where they are ranks', `${memory}`);
  tap.ok(await stop(run) === 0, 'SIGTERM ends it', run.stderr);
}

// While a stage is opened that never is there is nothing to answer: the end is that of any command.
if (!launcher) {
  for (const [signals, status, pattern] of [
    [['SIGINT'], 130, /^error: interrupted; not ended within 0\.4 s: .*stage1\.onnx/m],
    [['SIGTERM', 'SIGTERM'], 143, /^error: interrupted again/m],
  ]) {
    let got, ms, stderr;
    // Where this process is kept from the second signal until the first has ended all, once more.
    for (let more = signals.length > 1 ? 4 : 1; more > 0 && !(stderr && pattern.test(stderr)); more--) {
      const child = spawn(server, [dir, '--listen', '127.0.0.1:0'], { env: oddly('hang-open stage1'), stdio: ['ignore', 'ignore', 'pipe'] });
      stderr = '';
      child.stderr.on('data', (data) => { stderr += data; });
      const ended = new Promise((resolve) => { child.on('close', resolve); });
      await settled(child.pid);
      for (const [i, signal] of signals.entries()) {
        if (i) await sleep(150);
        child.kill(signal);
      }
      ms = await new Watch(child.pid).untilEnded();
      got = await within(10000, ended);
      if (got === undefined) child.kill('SIGKILL');
    }
    tap.ok(got === status && ms < 1500 && pattern.test(stderr), `${signals} while it opens`, `${got} after ${ms} ms: ${stderr}`);
  }
}

// All is answered when stages are closed: one that is not soon, with thousands of threads for one, is left.
if (!launcher) {
  const run = await serve([], oddly('hang-close stage1'));
  const answer = await ask(run, 'POST', INFER, request(1, 2));
  const since = Date.now();
  const status = await within(20000, stop(run));
  if (status === undefined) run.child.kill('SIGKILL');
  tap.ok(answer.status === 200 && status === 0 && Date.now() - since < 20000 && /^note: all requests are answered; /m.test(run.stderr),
    'SIGTERM where a stage does not close', `${status} after ${Date.now() - since} ms: ${run.stderr}`);
}

// A slow stage: no room, late, and what is under way when it ends.
{
  const run = await serve(['--max-waiting', '1', '--depth', '1'], oddly('slow-run stage1 200'));
  const answers = await Promise.all(Array.from({ length: 24 }, (_, i) => ask(run, 'POST', INFER, request(i % KINDS, 2))));
  const busy = answers.filter(({ status }) => status === 503);
  tap.ok(busy.length > 0 && busy.every(({ headers }) => headers['retry-after'] === '1') &&
    answers.every(({ status, json }, i) => status === 503 || isRight(json.outputs[0].data, i % KINDS)),
  'what has no room is to come back', answers.map(({ status }) => status).join());
  const under = Array.from({ length: 3 }, (_, i) => ask(run, 'POST', INFER, request(i, 2)));
  for (let i = 0; i < 500 && !(await clients.metric(run, 'requests_under_way') > 0); i++) await sleep(5);
  const status = stop(run);
  const last = await Promise.all(under);
  tap.ok(last.every((answer, i) => answer.status === 503 || isRight(answer.json?.outputs[0].data, i)) &&
    last.some((answer) => answer.status === 200) && await status === 0, 'what was accepted is answered before it ends',
  `${last.map((answer) => answer.status)} ${await status} ${run.stderr}`);
}
{
  const run = await serve(['--deadline', '100'], oddly('slow-run stage1 300'));
  const answer = await ask(run, 'POST', INFER, request(1, 2));
  tap.ok(answer.status === 504 && /deadline/.test(answer.json?.error), 'a deadline', `${answer.status} ${answer.bytes}`);
  await stop(run);
}
{
  const run = await serve([], oddly('fail-run stage1 1'));
  const answers = [];
  for (let i = 0; i < 3; i++) answers.push(await ask(run, 'POST', INFER, request(i, 2)));
  tap.ok(answers.map(({ status }) => status).join() === '200,500,200' && /stage 1/.test(answers[1].json?.error),
    'a stage that fails once', answers.map(({ status, bytes }) => `${status} ${bytes}`).join('\n'));
  await stop(run);
}
{
  const run = await serve(['--max-batch', '16', '--batch-delay', '100', '--batch-dim', 'n', '--max-body', '1',
    '--max-memory', '4', '--max-connections', '2000']);
  const answers = await Promise.all(Array.from({ length: 32 }, (_, i) => ask(run, 'POST', INFER, request(i % KINDS, 2))));
  const near = (data, seed) => data?.length === 16 && data.every((value, i) => Math.abs(value - wanted[seed][i]) < 1e-5);
  const { bytes: metrics } = await ask(run, 'GET', '/metrics');
  const n = Number(/micro_batches_total\{stage="0"\} (\d+)/.exec(`${metrics}`)[1]);
  tap.ok(answers.every(({ json }, i) => near(json?.outputs?.[0].data, i % KINDS)) && n < 32 && n >= 4, 'joined requests', `${n}`);
  const large = await ask(run, 'POST', INFER, Buffer.alloc(2 << 20, 32));
  tap.ok(large.status === 413 || large.status === 0, 'a body that is too large', `${large.status}`);
  const chunked = await ask(run, 'POST', INFER, Buffer.alloc((1 << 20) + 1, 32), { 'Transfer-Encoding': 'chunked' });
  tap.ok(chunked.status === 413 && /larger/.test(chunked.json?.error), 'one that does not say so', `${chunked.status} ${chunked.bytes}`);
  const endless = await ask(run, 'POST', INFER, Buffer.alloc(8 << 20, 32), { 'Transfer-Encoding': 'chunked' });
  tap.ok(endless.status === 0, 'one that does not end', `${endless.status}`);
  const text = await ask(run, 'POST', INFER, Buffer.alloc(200000, 32));
  tap.ok(text.status === 413 && /send binary data/.test(text.json?.error), 'JSON that takes more than --max-memory', `${text.status} ${text.bytes}`);
  // Eight that are read at once, for which there is no room together: each gets an answer.
  const size = 1000000;
  const sockets = Array.from({ length: 8 }, () => net.connect(run.port, '127.0.0.1'));
  const heads = sockets.map((socket) => new Promise((resolve) => {
    let got = '';
    socket.on('data', (data) => { got += data; });
    socket.on('error', () => {});
    socket.on('close', () => resolve(got));
  }));
  for (const socket of sockets) {
    socket.write(`POST ${INFER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${size}\r\n\r\n`);
    socket.write(Buffer.alloc(size - 1, 32));
  }
  await sleep(300);
  for (const socket of sockets) socket.write(' ');
  const told = await Promise.all(heads);
  const busy = told.filter((got) => /^HTTP\/1\.1 503 .*Retry-After: 1\r.*too much is being read/s.test(got));
  tap.ok(busy.length > 0 && told.every((got) => busy.includes(got) || /^HTTP\/1\.1 413 /.test(got)), 'more than --max-memory at once',
    told.map((got) => got.slice(0, 16)).join());
  tap.ok(await clients.metric(run, 'requests_total{outcome="no_room"}') === busy.length, 'they are counted');
  // Descriptors beyond those that select knows.
  const files = Number(/Max open files\s+(\d+)/.exec(readFileSync(`/proc/${run.pid}/limits`))[1]);
  const idle = Array.from({ length: files > 1500 ? 1100 : 0 }, () => net.connect(run.port, '127.0.0.1').on('error', () => {}));
  await Promise.all(idle.map((socket) => new Promise((resolve) => { socket.on('connect', resolve); })));
  const late = await within(10000, ask({ ...run, agent: new http.Agent() }, 'GET', '/v2'));
  tap.ok(late?.status === 200, 'more than a thousand connections', `${late?.status} ${late?.error}`);
  for (const socket of idle) socket.destroy();
  const again = await ask(run, 'POST', INFER, request(1, 2));
  tap.ok(again.status === 200, 'it goes on');
  await stop(run);
}

// More connections than a process may have files open by default, and more than this one may ever.
for (const [limits, most] of launcher ? [] : [['-Sn 100', 400], ['-n 300', 172]]) {
  const run = await serve(['--max-connections', '400'], undefined, dir, limits);
  const idle = Array.from({ length: 150 }, () => net.connect(run.port, '127.0.0.1').on('error', () => {}));
  await Promise.all(idle.map((socket) => new Promise((resolve) => { socket.on('connect', resolve); })));
  const late = await within(10000, ask({ ...run, agent: new http.Agent() }, 'GET', '/v2'));
  const warning = /^warning: .*at most (\d+) connections/m.exec(run.stderr);
  tap.ok(late?.status === 200 && Number(warning?.[1] ?? 400) === most, `connections behind ulimit ${limits}`,
    `${late?.status} ${late?.error} ${run.stderr}`);
  for (const socket of idle) socket.destroy();
  await stop(run);
}

// Outputs that the protocol has no datatype for, as those of classifiers with a map: the others are had by their names.
if (!launcher) {
  const giving = join(tmp, 'giving');
  writeModel(`<ir_version: 8, opset_import: [{version: 17}]> giving (float[4] x) => (float[4] y, seq(float[1]) s, int64 n) {
    y = Relu (x) s = SplitToSequence <axis = 0> (y) n = SequenceLength (s) }`, `${giving}.onnx`);
  tap.ok(each.start(splitter, [`${giving}.onnx`, '-k', '2', '-o', giving, '-q']).status === 0, 'a model that gives a sequence is split');
  for (const way of [[], ['--isolate']]) {
    const run = await serve(way, undefined, giving);
    const asked = (...names) => ask(run, 'POST', INFER, JSON.stringify({ ...(names.length ? { outputs: names.map((name) => ({ name })) } : {}),
      inputs: [{ name: 'x', shape: [4], datatype: 'FP32', data: [-1, 2, 3, 4] }] }));
    tap.ok(/^warning: .*output s is of type sequence\(float32\)/m.exec(run.stderr) !== null, 'what cannot be given is told at the start', run.stderr);
    const named = await asked('n', 'y');
    tap.ok(named.status === 200 && named.json.outputs.map(({ name, data }) => `${name} ${data}`).join() === 'y 0,2,3,4,n 4', `outputs beside a sequence ${way}`,
      `${named.bytes}`);
    for (const names of [[], ['s'], ['n', 's']]) {
      const refused = await asked(...names);
      tap.ok(refused.status === 400 && /no datatype for output s.*"outputs"/.test(refused.json?.error), `a sequence ${way} of [${names}]`, `${refused.bytes}`);
    }
    const missing = await asked('t');
    tap.ok(missing.status === 400 && /no output t/.test(missing.json?.error), 'an output that there is not', `${missing.bytes}`);
    await stop(run);
  }
}

// Exporters invent symbols for the sizes of outputs. Where one is known to be the batch, requests are joined along it.
if (!launcher) {
  const invented = join(tmp, 'invented');
  writeModel(`<ir_version: 8, opset_import: [{version: 17}]> invented (float[batch,2] x) => (float[Gemm_dim_0,2] y, float[Gemm_dim_0,batch] z) {
    y = Relu (x) t = Transpose (x) z = MatMul (y, t) }`, `${invented}.onnx`);
  for (const k of ['1', '2']) {
    const made = each.start(splitter, [`${invented}.onnx`, '-k', k, '-o', `${invented}${k}`, '-q']);
    const proved = each.start(verifier, [`${invented}${k}`, '--model', `${invented}.onnx`]);
    const { outputs } = JSON.parse(readFileSync(join(`${invented}${k}`, 'pipeline.json')));
    tap.ok(made.status === 0 && proved.status === 0 && outputs.map(({ shape }) => shape.join()).join(' ') === 'batch,2 batch,batch',
      `symbols of outputs, ${k}`, `${made.stderr}${proved.stderr}${JSON.stringify(outputs)}`);
  }
  const manifest = join(`${invented}2`, 'pipeline.json'), text = readFileSync(manifest, 'utf8');
  for (const [name, good] of [['Gemm_dim_0', true], ['other', false]]) {
    writeFileSync(manifest, text.replace(/("name": "y".*)"batch"/, `$1"${name}"`));
    const { status } = each.start(verifier, [`${invented}2`, '--model', `${invented}.onnx`]);
    tap.ok((status === 0) === good, `y of ${name}`, `${status}`);
  }
  writeModel(`<ir_version: 8, opset_import: [{version: 17}]> invented (float[batch,2] x) => (float[Gemm_dim_0,2] y) { y = Relu (x) }`,
    `${invented}.onnx`);
  each.start(splitter, [`${invented}.onnx`, '-k', '1', '-o', `${invented}1`, '-q', '--force']);
  const run = await serve(['--max-batch', '4', '--batch-delay', '100'], undefined, `${invented}1`);
  const answers = await Promise.all([1, 2, 3].map((value) => ask(run, 'POST', INFER,
    JSON.stringify({ inputs: [{ name: 'x', shape: [1, 2], datatype: 'FP32', data: [value, -value] }] }))));
  tap.ok(answers.every(({ json }, i) => json?.outputs?.[0].data.join() === `${i + 1},0`), 'they are joined', answers.map(({ bytes }) => `${bytes}`).join());
  await stop(run);
}

// Mistakes of who starts it.
if (!launcher) {
  const taking = join(tmp, 'taking');
  writeModel('<ir_version: 8, opset_import: [{version: 17}]> taking (seq(float[2]) s, int64 i) => (float[2] y) { a = SequenceAt (s, i) y = Relu (a) }',
    `${taking}.onnx`);
  tap.ok(each.start(splitter, [`${taking}.onnx`, '-k', '1', '-o', taking, '-q']).status === 0, 'a model that takes a sequence is split');
  for (const [title, status, pattern, ...args] of [
    ['no address', 2, /ADDRESS:PORT/, dir, '--listen', 'nowhere'], ['a port that is none', 2, /ADDRESS:PORT/, dir, '--listen', '127.0.0.1:http'],
    ['a port beyond them all', 2, /ADDRESS:PORT/, dir, '--listen', '127.0.0.1:99999'], ['a port with a sign', 2, /ADDRESS:PORT/, dir, '--listen', '127.0.0.1:-1'],
    ['no port', 2, /ADDRESS:PORT/, dir, '--listen', '127.0.0.1:'], ['the one behind the last port', 2, /ADDRESS:PORT/, dir, '--listen', '127.0.0.1:65536'],
    ['an address before anything is opened', 2, /ADDRESS:PORT/, join(tmp, 'nix'), '--listen', '127.0.0.1:0', '--admin', 'nowhere'],
    ['an address of another, the last port', 3, /cannot listen at/, dir, '--listen', '192.0.2.1:65535'],
    ['no directory', 2, /directory/], ['another directory', 3, /nix: cannot be read: No such file/, join(tmp, 'nix')],
    ['a model that takes a sequence', 5, /input s is of type sequence\(float32\), and the protocol has tensors alone/, taking],
    ['a dimension that is none', 2, /no input has a dimension/, dir, '--max-batch', '2', '--listen', '127.0.0.1:0'],
  ]) {
    const result = each.start(server, args);
    tap.ok(result.status === status && pattern.test(result.stderr), title, `${result.status} ${result.stderr}`);
  }
}
clients.done();
