// Gradients where a function has a kink, a tie or a pole: node edges.mjs MAKE_TRAINING
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';
import { model, node, tensor, value } from './onnx.mjs';

const [tool] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-edges-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

// operator, x, other inputs, attributes, gradient of the sum of its output with respect to x
const nan = NaN;
const edges = [
  ['Relu', [0, -0, 1e-30, -1], [], {}, [0, 0, 1, 0]],
  ['LeakyRelu', [0, 1, -1], [], { alpha: 0.25 }, [0.25, 1, 0.25]],
  ['PRelu', [0, 1, -1], [[0.5]], {}, [0.5, 1, 0.5]],
  ['Elu', [0, 1], [], { alpha: 0.5 }, [0.5, 1]],
  ['Abs', [0, 2, -2], [], {}, [0, 1, -1]],
  ['Clip', [-1, 0, 2, 3], [[-1], [2]], {}, [0, 1, 0, 0]],
  ['HardSigmoid', [-3, 0, 3], [], { alpha: 0.125, beta: 0.5 }, [0.125, 0.125, 0.125]],
  ['HardSigmoid', [-4, 0, 4], [], { alpha: 0.125, beta: 0.5 }, [0, 0.125, 0]],
  ['Max', [1, 2, 3], [[1, 3, 1]], {}, [0.5, 0, 1]],
  ['Min', [1, 2, 3], [[1, 3, 1]], {}, [0.5, 1, 0]],
  ['ReduceMax', [3, 1, 3, 2], [], { keepdims: 0n }, [0.5, 0, 0.5, 0]],
  ['ReduceMin', [3, 1, 3, 1], [], { keepdims: 0n }, [0, 0.5, 0, 0.5]],
  ['ReduceL2', [0, 0], [], { keepdims: 0n }, [0, 0]],
  ['LpNormalization', [0, 0], [], {}, [0, 0]],
  ['LpNormalization', [0, 0], [], { p: 1n }, [0, 0]],
  ['ReduceL1', [0, -2], [], { keepdims: 0n }, [0, -1]],
  ['ReduceProd', [0, 2, 3], [], { keepdims: 0n }, [6, 0, 0]],
  ['ReduceProd', [0, 2, 0], [], { keepdims: 0n }, [0, 0, 0]],
  ['Pow', [0, 2], [[2]], {}, [0, 4]],
  ['Pow', [0, 2], [[0]], {}, [0, 0]],
  ['Pow', [0, 2], [[1]], {}, [1, 1]],
  ['Pow', [0, 2], [[0, 3]], {}, [0, 12]],
  ['Sqrt', [4, 0], [], {}, [0.25, Infinity]],
  ['Log', [0.5, 0], [], {}, [2, Infinity]],
  ['Where', [1, nan], [], {}, [1, 0], { first: tensor('bool', [2], [1, 0]), rest: [[5, 5]] }],
  ['Softplus', [-1000, 0, 1000], [], {}, [0, 0.5, 1]],
  ['Sigmoid', [-1000, 0, 1000], [], {}, [0, 0.25, 0]],
];
const vector = (list) => tensor('float32', list.length === 1 ? [] : [list.length], list);

for (const [k, [op, x, others, attrs, expected, extra = {}]] of edges.entries()) {
  const dir = join(tmp, `${k}`);
  mkdirSync(dir);
  const initializers = { x: tensor('float32', [x.length], x) };
  const inputs = ['x'];
  if (extra.first) {
    initializers.first = extra.first;
    inputs.unshift('first');
  }
  for (const [i, other] of [...others, ...(extra.rest ?? [])].entries()) {
    initializers[`o${i}`] = op === 'PRelu' ? tensor('float32', [1], other) : vector(other);
    inputs.push(`o${i}`);
  }
  const file = join(dir, 'model.onnx');
  writeFileSync(file, model({ initializers, outputs: [value('s', 'float32', [])],
    nodes: [node(op, inputs, ['y'], attrs), node('ReduceSum', ['y'], ['s'], { keepdims: 0n })] }));
  const name = `${op} at ${x}${others.length ? ` and ${others.join('; ')}` : ''}`;
  const info = JSON.parse(spawnSync(tool, { input: `${[file, dir, '=s', 'train=x'].join('\t')}\n`, encoding: 'utf8' }).stdout);
  if (info.error) {
    tap.ok(false, name, info.error);
    continue;
  }
  const all = { x: new ort.Tensor('float32', initializers.x.data, initializers.x.dims),
    [info.loss_gradient]: new ort.Tensor('float32', Float32Array.of(1), []) };
  for (const part of ['forward', 'backward']) {
    const session = await open(join(dir, `${part}.onnx`));
    Object.assign(all, await session.run(Object.fromEntries(session.inputNames.map((each) => [each, all[each]]))));
    await session.release();
  }
  const got = [...all['x.grad'].data];
  const same = got.every((g, i) => g === expected[i] || Math.abs(g - expected[i]) < 1e-6);
  tap.ok(same, name, `[${got}], not [${expected}]`);
}
tap.done();
