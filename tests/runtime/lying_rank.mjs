// A rank that lies about what it sends:
//
//   node lying_rank.mjs RUN SPLIT LIAR LAUNCHER
//
// LIAR (lie_sends.c) makes each word of the message that says what comes false in turn, and its size; of tensors that go
// with it and of such that come behind; and the messages that give places back. Then the same through memory that ranks
// have in common, and what they say there of how far they are. A run ends with a line that says so, or
// with the bits that it would have given; nothing is written past a buffer, and nobody waits for ever.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeModel } from '../support/text_model.mjs';
import { Runner, env } from './runner.mjs';

const [runner, splitter, liar, launcher] = process.argv.slice(2);
const each = new Runner(runner, splitter, launcher, 2);
const { tap, tmp } = each;
const model = join(tmp, 'm.onnx');
const dir = join(tmp, 'm');
writeModel(`<ir_version: 8, opset_import: [{version: 17}]>
m (float[n,8] x) => (float[n,8] y) {
  [n_a] a = Neg (x)
  [n_b] b = Abs (a)
  [n_c] c = Neg (b)
  [n_y] y = Abs (c)
}`, model);
const made = each.start(splitter, [model, '-k', '2', '-o', dir, '-q', '--dim', 'n=3']);
tap.ok(made.status === 0, 'it is split', made.stderr);

const SMALL = 3;
const LARGE = 4096; // 128 KiB, which do not go with what they are
const wanted = {};
function run(rows, more) {
  return each.run([dir, '--random', '--dim', `n=${rows}`, '-q', '-m', '4', '-o', join(tmp, 'out'), '--timeout', '8'],
    { env: { ...env, ...more }, timeout: 60000, killSignal: 'SIGKILL' });
}
const last = () => readFileSync(join(tmp, 'out', '3-0.npy'));
for (const rows of [SMALL, LARGE]) {
  const { status, stderr } = run(rows, {});
  wanted[rows] = last();
  tap.ok(status === 0, `${rows} rows: the truth`, stderr);
}
const words = Array.from({ length: 14 }, (_, word) => word); // nine of the head, three and two dims of the tensor
const lies = [
  ...words.flatMap((word) => [-1, 0, '9223372036854775807'].map((value) => ({ word, value }))),
  { bytes: 0 }, { bytes: 8 }, { bytes: 65 }, { bytes: 1 << 18 },
];
const kinds = [[SMALL, 0, 0, lies], [LARGE, 0, 0, lies.filter(({ value }) => value !== -1)],
  [LARGE, 1, 0, [{ bytes: 0 }, { bytes: 1000 }, { bytes: 1 << 18 }]],
  [SMALL, 2, 1, [-1, 0, 77].map((value) => ({ word: 0, value })).concat([{ bytes: 0 }, { bytes: 4 }, { bytes: 64 }])]];
// [word, value]: what was put in, taken out, given back (mpi_channel.c), and where the ring is, which nobody reads any more.
const heads = [[8, -1], [8, 0], [8, 1 << 30], [16, -2], [16, 1 << 30], [17, -1], [17, 0], [17, 77], [0, -1], [1, 0], [1, -1]]
  .map(([word, value]) => ({ word, value }));
const sizes = [{ word: 0, value: -1 }, { word: 0, value: 0 }, { word: 0, value: '9223372036854775807' },
  ...[0, 8, 65, 1 << 18, 2147483647].map((bytes) => ({ bytes }))];
for (const rows of [SMALL, LARGE]) {
  kinds.push([rows, 3, 0, sizes], [rows, 4, 0, lies.filter(({ bytes }) => bytes === undefined)],
    [rows, 6, 0, heads], [rows, 6, 1, heads]);
}
const problems = [];
const counts = { named: 0, right: 0, ended: 0 };
for (const [rows, kind, rank, list] of kinds) {
  for (const { word, value, bytes } of list) {
    const title = `${rows} rows: kind ${kind} of rank ${rank}: ${bytes === undefined ? `word ${word} = ${value}` : `${bytes} bytes`}`;
    const lie = {
      LD_PRELOAD: liar, FEW_WINDOWS: kind < 3 ? '0' : '2', LIE_RANK: `${rank}`, LIE_KIND: `${kind}`,
      ...(bytes === undefined ? { LIE_WORD: `${word}`, LIE_VALUE: `${value}` } : { LIE_BYTES: `${bytes}` }),
    };
    const told = ({ stderr: text }) => /^a lie: /m.test(text);
    let ran = run(rows, lie);
    // A launcher that ends at once may lose the line that says so: the same again.
    if (!ran.signal && !told(ran)) ran = run(rows, lie);
    const { status, signal, stderr } = ran;
    if (signal) problems.push(`${title}: it waits for ever\n${stderr}`);
    else if (!told(ran)) problems.push(`${title}: no lie was told`);
    else if (/signal (11|6|8|4|7)\b|Segmentation|Aborted|corrupt|\*\*\* /i.test(stderr)) problems.push(`${title}: it falls\n${stderr}`);
    else if (status === 0 && !last().equals(wanted[rows])) problems.push(`${title}: other bits`);
    else if (status === 0) counts.right++;
    else if (/^error: .*(malformed|message|from rank \d|micro-batch)/m.test(stderr)) counts.named++;
    // By MPI, which names it, but for what a launcher loses of that at the end: 14 is MPICH's class of truncated messages.
    else if (status === 14 || /truncat|MPI_ERR|Fatal error|Other MPI error/i.test(stderr)) counts.ended++;
    else problems.push(`${title}: ${status}\n${stderr}`);
  }
}
tap.ok(problems.length === 0, 'no lie does harm', `${problems.length}:\n${problems.map((text) => text.split('\n')[0]).join('; ')}\n${problems.slice(0, 3).join('\n')}`);
console.log(`# ${JSON.stringify(counts)}`);
tap.ok(counts.named > 20, 'they are named', JSON.stringify(counts));
tap.done();
