// Gradients of operators in float16 against those of the same net in float32: node half.mjs MAKE_TRAINING
//
// loss = sum(R * float(op(half(x)))), R positive: no sum of it vanishes. What is beyond half
// precision on the way, a count, a square, must not show: gradients are within 1 % of each other.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, ort } from '../e2e/chain.mjs';
import { Tap } from '../e2e/tap.mjs';
import { model, node, product, random, tensor, value } from './onnx.mjs';

const [tool] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-half-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const next = random(5);
const drawn = (scale, ...dims) =>
  tensor('float32', dims, Array.from({ length: product(dims) }, () => scale * (2 * next() - 1)));
const ints = (dims, ...list) => tensor('int64', dims, list);
const ones = (n) => tensor('float32', [n], Array(n).fill(1));
const MANY = [1, 2, 200, 200]; // 80,000 elements

// operator, inputs, attributes, dimensions of the result, opset, outputs, domain
const nets = [
  ['ReduceMean', [drawn(1, ...MANY)], { keepdims: 0n }, []],
  ['ReduceMean', [drawn(1, ...MANY)], { axes: [1n, 2n, 3n] }, [1, 1, 1, 1]],
  ['GlobalAveragePool', [drawn(1, 1, 1, 280, 280)], {}, [1, 1, 1, 1]],
  ['ReduceMax', [tensor('float32', MANY, Array(product(MANY)).fill(1))], { keepdims: 0n }, []],
  ['SoftmaxCrossEntropyLoss', [drawn(2, ...MANY), ints([1, 200, 200], ...Array.from({ length: 40000 },
    (_, i) => i % 2))], { ignore_index: 5n }, []],
  ['NegativeLogLikelihoodLoss', [drawn(2, 1, 2, 280, 280), ints([1, 280, 280], ...Array(78400).fill(1))], {}, []],
  ['LayerNormalization', [drawn(600, 4, 64), drawn(1, 64), drawn(1, 64)], {}, [4, 64]],
  ['RMSNormalization', [drawn(600, 4, 64), drawn(1, 64)], {}, [4, 64], 23],
  ['InstanceNormalization', [drawn(600, 2, 3, 64), drawn(1, 3), drawn(1, 3)], {}, [2, 3, 64]],
  ['GroupNormalization', [drawn(600, 2, 4, 64), drawn(1, 4), drawn(1, 4)], { num_groups: 2n }, [2, 4, 64], 21],
  ['BatchNormalization', [drawn(600, 8, 3, 9), drawn(1, 3), drawn(1, 3), drawn(1, 3), ones(3)], {}, [8, 3, 9]],
  ['LpNormalization', [drawn(600, 4, 64)], {}, [4, 64]],
  ['SkipLayerNormalization', [drawn(600, 1, 4, 64), drawn(600, 1, 4, 64), drawn(1, 64), drawn(1, 64)], {},
    [1, 4, 64], 17, 1, 'com.microsoft'],
  ['SkipSimplifiedLayerNormalization', [drawn(600, 1, 4, 64), drawn(600, 1, 4, 64), drawn(1, 64)], {},
    [1, 4, 64], 17, 1, 'com.microsoft'],
  ['Gelu', [drawn(3, 4, 64)], {}, [4, 64], 17, 1, 'com.microsoft'],
  ['QuickGelu', [drawn(3, 4, 64)], {}, [4, 64], 17, 1, 'com.microsoft'],
  ['FastGelu', [drawn(3, 4, 64), drawn(1, 64)], {}, [4, 64], 17, 1, 'com.microsoft'],
  ['BiasGelu', [drawn(3, 4, 64), drawn(1, 64)], {}, [4, 64], 17, 1, 'com.microsoft'],
  ['FusedMatMul', [drawn(3, 4, 16), drawn(1, 16, 5)], {}, [4, 5], 17, 1, 'com.microsoft'],
  ['MultiHeadAttention', [drawn(3, 1, 2, 8), drawn(3, 1, 2, 8), drawn(3, 1, 2, 8)], { num_heads: 2n }, [1, 2, 8], 17, 1, 'com.microsoft'],
  ['Attention', [drawn(30, 1, 2, 5, 8), drawn(30, 1, 2, 5, 8), drawn(1, 1, 2, 5, 8)], { scale: 0.01 }, [1, 2, 5, 8], 23],
  ['MaxPool', [drawn(1, 1, 2, 7, 7)], { kernel_shape: [3n, 3n] }, [1, 2, 5, 5]],
  ['Gather', [drawn(1, 5, 3), ints([4], 1, 4, 1, 0)], {}, [4, 3]],
  ['Gather', [drawn(1, 2, 5), ints([2, 2], 1, 4, 1, 0)], { axis: 1n }, [2, 2, 2]],
  ['GatherElements', [drawn(1, 3, 3), ints([2, 3], 1, 2, 0, 2, 0, 0)], {}, [2, 3]],
  ['GatherND', [drawn(1, 3, 4, 2), ints([3, 2], 0, 1, 2, 3, 0, 1)], {}, [3, 2]],
  ['TopK', [drawn(1, 3, 5), ints([1], 2)], {}, [3, 2], 17, 2],
  ['Slice', [drawn(1, 4, 7), ints([1], 0), ints([1], 7), ints([1], 1), ints([1], 3)], {}, [4, 3]],
  ['Pad', [drawn(1, 4, 3), ints([4], 2, 1, 1, 2)], { mode: 'reflect' }, [7, 6]],
];

