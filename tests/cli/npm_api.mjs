// What the npm package shows to programs: node npm_api.mjs TOOL
//
// A package is laid out as npm/make.mjs does it, with the commands of the build.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tap } from '../e2e/tap.mjs';
import { writeModel } from '../support/text_model.mjs';

const [tool] = process.argv.slice(2);
const npm = fileURLToPath(new URL('../../npm', import.meta.url));
const tmp = mkdtempSync(join(tmpdir(), 'psplit-npm-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const folder = join(tmp, `${process.platform}-${process.arch}`);
mkdirSync(folder);
symlinkSync(dirname(resolve(tool)), join(folder, 'bin'));
cpSync(join(npm, 'index.js'), join(tmp, 'index.cjs'));
const api = createRequire(import.meta.url)(join(tmp, 'index.cjs'));

const tap = new Tap();
const [model, other, out] = ['m.onnx', 'other.onnx', 'out'].map((name) => join(tmp, name));
const text = (op) => `(float[8,8] x) => (float[8,8] y) <float[8,8] w = random(1)> { a = MatMul (x, w) b = Tanh (a) c = MatMul (b, w) y = ${op} (c) }`;
writeModel(text('Relu'), model);
writeModel(text('Tanh'), other);

const refused = async (promise, title, status, pattern) => {
  try {
    await promise();
    tap.ok(false, title, 'it did not fail');
  } catch (error) {
    tap.ok(error instanceof Error && error.status === status && pattern.test(error.message), title, `${error.status} ${error.message}`);
  }
};

const wanted = await api.plan(model, '-k', '2');
tap.ok(wanted.stages.length === 2 && wanted.format === 'onnx-pipeline-split' && !existsSync(out), 'a plan', JSON.stringify(wanted).slice(0, 300));
const compared = await api.compare(model, 1, 9);
tap.ok(compared.length === 9 && compared[1].value_ns === wanted.plan.bottleneck_ns && /stages/.test(compared[8].infeasible), 'numbers of stages',
  JSON.stringify(compared));
const made = await api.split(model, out, '-k', '2');
tap.ok(JSON.stringify(made) === JSON.stringify(api.readManifest(out)) && made.plan.bottleneck_ns === wanted.plan.bottleneck_ns, 'a split',
  JSON.stringify(made).slice(0, 300));
await api.verify(out, model);
tap.ok(true, 'is proved');
await refused(() => api.verify(out, other), 'another model is not it', 1, /./);
await refused(() => api.split(model, out, '-k', '2'), 'what is there stays', 3, /exists; --force replaces it/);
await refused(() => api.split(model, join(tmp, 'no'), '-k', '2', '--plan-only'), 'a plan is not a split', undefined, /plan\(model/);
await refused(() => api.plan(join(tmp, 'none.onnx'), '-k', '2'), 'no model', 3, /cannot open/);
await refused(async () => api.readManifest(join(tmp, 'none')), 'no split', undefined, /no such file/);
await refused(async () => api.command('onnx-pipeline-nothing'), 'no command', undefined, /not built for/);

// All that the types tell of is there, and the other way round.
const typed = [...readFileSync(join(npm, 'index.d.ts'), 'utf8').matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
tap.ok(typed.sort().join() === Object.keys(api).sort().join(), 'types and functions', `${typed} ${Object.keys(api)}`);
tap.done();
