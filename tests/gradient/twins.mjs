// Gradients of operators that ONNX Runtime has for other devices than CPUs: node twins.mjs MAKE_TRAINING
//
// Each against the same function of standard operators. The backward pass of both is of standard
// operators, so that it can be run here, with what the forward pass of the standard one gives.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';
import { drawnTensors, model, node, random, tensor, value } from './onnx.mjs';

const [tool] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-twins-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const next = random(3), drawn = drawnTensors(next, () => 2);
const number = (x) => tensor('float32', [], [x]);
const constants = { half: number(0.5), one: number(1), root: number(Math.SQRT1_2),
  parts: tensor('int64', [2], [4, 4]) };

// x0 + x1 ... of the inputs that are given, as `name`.
const sum = (name, ...inputs) => inputs.slice(1).map((input, i) => node('Add', [i ? `${name}${i}` : inputs[0], input],
  [i === inputs.length - 2 ? name : `${name}${i + 1}`]));

function groups(x, { groups: num_groups, activation, epsilon, channels_last = 1n }, y) {
  const turned = channels_last ? 't' : x, normal = channels_last ? 'n' : 'z';
  const turn = (from, to, perm) => (channels_last ? [node('Transpose', [from], [to], { perm })] : []);
  const z = activation ? 'z' : y;
  return [...turn(x, 't', [0n, 3n, 1n, 2n]),
    node('GroupNormalization', [turned, 'x1', 'x2'], [channels_last ? normal : z], { num_groups, epsilon }),
    ...turn(normal, z, [0n, 2n, 3n, 1n]),
    ...(activation ? [node('Sigmoid', ['z'], ['share']), node('Mul', ['z', 'share'], [y])] : [])];
}

const size = [2, 3, 2, 4], group = { groups: 2n, epsilon: 0.01, activation: 0n };
// name, operator, inputs, attributes, the same in nodes, dimensions of outputs (null: not in the loss)
const nets = [
  ['BiasAdd', 'BiasAdd', [[2, 3, 4], [4], [2, 3, 4]], {}, sum('y0', 'x0', 'x1', 'x2'), [[2, 3, 4]]],
  ['BiasSplitGelu', 'BiasSplitGelu', [[2, 3, 8], [8]], {}, [...sum('h', 'x0', 'x1'),
    node('Split', ['h', 'parts'], ['a', 'b'], { axis: -1n }), node('Mul', ['b', 'root'], ['c']), node('Erf', ['c'], ['d']),
    node('Add', ['d', 'one'], ['e']), node('Mul', ['b', 'half'], ['f']), node('Mul', ['e', 'f'], ['g']),
    node('Mul', ['a', 'g'], ['y0'])], [[2, 3, 4]]],
  ...[group, { ...group, activation: 1n }, { ...group, channels_last: 0n }].map((attrs) =>
    [`GroupNorm ${Object.values(attrs)}`, 'GroupNorm', [attrs.channels_last === 0n ? [2, 4, 3, 2] : size, [4], [4]], attrs,
      groups('x0', attrs, 'y0'), [attrs.channels_last === 0n ? [2, 4, 3, 2] : size]]),
  ...[[size, [4]], [[2, 1, 1, 4], null], [size, null]].map(([skip, bias]) => {
    const attrs = { ...group, activation: bias ? 1n : 0n };
    return [`SkipGroupNorm [${skip}] ${bias ? 'bias' : ''}`, 'SkipGroupNorm', [size, [4], [4], skip, ...(bias ? [bias] : [])], attrs,
      [...sum('y1', 'x0', 'x3', ...(bias ? ['x4'] : [])), ...groups('y1', attrs, 'y0')], [size, size]];
  }),
  ['SkipGroupNorm sum alone', 'SkipGroupNorm', [size, [4], [4], [2, 1, 1, 4], [4]], { ...group, activation: 0n },
    sum('y1', 'x0', 'x3', 'x4'), [null, size]],
];

// The net in one of its two forms, whose loss is the sum of its outputs, each times fixed numbers.
function write(dir, nodes, initializers, dims) {
  const used = dims.flatMap((each, o) => (each ? [o] : []));
  const loss = used.flatMap((o) => [node('Mul', [`y${o}`, `R${o}`], [`r${o}`]),
    node('ReduceSum', [`r${o}`], [used.length > 1 ? `s${o}` : 's'], { keepdims: 0n })]);
  if (used.length > 1) loss.push(node('Add', ['s0', 's1'], ['s']));
  mkdirSync(dir);
  writeFileSync(join(dir, 'model.onnx'), model({ opset: 21, domains: ['com.microsoft'], nodes: [...nodes, ...loss], initializers,
    outputs: [value('s', 'float32', []), ...used.map((o) => value(`y${o}`, 'float32', dims[o]))] }));
}

async function run(file, all) {
  const session = await open(file);
  try {
    return await session.run(Object.fromEntries(session.inputNames.map((each) => [each, all[each]])));
  } finally {
    await session.release();
  }
}

const jobs = nets.map(([name, op, inputs, attrs, plain, dims], k) => {
  const initializers = { ...constants };
  for (const [i, each] of inputs.entries()) initializers[`x${i}`] = drawn(...each);
  for (const [o, each] of dims.entries()) if (each) initializers[`R${o}`] = drawn(...each);
  const dirs = { fused: join(tmp, `fused${k}`), plain: join(tmp, `plain${k}`) }, names = inputs.map((_, i) => `x${i}`);
  write(dirs.fused, [node(op, names, dims.map((_, o) => `y${o}`), attrs, 'com.microsoft')], initializers, dims);
  write(dirs.plain, plain, initializers, dims);
  return { name, names, initializers, dirs };
});
const lines = jobs.flatMap(({ dirs, names }) => [dirs.fused, dirs.plain].map((dir) =>
  [join(dir, 'model.onnx'), dir, '=s', ...names.map((each) => `train=${each}`)].join('\t')));
const made = spawnSync(tool, { input: `${lines.join('\n')}\n`, encoding: 'utf8', maxBuffer: 1 << 28 }).stdout.trim().split('\n');

for (const [k, { name, names, initializers, dirs }] of jobs.entries()) {
  const [fused, plain] = [made[2 * k], made[2 * k + 1]].map((line) => JSON.parse(line ?? '{"error":"nothing was printed"}'));
  const problems = [fused.error, plain.error].filter((each) => each);
  if (!problems.length) {
    try {
      const all = { [plain.loss_gradient]: new ort.Tensor('float32', Float32Array.of(1), []) };
      for (const [each, { type, data, dims }] of Object.entries(initializers)) all[each] = new ort.Tensor(type, data, dims);
      Object.assign(all, await run(join(dirs.plain, 'forward.onnx'), all));
      const expected = await run(join(dirs.plain, 'backward.onnx'), all);
      const got = await run(join(dirs.fused, 'backward.onnx'), all);
      for (const each of names) {
        const a = got[fused.weights[each]], b = expected[plain.weights[each]];
        if (fused.weights[each] === null && plain.weights[each] === null) continue;
        const scale = Math.max(...Array.from(b.data, Math.abs));
        const off = a.data.findIndex((x, i) => !(Math.abs(x - b.data[i]) <= 1e-5 * scale));
        if (String(a.dims) !== String(b.dims)) problems.push(`${each}: [${a.dims}], not [${b.dims}]`);
        else if (off >= 0 || !(scale > 0)) problems.push(`${each}[${off}]: ${a.data[off]}, not ${b.data[off]}`);
      }
    } catch (error) {
      problems.push(error.message);
    }
  }
  tap.none(problems, name);
}
tap.done();
