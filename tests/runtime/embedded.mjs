// A program that embeds libpsplit-run, samples/run_pipeline.c: inputs from its memory, outputs to its
// function, failures as errors.
//
//   node embedded.mjs PROGRAM SPLIT
//
// one_edge gives the mean of -x over rows, so where all of x is the number of the micro-batch, minus
// that.
import { Runner, env } from './runner.mjs';

const [program, splitter] = process.argv.slice(2);
const each = new Runner(program, splitter, '', 2);
const { tap } = each;
const { dir } = each.split('one_edge');

const { status, stdout, stderr } = each.run([dir, '5', '3', '8']);
tap.ok(status === 0, 'it runs', `exit status ${status}\n${stderr}`);
const rows = `${stdout}`.trim().split('\n').map((line) => line.split(' '));
tap.ok(rows.length === 5 && rows.every(([m, name, y], i) => Number(m) === i && name === 'y' &&
  Number(y) === -i || (i === 0 && Number(y) === 0)), 'each output comes once, in order, computed', stdout);
tap.ok(/micro-batches\/s/.test(stderr), 'it has the report', stderr);

each.fails('a shape that the model does not take', 1, /stage 0.*\(INVALID\)/s, [dir, '2', '3', '9']);
each.fails('a directory that is none', 1, /no-such.*\(IO\)/, ['no-such', '1', '3', '8']);
each.fails('no micro-batches', 1, /at least one micro-batch.*\(USAGE\)/, [dir, '0', '3', '8']);
each.fails('no ONNX Runtime', 1, /no-such\.so.*\(IO\)/, [dir, '1', '3', '8'],
  { env: { ...env, PSPLIT_ONNXRUNTIME: '/no-such.so' } });
tap.done();
