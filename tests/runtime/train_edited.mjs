// Why: pipeline.json is a file like any other, and somebody may have edited it: what does not fit together is told
// before the first step, in one line with status 4, and nothing is read or written past an end.
//
//   node train_edited.mjs TRAIN SPLIT
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawnTensors, model, node, random, value } from '../gradient/onnx.mjs';
import { writeNpy } from './npy.mjs';
import { Runner } from './runner.mjs';

const [train, split] = process.argv.slice(2);
const r = new Runner(train, split, '', 2);
const { tap } = r;
const path = (name) => join(r.tmp, name);
const numbers = drawnTensors(random(7));
// Both stages read a, whose gradient comes in two parts.
writeFileSync(path('net.onnx'), model({
  nodes: [node('MatMul', ['x', 'a'], ['p']), node('Tanh', ['p'], ['t']), node('MatMul', ['t', 'b'], ['q']),
    node('Tanh', ['q'], ['u']), node('MatMul', ['u', 'a'], ['y'])],
  initializers: { a: numbers(8, 8), b: numbers(8, 8) },
  inputs: [value('x', 'float32', ['n', 8])], outputs: [value('y', 'float32', ['n', 8])] }));
for (const name of ['x', 'goal']) writeNpy(path(`${name}.npy`), numbers(16, 8));
const dir = path('stages');
const made = r.start(split, [path('net.onnx'), '-k', '2', '-o', dir, '--quiet', '--dim', 'n=4', '--training', '--loss', 'mse:target=goal',
  '--trained-weights', 'input', '--optimizer', 'momentum', '--recompute', 'heavy']);
if (made.status !== 0) throw new Error(made.stderr);
const file = join(dir, 'pipeline.json');
const usual = readFileSync(file, 'utf8');
const run = () => r.run([dir, '--data', `x=${path('x.npy')}`, '--data', `goal=${path('goal.npy')}`, '-b', '8', '-m', '2', '--steps', '1', '--quiet']);
const whole = run();
tap.ok(whole.status === 0, 'as it was written it trains', whole.stderr);

const weight = (m, name) => m.training.weights.find((each) => each.name === name);
const owner = (m, name) => m.training.stages[weight(m, name).owner];
const repeat = (list) => list.push(...Array(200).fill(list.at(-1)));
// Of two stages that see it either says so first.
const GONE = (name) => RegExp(`: stage \\d updates ${name}, which is not its own$|(weights\\.onnx|no file) does not give ${name}$`);
const edits = [
  ['an input that the file has not', (m) => { m.stages[0].inputs[0].name = 'zz'; }, /stage0\.onnx has no input zz$/],
  ['an input that the model has not', (m) => { m.stages[0].inputs[0].tensor = 'zz'; }, /stage 0 takes "zz" from the model, which has no such input$/],
  ['a weight that there is not', (m) => { m.training.stages[0].weights[0] = 'zz'; }, /stage0\.onnx: nothing provides zz$/],
  ['no loss', (m) => { m.stages[1].outputs = m.stages[1].outputs.filter((row) => row.tensor !== m.training.loss.tensor); }, /no stage gives the model.s output "loss"$/],
  ['the loss elsewhere', (m) => { m.training.loss.stage = 0; }, /stage 0 produces no loss$/],
  ['a stash of another tensor', (m) => { m.training.stages[1].stash[0].tensor = 'zz'; }, /backward\.onnx: nothing provides /],
  ['what nobody gives backward', (m) => { m.training.stages[1].backward.inputs[0].name = 'zz'; }, /stage1\.backward\.onnx(: nothing provides| has no input) zz$/],
  ['a gradient that goes nowhere', (m) => { owner(m, 'b').backward.outputs = []; }, /no stage gives [ab]\.grad(\.1)?$/],
  ['a gradient on its way forward', (m) => { m.training.transfers[0].from = 0; }, /does not go to an earlier stage$/],
  ['a gradient by another name', (m) => { m.training.transfers[0].tensor = 'zz'; }, /: nothing provides /],
  ['a rate that the file does not take', (m) => { owner(m, 'b').update.lr = 'zz'; }, /update\.onnx has no input zz$/],
  ['an update of no weight', (m) => { owner(m, 'b').update.kept[0].weight = 'zz'; }, /update\.onnx: nothing provides zz$/],
  ['an owner that does not have it', (m) => { weight(m, 'a').owner = 1 - weight(m, 'a').owner; }, GONE('a')],
  ['the owner of the other', (m) => { weight(m, 'b').owner = 1 - weight(m, 'b').owner; }, GONE('b')],
  ['a weight twice', (m) => { m.training.weights.push(m.training.weights.at(-1)); }, GONE('[ab]')],
  ['a weight that does not go to who reads it', (m) => { weight(m, 'a').stages = [weight(m, 'a').owner]; }, /\.onnx: nothing provides a$/],
  ['a weight that goes to a stage many times', (m) => repeat(weight(m, 'a').stages), /training\.weights\[\d\]\.stages\[2\]: each stage must occur exactly once$/],
  ['a weight that is updated many times', (m) => repeat(owner(m, 'b').update.kept.sort((x, y) => y.state - x.state)), /: stage \d updates . twice$/],
  ['no first weights', (m) => { m.training.stages[weight(m, 'b').owner].first_weights = null; }, /no file does not give /],
];
for (const [title, edit, says] of edits) {
  const manifest = JSON.parse(usual);
  edit(manifest);
  writeFileSync(file, JSON.stringify(manifest));
  const { status, stderr } = run();
  const lines = stderr.split('\n').filter((line) => line.startsWith('error: '));
  tap.ok(status === 4 && lines.length === 1 && says.test(lines[0]), title, `${status} ${stderr}`);
}
tap.done();
