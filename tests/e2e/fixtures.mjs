// Small models, one for each thing that real files hold and that breaks naive tools: how each is split and
// run. What it is says models/NAME.onnxtxt, or the file that `model` names (docs/text-form.md).
// `node fixtures.mjs NAME FILE` writes one, to look at it.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeModel } from '../support/text_model.mjs';

const x = { shapes: { x: [3, 8] } };

// A --devices file of four CPUs with links between these pairs and no others.
const devices = (links) => JSON.stringify({
  devices: [0, 1, 2, 3].map((i) => ({ name: `d${i}`, preset: 'cpu' })),
  topology: { same_host: { bytes_per_second: 0 } },
  links: links.map(([from, to]) => (
    { from: `d${from}`, to: `d${to}`, bytes_per_second: 1e9, latency_ns: 1000 })),
});

// The same with links between all, and a limit of memory each.
const devicesWith = (memory) => JSON.stringify({
  devices: memory.map((n, i) => ({ name: `d${i}`, preset: 'cpu', keeps_copies: false, memory_bytes: n })),
});

const tokens = { shapes: { ids: [5] }, values: { ids: [3, 60, 0, 17, 17] } };

// n floats from -0.5 to 0.5.
function noise(n) {
  let state = 7;
  const numbers = Float32Array.from({ length: n }, () => {
    state = (Math.imul(state, 1103515245) + 12345) | 0;
    return (state >>> 8) / 2 ** 24 - 0.5;
  });
  return Buffer.from(numbers.buffer);
}

