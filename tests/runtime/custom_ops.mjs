// Libraries of custom operators, which all commands that run models give to ONNX Runtime:
//
//   node custom_ops.mjs RUN SPLIT VERIFY SERVE LIBRARY OTHER_LIBRARY NO_LIBRARY
//
// LIBRARY has Twice of the domain test.ops, OTHER_LIBRARY Thrice of test.other (custom_ops.c); SERVE may be "".
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Clients, INFER } from '../serve/client.mjs';
import { writeModel } from '../support/text_model.mjs';
import { writeNpy } from './npy.mjs';
import { env } from './runner.mjs';

const [runner, splitter, verifier, server, library, other, none] = process.argv.slice(2).map((path) => path && resolve(path));
const all = new Clients(server, runner, splitter);
const { tap, tmp, each: r } = all;

const model = join(tmp, 'custom.onnx');
writeModel(`<ir_version: 8, opset_import: ["": 17, "test.ops": 1, "test.other": 1]>
custom (float[2,3] x) => (float[2,3] y) <float[2,3] b, float[2,3] c> {
  [a] a = Relu (x)
  [twice] b = test.ops.Twice (a)
  [thrice] c = test.other.Thrice (b)
  [y] y = Neg (c)
}`, model);
const given = { type: 'float32', dims: [2, 3], data: Float32Array.from([1, -2, 3, 4, 5, -6]) };
writeNpy(join(tmp, 'x.npy'), given);
const want = Buffer.from(given.data.map((x) => -6 * Math.max(x, 0)).buffer);
const dir = join(tmp, 'stages');
const split = r.start(splitter, [model, '-k', '3', '-o', dir, '-q']);
if (!tap.ok(split.status === 0, 'a model with custom operators is split', split.stderr)) process.exit(1);

const both = ['--custom-ops', library, '--custom-ops', other];
const says = (title, status, pattern, program, args, options) => {
  const ran = r.start(program, args, options);
  tap.ok(ran.status === status && pattern.test(ran.stderr), title, `exit status ${ran.status}\n${ran.stderr}`);
};

const out = join(tmp, 'out');
const ran = r.start(runner, [dir, '--input', `x=${join(tmp, 'x.npy')}`, '-o', out, '--quiet', ...both]);
tap.ok(ran.status === 0 && readFileSync(join(out, '0-0.npy')).subarray(-want.length).equals(want), 'the stages run with them',
  `exit status ${ran.status}\n${ran.stderr}`);
says('a path without a slash is a file', 0, /^$/, runner,
  [dir, '--random', '--quiet', '--custom-ops', 'twice.so', '--custom-ops', other],
  { cwd: (copyFileSync(library, join(tmp, 'twice.so')), tmp) });
says('verify --run compares them', 0, /^$/, verifier, [dir, '--model', model, '--run', '--quiet', ...both]);
says('the model is profiled', 0, /^(warning: runs .*busy.*\n)?$/, runner, [model, '--profile', join(tmp, 'costs.csv'), '--random', '-m', '2', ...both]);
says('split --autotune runs them', 0, /^$/, splitter,
  [model, '-k', '2', '-o', join(tmp, 'tuned'), '-q', '--autotune', '1', ...both]);

says('without, the option is named', 4, /is not a registered function\/op.*; --custom-ops FILE gives it/s, runner, [dir, '--random']);
says('a file that is not there', 3, /no\.so: /, runner, [dir, '--random', '--custom-ops', join(tmp, 'no.so')]);
says('a directory', 3, /regular file/, runner, [dir, '--random', '--custom-ops', tmp]);
writeFileSync(join(tmp, 'text.so'), 'text');
says('no library', 5, /custom operators: .*text\.so/, runner, [dir, '--random', '--custom-ops', join(tmp, 'text.so')]);
says('a library without custom operators', 5, /custom operators: .*RegisterCustomOps/s, runner,
  [dir, '--random', '--custom-ops', none]);
says('too many', 2, /--custom-ops is given more than 16 times/, runner,
  [dir, '--random', ...Array(17).fill(['--custom-ops', library]).flat()]);

if (server) {
  says('a stage in a process of its own: its advice arrives', 4, /stage\d\.onnx.*is not a registered function\/op.*; --custom-ops FILE gives it/s, server,
    [dir, '--listen', '127.0.0.1:0', '--isolate']);
  // Isolated stages are processes of their own, which open the libraries too.
  for (const isolate of [[], ['--isolate']]) {
    const title = isolate.length ? 'serve, stages in processes' : 'serve';
    const run = await all.serve([...isolate, ...both], env, dir);
    const { bytes, json } = await all.ask(run, 'POST', INFER,
      JSON.stringify({ inputs: [{ name: 'x', datatype: 'FP32', shape: [2, 3], data: [...given.data] }] }));
    const numbers = json?.outputs?.[0].data ?? [];
    tap.ok(Buffer.from(Float32Array.from(numbers).buffer).equals(want), title, `${run.stderr}\n${bytes}`);
    await all.stop(run);
  }
}
all.done();