// The net's gradients, by weight.
async function gradients([op, inputs, attrs, dims, opset, outputs = 1, domain = ''], half) {
  const dir = mkdtempSync(join(tmp, 'net-'));
  const nodes = [], initializers = {}, r = random(99);
  const names = inputs.map((each, i) => {
    initializers[`x${i}`] = each;
    if (!half || each.type !== 'float32') return `x${i}`;
    nodes.push(node('Cast', [`x${i}`], [`h${i}`], { to: 10n }));
    return `h${i}`;
  });
  nodes.push(node(op, names, ['y', 'y1'].slice(0, outputs), attrs, domain));
  if (half) nodes.push(node('Cast', ['y'], ['f'], { to: 1n }));
  initializers.R = tensor('float32', dims, Array.from({ length: product(dims) }, () => dims.length ? r() + 0.5 : 64));
  nodes.push(node('Mul', [half ? 'f' : 'y', 'R'], ['r']), node('ReduceSum', ['r'], ['s'], { keepdims: 0n }));
  const file = join(dir, 'model.onnx');
  writeFileSync(file, model({ nodes, initializers, opset, domains: domain ? [domain] : [], outputs: [value('s', 'float32', [])] }));
  // Running statistics are no weights, nor are the classes'.
  const trained = inputs.flatMap((each, i) => (each.type === 'float32' && i < 3 ? [`train=x${i}`] : []));
  const info = JSON.parse(spawnSync(tool, { input: `${[file, dir, '=s', ...trained].join('\t')}\n`, encoding: 'utf8' }).stdout);
  if (info.error) throw new Error(info.error);
  const all = { [info.loss_gradient]: new ort.Tensor('float32', Float32Array.of(1), []) };
  for (const [i, { type, data, dims: sizes }] of inputs.entries()) all[`x${i}`] = new ort.Tensor(type, data, sizes);
  for (const part of ['forward', 'backward']) {
    const session = await open(join(dir, `${part}.onnx`));
    Object.assign(all, await session.run(Object.fromEntries(session.inputNames.map((each) => [each, all[each]]))));
    await session.release();
  }
  return Object.entries(info.weights).map(([weight, name]) => [weight, all[name].data]);
}

for (const net of nets) {
  const problems = [];
  try {
    const wide = await gradients(net, false), narrow = await gradients(net, true);
    for (const [k, [weight, expected]] of wide.entries()) {
      let error = 0, norm = 0;
      expected.forEach((x, i) => {
        error += (x - narrow[k][1][i]) ** 2;
        norm += x * x;
      });
      const off = Math.sqrt(error / norm);
      if (!(off < 0.01)) problems.push(`${weight}: off by ${off} of its norm`);
    }
  } catch (error) {
    problems.push(error.message);
  }
  tap.none(problems, `${net[0]} [${net[1][0].dims}]`);
}
tap.done();