// files() gives what lies beside the model.
export const fixtures = {
  unsorted: {
    why: 'nodes stand after their consumers',
  },

  unnamed: {
    why: 'no node has a name',
  },

  names: {
    why: 'names with spaces, braces, quotes, dots, slashes and letters beyond ASCII',
  },

  inner_outputs: {
    why: 'outputs of the model are consumed inside it',
  },

  fan_out: {
    why: 'one tensor is wanted by every stage, and the input by the last one',
  },

  two_inputs: {
    why: 'a second input, which only the last stage reads',
    runs: [{ shapes: { x: [3, 8], late: [3, 8] } }],
  },
  if_captures: {
    why: 'bodies take outer values, outer weights and an input that nothing else uses',
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8], z: [3, 8] }, values: { flag: [flag] } })),
  },

  loop: {
    why: 'a Loop whose body has a state, a captured weight and a captured value',
  },

  scan: {
    why: 'a Scan over rows',
  },

  functions: {
    why: 'model-local functions that call each other, from several places',
  },

  ir3: {
    why: 'IR 3: initializers are listed as inputs too',
  },

  defaults: {
    why: 'inputs with a default: initializers that are listed as inputs, since IR 4',
  },

  optional: {
    why: 'inputs and outputs that are left out',
    runs: [{ shapes: { x: [3, 2, 8] } }],
  },

  external: {
    why: 'weights in a file beside the model, at offsets',
    files: () => ({ 'weights.bin': noise(6 * 64) }),
  },

  external_empty: {
    why: 'tensors without elements are stored outside: a weight, a Constant, one of a body',
    files: () => ({ 'weights.bin': noise(64) }),
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8] }, values: { flag: [flag] } })),
  },

  several_outputs: {
    why: 'nodes with several outputs that go to different stages',
  },

  dtypes: {
    why: 'tensors of many types cross',
  },

  scalars: {
    why: 'tensors without dimensions cross',
  },

  quantized: {
    why: 'QuantizeLinear and DequantizeLinear around each MatMul',
  },

  contrib: {
    why: 'operators of another domain, which only one runtime knows',
  },

  dead: {
    why: 'nodes and weights that reach no output',
  },

  sequence: {
    why: 'a value that is not a tensor',
  },

  shared_constants: {
    why: 'Constant nodes first, used everywhere; a weight used by all; an Identity of a weight',
  },

  extras: {
    why: 'doc strings, metadata, annotations and fields from the future',
  },

  unseeded: {
    why: 'numbers that are others in each run: a comparison must see that',
    draws: true, // each run draws other numbers
  },

  half_crosses: {
    why: 'float16 that a cut rounds and a runtime without kernels for it does not, beside numbers that are drawn',
    draws: true,
  },

  tied: {
    why: 'the first and the last layer share a weight',
  },

  tied_auto: {
    why: 'an embedding is the output layer too: cut apart, both stages hold it, as no slower cut does not',
    options: ['--tied-weights', 'auto'],
    runs: [tokens],
    held: { emb: 2 },
  },

  tied_duplicate: {
    why: 'an embedding is the output layer too, each stage has its own',
    options: ['--tied-weights', 'duplicate'],
    pins: ['n_e=0', 'n_logits=1'],
    runs: [tokens],
    stages: [2],
    held: { emb: 2 },
  },

  tied_together: {
    why: 'an embedding and the output layer share a stage, on request',
    options: ['--tied-weights', 'together'],
    runs: [tokens],
    held: { emb: 1 },
  },

  tied_transposed: {
    why: 'a tied weight is used through a function of constants',
    options: ['--tied-weights', 'together'],
    runs: [tokens],
    held: { emb: 1 },
  },

  tied_for_nothing: {
    why: 'where a cut that keeps tied weights together is as good, it is taken unasked',
    runs: [tokens],
    held: { emb: 1 },
  },

  tied_memory: {
    why: 'no second device has the memory for a tied weight',
    options: ['--devices', 'FILES/small.json'],
    runs: [tokens],
    held: { emb: 1 },
    files: () => ({ 'small.json': devicesWith([10000, 1900, 1900]) }),
    model: 'tied_together',
  },

  tied_too_large: {
    why: 'no device has the memory for a tied weight',
    options: ['--devices', 'FILES/small.json'],
    max_stages: 1,
    says: /memory/,
    runs: [tokens],
    files: () => ({ 'small.json': devicesWith([1900, 1900, 1900]) }),
    model: 'tied_together',
  },

  tied_impossible: {
    why: 'all but the ends use the tied weight: with its users on one stage nothing is left to cut',
    options: ['--tied-weights', 'together'],
    max_stages: 1,
    runs: [tokens],
    says: /weight "emb" .*n_e and n_logits .*--tied-weights duplicate/,
    model: 'tied_auto',
  },

  empty: {
    why: 'tensors without elements cross',
  },

  random: {
    why: 'random numbers are drawn once, not in each stage that reads them',
    never_copied: ['n_r'],
  },

  int8_wire: {
    why: 'a cut at a quantized tensor sends int8 and dequantizes it again where it is read',
    pins: ['n_a*=0', 'n_q=0', 'n_d=1', 'n_y*=1'],
    stages: [2],
    dtypes: ['int8'],
  },

  int4: {
    why: 'weights of int4',
  },

  narrow_floats: {
    why: 'bfloat16 and float8 tensors',
    unrunnable: 'the Node binding cannot pass such tensors from stage to stage',
    ranBy: 'narrow_floats-run', // which is no skipped check here
  },

  nibbles: {
    why: 'tensors of four bits, and of exponents alone, cross: ONNX Runtime has no Identity for them',
    unrunnable: 'the Node binding cannot pass such tensors from stage to stage',
    ranBy: 'nibbles-run',
    pins: ['n_[aq]=0', 'n_[du]=1', 'n_[fe]=2', 'n_y=3'],
    stages: [4],
    dtypes: ['int4', 'uint4', 'float8e8m0'],
  },

  sparse: {
    why: 'a sparse initializer',
  },

  body_function: {
    why: 'a function that only a body calls, and one that this one calls',
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8] }, values: { flag: [flag] } })),
  },

  overload: {
    why: 'two functions of one name, told apart by their overload',
  },

  training: {
    why: 'training_info',
  },

  optional_value: {
    why: 'a value of an optional type',
  },

  maps: {
    why: 'maps: an input that two stages read, values between two operators, outputs',
    unrunnable: 'the Node binding has no maps, and no runtime the operators between',
    never_sent: ['m', 'made', 'z'],
  },

  only_maps: {
    why: 'every cut would send a map',
    max_stages: 1,
    unrunnable: 'no runtime has the operators',
    says: /"made" and 1 more .*never sent/,
  },

  only_sequences: {
    why: 'every cut would send a sequence',
    max_stages: 1,
    says: /"a" and 1 more/,
  },

  one_if: {
    why: 'the whole model is one If',
    max_stages: 1,
    says: /one If node.* which one runs, --inline-if n_y=then or --inline-if n_y=else takes it$/m,
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
  },

  one_if_hint: {
    why: 'the condition is a constant, so one option is named; an unnamed If is known by its output',
    max_stages: 1,
    says: /constant: --inline-if y=then takes it$/m,
  },

  few_nodes: {
    why: 'two nodes, of which one is an If with the work: it makes two stages, but hardly a pipeline',
    max_stages: 2,
    notes: /^note: 9\d % of the work is in If the 'if', .*--inline-if 'the '\\''if'\\''=else' takes it$/m,
    says: /the model has 2 nodes, and no cut .* or --inline-if 'the '\\''if'\\''=else' takes it$/m,
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [0] } }],
  },

  relay: {
    why: 'the first and the last device have no link: a tensor goes by way of the stages in between',
    pins: ['n_h*=0', 'n_a*=1', 'n_b*=2', 'n_y*=3'],
    options: ['--devices', 'FILES/chain.json'],
    stages: [4],
    hops: ['h 0-1', 'a 1-2', 'h 1-2', 'b 2-3', 'h 2-3'],
    files: () => ({ 'chain.json': devices([[0, 1], [1, 2], [2, 3]]) }),
  },

  relay_once: {
    why: 'of two ways the one by a stage that reads the tensor is taken, and a link where there is one',
    pins: ['n_h*=0', 'n_a*=1', 'n_b*=2', 'n_y*=3'],
    options: ['--devices', 'FILES/mesh.json'],
    stages: [4],
    hops: ['h 0-2', 'a 1-2', 'b 2-3', 'h 2-3'],
    files: () => ({ 'mesh.json': devices([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]) }),
  },

  relay_output: {
    why: 'an output of the model is passed on as well, and so is what a body takes',
    options: ['--devices', 'FILES/chain.json'],
    stages: [2, 3],
    runs: [1, 0].map((flag) => ({ shapes: { x: [3, 8] }, values: { flag: [flag] } })),
    pins: ['n_h*=0'],
    files: () => ({ 'chain.json': devices([[0, 1], [1, 2], [2, 3]]) }),
  },

  segments: {
    why: 'two devices, neither of which runs everything: the model goes back and forth, and a tensor to both',
    options: ['--devices', 'FILES/two.json', '--non-contiguous'],
    stages: [2],
    segments: 7,
    hops: ['a 0-1', 'b 1-2', 'b 1-5', 'c 2-3', 'd 3-4', 'e 4-5', 'g 5-6'],
    files: () => ({ 'two.json': JSON.stringify({ devices: [
      { name: 'cpu', preset: 'cpu', unsupported: { operators: ['MatMul'] } },
      { name: 'npu', preset: 'cpu', unsupported: { operators: ['Softmax'] } }] }) }),
    runs: [{ shapes: { x: [3, 64] } }],
  },

  too_few_segments: {
    why: 'two segments on each of two devices do not do',
    options: ['--devices', 'FILES/two.json', '--segments', '2'],
    stages: [2],
    max_stages: 1,
    says: /so few segments on each device/,
    model: 'segments',
    files: () => fixtures.segments.files(),
    runs: [{ shapes: { x: [3, 64] } }],
  },

  unlinked: {
    why: 'no way of links leads to the last device',
    options: ['--devices', 'FILES/apart.json', '--device-order', 'given'],
    max_stages: 1,
    says: /device "d0" \(stage 0\) to "d1"/,
    files: () => ({ 'apart.json': devices([[2, 3]]) }),
  },

  one_if_then: {
    why: 'the whole model is one If, and its branch is known: sent data, initializers and all',
    options: ['--inline-if', 'n_y=then'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    inlined: [['n_y', 'then', 'flag', true]],
    model: 'one_if',
  },

  one_if_else: {
    why: 'the other branch, by the name of the output',
    options: ['--inline-if', 'y=else'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [0] } }],
    inlined: [['y', 'else', 'flag', true]],
    model: 'one_if',
  },

  one_if_certain: {
    why: 'the condition is a constant: the stages are the model whatever comes in',
    options: ['--inline-if', 'n_y=then'],
    inlined: [['n_y', 'then', 'always', false]],
  },

  one_if_never: {
    why: 'a branch that never runs is not inlined',
    options: ['--inline-if', 'n_y=else'],
    max_stages: 1,
    status: 2,
    says: /"always" is always true/,
    model: 'one_if_certain',
  },

  no_such_if: {
    why: 'an If that is not there cannot be inlined',
    options: ['--inline-if', 'n_z=else'],
    max_stages: 1,
    status: 2,
    says: /no If of the main graph has that name/,
    model: 'one_if',
  },

  inlined_clash: {
    why: 'a name of the branch is used outside as well: inlined, one would be taken for the other',
    options: ['--inline-if', 'n_i=then'],
    max_stages: 1,
    status: 5,
    unrunnable: 'ONNX Runtime takes no name for another in a body',
    says: /"h.t0" of its then_branch is the name of another value/,
  },

  merged_then: {
    why: 'outputs of a branch have the names of the outputs of the If, as optimum merges decoders: a '
      + 'value that is read outside, one with a name of its own, a weight; k is declared thrice',
    options: ['--inline-if', 'merged::if=then'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    inlined: [['merged::if', 'then', 'flag', true]],
  },

  merged_else: {
    why: 'the same, where the other branch runs; it has no output of its own name',
    options: ['--inline-if', 'y=else'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [0] } }],
    inlined: [['y', 'else', 'flag', true]],
    model: 'merged_then',
  },

  merged_inside: {
    why: 'an If in a branch gives the outputs of both under their names',
    options: ['--inline-if', 'outer_if=then', '--inline-if', 'inner_if=then'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1] } }],
    inlined: [['outer_if', 'then', 'flag', true], ['inner_if', 'then', 'flag', true]],
  },

  merged_twice: {
    why: 'one value of the branch is two outputs, of which one has its name',
    options: ['--inline-if', 'merged::if=then'],
    unrunnable: 'ONNX Runtime crashes where a branch gives one value twice',
  },

  merged_crossed: {
    why: 'outputs of a branch have the names of outputs of the If, but of other places',
    options: ['--inline-if', 'merged::if=then'],
    max_stages: 1,
    status: 5,
    says: /"(y|k)" of its then_branch is the name of another value/,
  },

  inlined_nested: {
    why: 'an If in a branch is inlined after it, large weights and captured outer values come along, '
      + 'an output is read by nobody',
    options: ['--inline-if', 'outer_if=then', '--inline-if', 'inner_if=else'],
    runs: [{ shapes: { x: [3, 8] }, values: { flag: [1], turn: [0] } }],
    inlined: [['outer_if', 'then', 'flag', true], ['inner_if', 'else', 'turn', true]],
  },

  narrow_kernel: {
    why: 'SAME under a kernel narrower than the stride: what crosses is shorter than input times stride',
    stages: [2],
    pins: ['n_a=0', 'n_b=0', 'n_y=1'],
    runs: [{ shapes: { x: [1, 8, 16] } }],
  },

  slice_backwards: {
    why: 'a slice backwards that starts before the beginning takes the first element all the same',
    stages: [2],
    pins: ['n_a=0', 'n_b=0', 'n_y=1'],
    runs: [{ shapes: { x: [4, 8] } }],
  },

  declared: {
    why: 'what the model declares of tensors that cross stays: symbols for what follows from others and for '
      + 'what a run tells, denotations; a number says more, and one that a run may contradict is left out',
    stages: [2],
    pins: ['n_[a-g]=0', 'n_y*=1'],
    crossing: {
      a: ['twice', 8], b: [null, 8], c: ['rows', 8], d: ['n', 8], e: [null, 8], f: ['n', 8],
      g: [2, 'found'],
    },
    runs: [3, 4].map((n) => ({ shapes: { x: [n, 8] } })),
  },

  through: {
    why: 'an output that is an input, and one that is a weight',
  },

  long_node: {
    why: 'a node that compares each of n boxes with each: of small inputs, for minutes, and it cannot be stopped meanwhile',
    max_stages: 2,
    runs: [{ shapes: { x: [1, 3, 4] } }],
  },
  one_edge: {
    why: 'two cheap operators, and between them one tensor that is as large as n says',
    max_stages: 2,
  },
};

