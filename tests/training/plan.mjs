// What a plan for training counts: node plan.mjs SPLIT INSPECT
//
// Models are written here. Held: compute is forward, again and backward; weights count their gradient
// and the optimizer's state; what crosses counts twice; memory is the sum of its parts with a stash for
// each micro-batch in flight; less memory makes it compute again, and what does not fit says so.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tap } from '../e2e/tap.mjs';
import { model, node, random, tensor, value } from '../gradient/onnx.mjs';

const [split, inspect] = process.argv.slice(2);
const tap = new Tap();
const work = mkdtempSync(join(tmpdir(), 'psplit-plan-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

// A chain of products, each with a bias and two functions.
const WIDTH = 256, BATCH = 64, DEPTH = 8, FLOAT = 4;
function chain() {
  const next = random(5), nodes = [], initializers = {};
  const numbers = (...dims) => tensor('float32', dims,
    Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => next() - 0.5));
  for (let i = 0; i < DEPTH; i++) {
    initializers[`w${i}`] = numbers(WIDTH, WIDTH);
    initializers[`b${i}`] = numbers(WIDTH);
    nodes.push(node('MatMul', [i ? `y${i - 1}` : 'x', `w${i}`], [`p${i}`]),
      node('Add', [`p${i}`, `b${i}`], [`s${i}`]), node('Sigmoid', [`s${i}`], [`t${i}`]), node('Tanh', [`t${i}`], [`y${i}`]));
  }
  return model({ nodes, initializers, inputs: [value('x', 'float32', [BATCH, WIDTH])],
    outputs: [value(`y${DEPTH - 1}`, 'float32', [BATCH, WIDTH])] });
}
const file = join(work, 'chain.onnx');
writeFileSync(file, chain());

const link = { latency_ns: 10000, bytes_per_second: 1e9 };
function devices(n, memory) {
  const path = join(work, `devices-${n}-${memory}.json`);
  writeFileSync(path, JSON.stringify({ devices: Array.from({ length: n }, (_, i) =>
    ({ name: `d${i}`, preset: 'cpu', ...(memory ? { memory_bytes: memory } : {}) })), topology: { same_host: link } }));
  return path;
}

function run(...args) {
  const done = spawnSync(split, [file, '--plan-only', '--json', '--depth', '0', ...args], { encoding: 'utf8' });
  return done.status === 0 ? JSON.parse(done.stdout) : { status: done.status ?? done.signal, error: done.stderr };
}
const training = ['--training', '--loss', 'mse:target=t', '--trained-weights', 'input'];
const sum = (list) => list.reduce((a, b) => a + b, 0);
const weightBytes = (WIDTH * WIDTH + WIDTH) * DEPTH * FLOAT;

for (const [optimizer, copies] of [['none', 2], ['sgd', 2], ['momentum', 3], ['adamw', 4]]) {
  const got = run('-k', '1', ...training, '--optimizer', optimizer).stages[0].weight_bytes;
  const constants = run('-k', '1').stages[0].weight_bytes;
  tap.ok(constants === weightBytes && got === copies * weightBytes, `${optimizer} holds ${copies} times the weights`,
    `${got} bytes, ${constants} without training`);
}
const asDefault = run('-k', '1', ...training.slice(0, 3), '--optimizer', 'sgd').stages[0].weight_bytes;
tap.ok(asDefault === 3 * weightBytes, 'a default is held besides', asDefault);

const plain = run('-k', '4', '--devices', devices(4));
const trained = run('-k', '4', '--devices', devices(4), ...training);
for (const recompute of ['none', 'heavy', 'all']) {
  const { stages, training: { stages: parts, recompute: said }, plan } = run('-k', '4', '--devices', devices(4), ...training,
    '--recompute', recompute);
  const problems = said === recompute ? [] : [`recompute ${said}`];
  stages.forEach((stage, s) => {
    const { forward_ns: f, again_ns: a, backward_ns: b, stash_bytes: stash } = parts[s];
    if (stage.compute_ns !== f + a + b) problems.push(`stage ${s}: computes ${stage.compute_ns}, not ${f} + ${a} + ${b}`);
    if ((recompute === 'none') !== (a === 0)) problems.push(`stage ${s}: again ${a}`);
    if (!(b > 1.5 * f && b < 3 * f)) problems.push(`stage ${s}: forward ${f}, backward ${b}`);
    const memory = stage.weight_bytes + stage.peak_activation_bytes + stage.buffer_bytes + stage.workspace_bytes;
    if (stage.memory_bytes !== memory + stash * (4 - s)) problems.push(`stage ${s}: memory ${stage.memory_bytes}`);
  });
  if (plan.lower_bound_ns > plan.bottleneck_ns) problems.push('the bound is above the plan');
  tap.none(problems, `recompute ${recompute}: times and memory are the sums of their parts`);
}
const crossing = (manifest) => sum(manifest.stages.map(({ recv_ns, send_ns }) => recv_ns + send_ns)) / manifest.transfers.length;
const once = link.latency_ns + (BATCH * WIDTH * FLOAT) / link.bytes_per_second * 1e9;
tap.ok(Math.abs(crossing(plain) - 2 * once) < 4 && Math.abs(crossing(trained) - 4 * once) < 8,
  'a tensor that crosses counts on its way and on its way back', `${crossing(plain)}, ${crossing(trained)}`);

const stashes = ['none', 'heavy', 'all'].map((each) => run('-k', '2', ...training, '--recompute', each).training.stages
  .map(({ stash_bytes }) => stash_bytes));
tap.ok(sum(stashes[0]) > sum(stashes[1]) && sum(stashes[1]) > sum(stashes[2]), 'heavy keeps less than none, all less than heavy',
  JSON.stringify(stashes));

const needs = ['none', 'heavy', 'all'].map((each) =>
  Math.max(...run('-k', '2', ...training, '--recompute', each).stages.map(({ memory_bytes }) => memory_bytes)));
['none', 'heavy', 'all'].forEach((expected, i) => {
  const { training: got, stages, error } = run('-k', '2', '--devices', devices(2, needs[i]), ...training);
  tap.ok(got?.recompute === expected && stages.every(({ memory_bytes }) => memory_bytes <= needs[i]),
    `${needs[i]} bytes a device: recompute ${expected}`, error ?? got?.recompute);
});
const small = run('-k', '2', '--devices', devices(2, Math.round(needs[2] / 4)), ...training);
tap.ok(small.status === 7 && /^error: memory: /m.test(small.error), 'what does not fit is told', small.error);

const seen = spawnSync(inspect, [file, '-k', '2', '--level', 'stages', '--format', 'json', ...training, '--recompute', 'all'], { encoding: 'utf8' });
const planned = run('-k', '2', ...training, '--recompute', 'all').training.stages;
const shown = JSON.parse(seen.stdout || '{}').stages ?? [];
tap.none(planned.flatMap(({ forward_ns: f, again_ns: a, backward_ns: b }, s) =>
  (shown[s]?.forward_ns === f && shown[s].backward_ns === a + b ? [] : [`stage ${s}: ${JSON.stringify(shown[s])} ${seen.stderr}`])),
'inspect shows forward and backward of a stage beside each other');
// A range of stages: the bubble is that of a step, as the report of each plan has it.
const text = (...more) => spawnSync(split, [file, '--plan-only', '--micro-batches', '6', ...training, ...more], { encoding: 'utf8' });
const rows = [...text('-k', '2..4').stdout.matchAll(/^ +(\d) .* ([\d.]+) %/gm)].map(([, k, bubble]) => [k, bubble]);
const reports = [2, 3, 4].map((k) => [`${k}`, /1F1B [^,]*, bubble ([\d.]+) %/.exec(text('-k', `${k}`).stdout)?.[1]]);
tap.ok(`${rows}` === `${reports}` && rows.length === 3, 'a range of stages tells the bubble of training', `${rows}; ${reports}`);

// Fill-drain: its value is of two maxima, which may be of two stages, and stages hold what a whole step stashes.
{
  const { plan, stages, training: { stages: parts } } = run('-k', '3', '--devices', devices(3), ...training, '--recompute', 'none',
    '--objective', 'fill-drain', '--micro-batches', '6');
  const most = (list) => Math.max(...list);
  const back = stages.map((s) => s.backward_load_ns), there = stages.map((s) => s.load_ns - s.backward_load_ns);
  const wrong = stages.flatMap((s, i) => {
    const crossing = s.recv_ns + s.send_ns, { forward_ns: f, backward_ns: b, stash_bytes: stash } = parts[i];
    const memory = s.weight_bytes + s.peak_activation_bytes + s.buffer_bytes + s.workspace_bytes + 6 * stash;
    return Math.abs(back[i] - b - crossing / 2) < 4 && Math.abs(there[i] - f - crossing / 2) < 4 && s.memory_bytes === memory ? [] : [JSON.stringify(s)];
  });
  tap.none(wrong, 'fill-drain: loads are told by direction, and memory is of six stashes');
  tap.ok(plan.objective === 'fill-drain' && plan.fill_drain_ns === most(there) + most(back) && plan.lower_bound_ns <= plan.fill_drain_ns,
    'its value is the slowest forward and the slowest backward', JSON.stringify(plan));
  const report = text('-k', '3', '--devices', devices(3), '--objective', 'fill-drain', '--limits', '6').stdout;
  tap.ok(/^fill-drain [^:]*: slowest forward .*, slowest backward .*, lower bound/m.test(report) && /^training by fill-drain, /m.test(report) &&
    /^a step of 6 micro-batches: fill-drain .*; 1F1B /m.test(report) && /; fill-drain takes /.test(report), 'the report says so', report);
  const other = text('-k', '3').stdout;
  tap.ok(/^training by 1F1B, /m.test(other) && !/slowest forward/.test(other), 'and 1F1B where it is that', other);
  const head = text('-k', '2..3', '--objective', 'fill-drain').stdout.split('\n')[0];
  tap.ok(/^stages  fill-drain .* bubble of 6 by fill-drain$/.test(head), 'a range of stages, too', head);
  const page = spawnSync(inspect, [file, '-k', '2', '--level', 'stages', '--format', 'json', ...training, '--objective', 'fill-drain'], { encoding: 'utf8' });
  const shown = JSON.parse(page.stdout || '{}').plan;
  tap.ok(shown?.objective === 'fill-drain' && shown.fill_drain_ns > 0, 'inspect shows it', page.stderr);
}

// Weights of another output are chosen, but no update changes them.
{
  const zeros = tensor('float32', [4, 4], Array(16).fill(0)), heads = join(work, 'heads.onnx');
  writeFileSync(heads, model({ initializers: { u: zeros, w: zeros, v: zeros }, inputs: [value('x', 'float32', [2, 4])],
    nodes: [node('MatMul', ['x', 'u'], ['z']), node('MatMul', ['x', 'w'], ['p']), node('MatMul', ['p', 'v'], ['y'])],
    outputs: [value('z', 'float32', [2, 4]), value('y', 'float32', [2, 4])] }));
  const said = spawnSync(split, [heads, '-k', '2', '--plan-only', '--training', '--loss', 'mse:prediction=y,target=t'], { encoding: 'utf8' });
  tap.ok(/^trains 2 weights with adamw: w, v$/m.test(said.stdout) && /does not depend on "u"/.test(said.stderr),
    'the report counts weights that are updated', said.stdout + said.stderr);
  const held = (...more) => {
    const planned = spawnSync(split, [heads, '-k', '1', '--plan-only', '--json', ...training, ...more], { encoding: 'utf8' });
    return JSON.parse(planned.stdout || '{}').stages?.[0].weight_bytes;
  };
  const chosen = held('--loss', 'mse:prediction=y,target=t'), frozen = held('--loss', 'mse:prediction=y,target=t', '--freeze', 'u');
  tap.ok(chosen === (4 + 4 + 1) * 64 && chosen === frozen, 'and only these have a gradient and state to hold', `${chosen}, ${frozen}`);
}
tap.done();
