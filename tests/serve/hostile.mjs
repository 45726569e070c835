// Nothing that comes over a socket makes the server fall, hang or grow:
//
//   node hostile.mjs SERVE RUN SPLIT ODD [TOTAL]
//
// TOTAL requests (default 10000), half of them good ones with bytes changed, cut off, twice or left before they are
// answered; half whole ones whose body is hostile: JSON that is deep, wide, of wrong types and sizes, binary data that
// is not what the header says. Requests in between get their bits, memory stays within 20 MiB, and it ends as ever. With
// binaries that are built with AddressSanitizer, nothing is leaked either (docs/serving.md).
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { sleep } from '../runtime/runner.mjs';
import { Clients, INFER, KINDS, values } from './client.mjs';

const [server, runner, splitter, odd, total = '10000'] = process.argv.slice(2);
const TOTAL = Number(total);
const all = new Clients(server, runner, splitter, odd);
const { tap, input } = all;
const run = await all.serve(['--idle', '2', '--max-connections', '64', '--max-waiting', '1000']);
const resident = () => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${run.pid}/status`))[1]);
  } catch {
    return 0; // it has fallen, as will be seen
  }
};
let state = 1;
const random = (n) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor(state / 2 ** 32 * n); };
const any = (...list) => list[random(list.length)];

const head = (n, more = '') => `POST ${INFER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}Content-Length: ${n}\r\n\r\n`;
const good = all.request(1, 2);
const goodBytes = Buffer.from(head(good.length) + good);

// Bytes of a good one changed, cut off, twice.
function torn() {
  const bytes = Buffer.from(goodBytes);
  for (let i = random(8); i > 0; i--) bytes[random(bytes.length)] = random(4) ? 32 + random(95) : random(256);
  const cut = random(4) ? bytes : bytes.subarray(0, random(bytes.length));
  return random(16) ? cut : Buffer.concat([cut, cut]);
}

// A value that has no place there.
const wild = () => any(null, true, -1, 0, 1, 1e308, -1e-308, 2 ** 53, 9.5, '', 'x'.repeat(random(3000)), '\u0000', '\ud800', [], {}, [[]],
  [null], { a: 1 }, Array(random(2000)).fill(1), Array(40).fill(2));
const deep = (n, open, close) => open.repeat(n) + close.repeat(n);

function hostileBody() {
  const raw = Buffer.from(Float32Array.from(values(1, 2)).buffer);
  const tensor = { name: input, shape: [2, 8], datatype: 'FP32', data: values(1, 2) };
  const whole = { id: 'r', inputs: [tensor] };
  let text;
  let behind = Buffer.alloc(0);
  switch (random(10)) {
    case 0: tensor[any('name', 'shape', 'datatype', 'data', 'parameters')] = wild(); break;
    case 1: whole[any('inputs', 'outputs', 'id', 'parameters', 'model_name')] = wild(); break;
    case 2: tensor.shape = any([2 ** 40, 2 ** 40], [2, 8, 2 ** 62], [-2, 8], [0, 8], Array(33).fill(1), [1e19], [2.5, 8], ['2', 8], [16], [8, 2]); break;
    case 3: tensor.data = tensor.data.map((value) => (random(4) ? value : wild())); break;
    case 4: whole.inputs = Array(random(300)).fill(any(tensor, {}, { name: input })); break;
    case 5:
      text = any(deep(1 + random(100000), '[', ']'), deep(1 + random(50000), '{"a":', '}'), '{"inputs":'.repeat(1 + random(20000)),
        `{"inputs":[{"name":"${input}","shape":[2,8],"datatype":"FP32","data":${deep(1 + random(3000), '[', ']')}}]}`,
        `{"inputs":${'9'.repeat(random(100000))}}`, `{"${'k'.repeat(random(100000))}":1}`, '\u0000'.repeat(random(100)));
      break;
    case 6: whole.outputs = Array(random(1000)).fill({ name: any(all.output, 'nix', ''), parameters: { binary_data: any(true, 1, wild()) } }); break;
    case 7: case 8:
      delete tensor.data;
      tensor.datatype = any('FP32', 'BYTES', 'FP16', 'BOOL', 'INT64', 'FP99');
      tensor.parameters = { binary_data_size: any(64, 0, -1, 63, 65, 2 ** 53, 1e300, '64', 2 ** 32 + 64, null) };
      behind = random(2) ? raw : Buffer.from(Array.from({ length: random(200) }, () => random(256)));
      break;
    default: tensor.parameters = { binary_data_size: raw.length }; // beside data
  }
  text ??= JSON.stringify(whole);
  const length = behind.length || !random(4) ? `Inference-Header-Content-Length: ${any(Buffer.byteLength(text), Buffer.byteLength(text) + 1, 0, -1, 1e9, 'x',
    random(Buffer.byteLength(text) + behind.length + 1))}\r\n` : '';
  const body = Buffer.concat([Buffer.from(text), behind]);
  if (random(10)) return Buffer.concat([Buffer.from(head(body.length, length)), body]);
  // In chunks, now and then of wrong sizes.
  const start = `POST ${INFER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${length}Transfer-Encoding: chunked\r\n\r\n`;
  return Buffer.concat([Buffer.from(`${start}${(body.length + any(0, 0, 1, -1, 2 ** 40)).toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
}

const throwOne = () => new Promise((resolve) => {
  const bytes = random(2) ? torn() : hostileBody();
  const socket = net.connect(run.port, '127.0.0.1', () => {
    socket.end(bytes);
    if (!random(8)) socket.destroy();
  });
  const timer = setTimeout(() => socket.destroy(), 1000);
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.on('close', () => { clearTimeout(timer); resolve(); });
});
const wrong = [];
const many = async (n) => {
  let left = n;
  let over = false;
  const friend = (async () => {
    for (let seed = 0; !over; seed++) {
      const answer = await all.ask(run, 'POST', INFER, all.request(seed % KINDS, 2));
      // Where there is no room for its connection, or it was idle too long, it asks again.
      if (answer.status !== 0 && !(answer.status === 200 && all.isRight(answer.json.outputs[0].data, seed % KINDS))) wrong.push(`${answer.status} ${answer.bytes}`);
      await sleep(20);
    }
  })();
  await Promise.all(Array.from({ length: 24 }, async () => { while (left-- > 0) await throwOne(); }));
  over = true;
  await friend;
};
await many(TOTAL / 5);
const before = resident();
await many(4 * TOTAL / 5);
await sleep(2500);
const answer = await all.ask(run, 'POST', INFER, all.request(1, 2));
tap.ok(answer.status === 200 && all.isRight(answer.json.outputs[0].data, 1), `${TOTAL} hostile requests: it goes on`, `${answer.status} ${run.stderr}`);
tap.ok(wrong.length === 0, 'good requests in between get their bits', wrong.slice(0, 5).join('\n'));
const after = resident();
console.log(`# ${before} KiB after a fifth, ${after} KiB at the end`);
// AddressSanitizer keeps what is freed.
if (!process.env.ASAN_OPTIONS) tap.ok(after < before + (20 << 10), 'it has not grown', `${before} to ${after} KiB`);
tap.ok(await all.stop(run) === 0, 'it ends', run.stderr);
all.done();