for (const weights of ['inline', 'external']) {
  fixtures[`external_empty_${weights}`] = {
    ...fixtures.external_empty, model: 'external_empty', why: `the same with --weights ${weights}`, options: ['--weights', weights],
  };
}

// One for each IR version that carries what the others do; 3 has a fixture of its own above.
for (const ir of [4, 5, 6, 7, 9, 10, 11, 12, 13, 14]) {
  fixtures[`ir${ir}`] = {
    why: `IR ${ir}`,
    unrunnable: ir > 13 ? 'ONNX Runtime knows IR versions up to 13' : undefined,
    model: 'ir',
    change: (text) => text.replace('IR', ir).replace('OPSET', ir < 7 ? 11 : 17),
  };
}

for (const fixture of Object.values(fixtures)) fixture.runs ??= [x];

const real = JSON.parse(readFileSync(new URL('../models/models.json', import.meta.url)));

// A model of ../models/models.json, or a variant of one (the same file, split with other options; with
// `run`, for one of its runs alone), with the `base` name of its file in the model cache.
export function realModel(name) {
  const variant = real.variants[name];
  if (!variant) return { ...real.models[name], base: name };
  const whole = { ...real.models[variant.of], ...variant, base: variant.of };
  return variant.run === undefined ? whole : { ...whole, runs: [whole.runs[variant.run]] };
}

// What the tool is told to split a model (one of these, or of ../models/models.json) that lies at
// `file`: sizes, pins, options in which FILES/ stands for the model's directory.
export const splitOptions = ({ dims = {}, pins = [], options = [] }, file) => [
  ...Object.entries(dims).flatMap(([dim, n]) => ['--dim', `${dim}=${n}`]),
  ...pins.flatMap((pin) => ['--pin', pin]),
  ...options.map((option) => option.replace('FILES/', `${dirname(file)}/`)),
];

export function writeFixture(name, file) {
  const { model = name, change = (text) => text, files } = fixtures[name];
  writeModel(change(readFileSync(new URL(`models/${model}.onnxtxt`, import.meta.url), 'utf8')), file);
  for (const [beside, bytes] of Object.entries(files?.() ?? {})) {
    writeFileSync(join(dirname(file), beside), bytes);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, file] = process.argv.slice(2);
  if (!fixtures[name] || !file) {
    console.error(`usage: node fixtures.mjs NAME FILE; names: ${Object.keys(fixtures).join(' ')}`);
    process.exit(2);
  }
  writeFixture(name, file);
}
