// What a provider takes of a model, asked and kept in a file (--probe), and nodes that it leaves to the CPU, named:
//
//   node provider.mjs RUN SPLIT INSPECT
//
// The provider is WebGPU on SwiftShader, which tests/models/swiftshader.sh puts into the model cache; without it the
// tests that need one are skipped.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { cache } from '../e2e/places.mjs';
import { Tap } from '../e2e/tap.mjs';
import { writeModel } from '../support/text_model.mjs';
import { env as plain } from './runner.mjs';

const [runner, splitter, inspector] = process.argv.slice(2).map((program) => resolve(program));
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-provider-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));
const vulkan = join(cache, 'swiftshader');
const env = {
  ...plain,
  LD_LIBRARY_PATH: [vulkan, plain.LD_LIBRARY_PATH].filter(Boolean).join(':'),
  VK_DRIVER_FILES: join(vulkan, 'icd.json'),
};
const call = (program, args, more) =>
  spawnSync(program, args, { encoding: 'utf8', timeout: 60000, env, cwd: tmp, ...more });
const says = (title, status, pattern, program, ...args) => {
  const ran = call(program, args);
  tap.ok(ran.status === status && pattern.test(ran.stderr) && ran.stderr.trim().split('\n').length === 1,
    title, `exit status ${ran.status}\n${ran.stderr}`);
};

const model = join(tmp, 'mixed.onnx');
const named = (name) => (names) => (names ? `[${name}]` : '');
// Hardmax has no kernel there; Shape to Mul compute a size.
const text = (names) => `<ir_version: 8, opset_import: ["": 17]>
mixed (float[n,8] x) => (float[m] y)
<float[8,8] w = random(1), int64 zero = {0}, int64[1] at = {0}, int64[1] rest = {8}> {
  ${named('first')(names)} a = MatMul (x, w)
  ${named('hard')(names)} b = Hardmax (a)
  ${named('second')(names)} c = MatMul (b, w)
  ${named('shape')(names)} s = Shape (x)
  ${named('gather')(names)} g = Gather (s, zero)
  ${named('unsqueeze')(names)} u = Unsqueeze (g, at)
  ${named('times')(names)} d = Mul (u, rest)
  ${named('reshape')(names)} e = Reshape (c, d)
  ${named('last')(names)} y = Tanh (e)
}`;
writeModel(text(true), model);
const write = (name, what) => {
  writeFileSync(join(tmp, name), typeof what === 'string' ? what : JSON.stringify(what));
  return join(tmp, name);
};
const gpu = {
  name: 'gpu', flops_per_second: { float32: 1e12 }, memory_bandwidth: 1e11, overhead_ns: 100,
  session: { provider: 'WebGPU' },
};
const fast = { same_host: { bytes_per_second: 1e12, latency_ns: 1 } };
const cpu = { name: 'cpu', preset: 'cpu' };
const devices = write('devices.json', { devices: [cpu, gpu], topology: fast });
const alone = write('alone.json', { devices: [gpu] });
const host = write('host.json', { devices: [{ ...cpu, session: { provider: 'CPU' } }] });
const other = (name) => write('other.json', { devices: [{ ...cpu, session: { provider: name } }] });

// Files and options that do not fit, asked of nobody.
const kept = (what) => write('kept.json', { format: 'onnx-pipeline-split-support', version: 1, provider: 'WebGPU',
  nodes: 9, unsupported: { nodes: ['hard'] }, host_nodes: [], ...what });
const plan = [model, '--dim', 'n=3', '--plan-only', '-q'];
says('a device of that provider is needed', 2, /no device of .*host\.json .*"WebGPU"/, splitter, ...plan,
  '--devices', host, '--probe', 'WebGPU');
says('so are devices', 2, /--probe needs --devices/, splitter, ...plan, '--probe', 'WebGPU');
says('and a provider', 2, /PROVIDER=FILE/, splitter, ...plan, '--devices', devices, '--probe', '=x.json');
says('one that is not there', 5, /provider NoSuch is not in this ONNX Runtime, which has .*CPU/, splitter, ...plan,
  '--devices', other('NoSuch'), '--probe', 'NoSuch');
// Without a GPU: builds for CUDA lack the provider's library or what that needs, and say why in the one line.
says('one whose library does not load', 5,
  /provider CUDA( is not in this ONNX Runtime|: it cannot be started: .*; [^;]*\.so[^;]*: cannot open shared object file)/,
  splitter, ...plan, '--devices', other('CUDA'), '--probe', 'CUDA');
tap.ok(!existsSync(join(tmp, 'mixed.NoSuch.json')), 'nothing is written then');
says('an answer about another model', 4, /kept\.json: nodes: is 8, and this model has 9 nodes/, splitter, ...plan,
  '--devices', devices, '--probe', `WebGPU=${kept({ nodes: 8 })}`);
says('about another provider', 4, /kept\.json: provider: is not WebGPU/, splitter, ...plan, '--devices', devices,
  '--probe', `WebGPU=${kept({ provider: 'CUDA' })}`);
says('a key that is none', 4, /kept\.json: .*nods/, splitter, ...plan, '--devices', devices, '--probe',
  `WebGPU=${kept({ nods: 1 })}`);
says('who only looks needs the file', 2, /is not there: onnx-pipeline-split --probe makes it/, inspector, model, '-k',
  '2', '--devices', devices, '--probe', 'WebGPU=absent.json');
call(splitter, [model, '--dim', 'n=3', '-k', '2', '-o', join(tmp, 'plain')]);
says('the runner too takes it for a device', 2, /a device of that provider/, runner, join(tmp, 'plain'), '--random',
  '--dim', 'n=3', '--probe', `WebGPU=${kept({})}`);
const probed = call(splitter, [...plan, '--devices', host, '--probe', 'CPU']);
const answer = JSON.parse(readFileSync(join(tmp, 'mixed.CPU.json')));
tap.ok(probed.status === 0 && answer.unsupported.nodes.length === 0 && answer.nodes === 9, 'the CPU takes all',
  probed.stderr);
tap.ok(call(inspector, [model, '-k', '2', '--devices', devices, '--probe', `WebGPU=${kept({})}`]).status === 0,
  'who only looks takes the file');

call(splitter, [model, '--dim', 'n=3', '-q', '--devices', devices, '--probe', `WebGPU=${kept({})}`, '-k', '1', '--annotate',
  join(tmp, 'a.onnx'), '--depfile', join(tmp, 'a.d'), '-o', join(tmp, 'kept')]);
tap.ok(existsSync(join(tmp, 'a.d')) && readFileSync(join(tmp, 'a.d'), 'utf8').includes('kept.json'), 'the plan depends on the file');

// A plan as rules by names. What ONNX Runtime makes of them: of texts that a name holds the longest, of equals the first.
function assigned(rules, name) {
  const list = rules.split(';').flatMap((entry) => {
    const [, device, texts] = entry.match(/^(\w+)\((.*)\)$/);
    return texts.split(',').map((part) => [device, part]);
  });
  return list.map((rule, i) => [...rule, i]).filter(([, part]) => name.includes(part))
    .sort((a, b) => b[1].length - a[1].length || a[2] - b[2])[0]?.[0];
}
// Names that hold each other, in every way to give them to two or three providers that the bits of `seed` say.
const names = ['a', 'aa', 'l.1/a', 'l.1/b', 'l.10/a', 'l.10/b', 'x/l.1/a', 'l.1', 'l/aa', 'x/a.b', 'x/a.c', 'x/ab'];
const chain = join(tmp, 'chain.onnx');
writeModel(`chain (float[8] x) => (float[8] v${names.length}) {
  ${names.map((name, i) => `["${name}"] v${i + 1} = Tanh (${i ? `v${i}` : 'x'})`).join('\n  ')}
}`, chain);
const byNames = (file, providers, wanted, ...more) => {
  const each = providers.map((provider, i) => ({ name: `d${i}`, preset: 'cpu', session: { provider },
    unsupported: { nodes: names.filter((_, n) => wanted[n] !== i) } }));
  return call(splitter, [file, '-q', '--devices', write('three.json', { devices: each, topology: fast }),
    '--non-contiguous', '--annotate', join(tmp, 'rules'), '--annotate-as', 'names', ...more]);
};
const bad = [];
for (let seed = 1; seed <= 12; seed++) {
  const n = seed % 3 ? 2 : 3;
  const providers = ['CPU', 'WebGPU', 'cuda'].slice(0, n);
  const wanted = names.map((_, i) => (i < n ? i : ((seed * 2654435761 + i * 40503) >>> 7) % n));
  const made = byNames(chain, providers, wanted, '--force');
  const rules = made.status === 0 ? readFileSync(join(tmp, 'rules'), 'utf8') : '';
  const devices = ['cpu', 'WebGpuExecutionProvider', 'cuda'];
  for (const [i, name] of names.entries()) {
    const is = rules && (assigned(rules, name) ?? (n === 2 ? devices[1] : undefined));
    if (is !== devices[wanted[i]]) bad.push(`${seed}: ${name} is ${is}, not ${devices[wanted[i]]}: ${rules}${made.stderr}`);
  }
}
tap.none(bad, 'rules by names give every node its provider');
const halves = names.map((_, i) => i % 2);
const refused = (title, status, pattern, file, providers, ...more) => {
  const { status: is, stderr } = byNames(file, providers, halves, ...more);
  tap.ok(is === status && pattern.test(stderr) && stderr.trim().split('\n').length === 1, title, `${is}: ${stderr}`);
};
refused('a file is kept', 3, /rules exists; --force/, chain, ['CPU', 'WebGPU']);
refused('one provider', 2, /all stages run on one provider, cpu/, chain, ['CPU', 'CPU'], '--force');
const odd = join(tmp, 'odd.onnx');
writeModel('odd (float[8] x) => (float[8] y) { [aa] t = Tanh (x) ["a,b"] y = Tanh (t) }', odd);
refused('a name that rules cannot hold', 5, /"a,b": ONNX Runtime's assignment by names/, odd, ['CPU', 'WebGPU'], '--force');

// WebGPU.
const absent = existsSync(join(vulkan, 'icd.json')) ? '' : 'there is no SwiftShader; tests/models/swiftshader.sh brings it';
if (absent) {
  tap.skip('WebGPU', absent);
} else {
  const file = join(tmp, 'found.json');
  const out = join(tmp, 'out');
  const split = [model, '--dim', 'n=3', '--non-contiguous', '--device-order', 'given', '--force', '-o', out];
  const run = [out, '-q', '--random', '--dim', 'n=3', '--assert-placement'];
  const stages = () => JSON.parse(readFileSync(join(out, 'pipeline.json'))).stages;

  const asked = call(splitter, [...split, '--devices', devices, '--probe', `WebGPU=${file}`]);
  const found = asked.status === 0 ? JSON.parse(readFileSync(file)) : {};
  tap.ok(`${found.unsupported?.nodes}` === 'hard'
    && /^note: .*found\.json: WebGPU takes \d of 9 nodes, leaves to the CPU Hardmax 1/m.test(asked.stderr),
  'what it does not take is named', `${asked.stderr}${JSON.stringify(found)}`);
  tap.ok(['gather', 'unsqueeze', 'times'].every((name) => found.host_nodes?.includes(name)),
    'nodes of sizes are told apart', JSON.stringify(found));
  const kinds = stages().map((stage) => stage.device);
  tap.ok(`${kinds}` === 'gpu,cpu,gpu', 'the plan keeps to it', `${kinds}`);

  const well = call(runner, [...run, '--devices', devices, '--probe', `WebGPU=${file}`]);
  tap.ok(well.status === 0, 'and runs where it was planned', well.stderr);
  const strict = call(runner, [...run, '--devices', devices]);
  tap.ok(strict.status === 4 && /WebGPU leaves \d nodes to the CPU: .*gather \(Gather\)/.test(strict.stderr),
    'what computes sizes is on the CPU, and named without the answer', `${strict.status}: ${strict.stderr}`);

  call(splitter, [...split, '-k', '1', '--devices', alone]);
  const elsewhere = call(runner, [...run, '--devices', alone, '--probe', `WebGPU=${file}`]);
  tap.ok(elsewhere.status === 4
    && /stage 0 \(stage0\.onnx\): .*WebGPU leaves 1 node to the CPU: hard \(Hardmax\)$/m.test(elsewhere.stderr),
  'a plan that was not asked about it fails by the node', `${elsewhere.status}: ${elsewhere.stderr}`);

  // What is in a body has a name of its own: its node is left, whatever the provider says of that.
  const branches = join(tmp, 'branches.onnx');
  writeModel(`branches (bool c, float[8,8] x) => (float[8,8] y) { [branch] y = If (c) <
    then_branch = t () => (o) { [inner] o = Hardmax (x) }, else_branch = e () => (p) { [other] p = Tanh (x) }> }`, branches);
  call(splitter, [branches, '--plan-only', '-k', '1', '--devices', devices, '--probe', `WebGPU=${join(tmp, 'branches.json')}`]);
  const within = JSON.parse(readFileSync(join(tmp, 'branches.json')));
  tap.ok(`${within.unsupported.nodes}` === 'branch' && `${within.others}` === 'inner', 'a node of a body', JSON.stringify(within));

  // The plan for one process: what ONNX Runtime says of the whole model, told the rules.
  const ruled = write('ruled.json', { devices: [cpu, { ...gpu, unsupported: { nodes: ['second', 'hard'] } }], topology: fast });
  const rules = join(tmp, 'rules');
  call(splitter, [model, '--dim', 'n=3', '-q', '--non-contiguous', '--devices', ruled, '--annotate', rules, '--annotate-as',
    'names', '--force']);
  const config = { 'session.name_based_layer_assignment': readFileSync(rules, 'utf8') };
  const told = write('told.json', { devices: [cpu, { ...gpu, session: { provider: 'WebGPU', config } }], topology: fast });
  call(splitter, [...plan, '--non-contiguous', '--devices', told, '--probe', `WebGPU=${join(tmp, 'told.found')}`]);
  const placed = JSON.parse(readFileSync(join(tmp, 'told.found'))).unsupported.nodes;
  tap.ok(`${placed}` === 'hard,second', 'ONNX Runtime takes the rules', `${placed}`);

  // The file is asked before anyone else, and users edit it.
  writeFileSync(file, JSON.stringify({ ...found, unsupported: { nodes: ['hard', 'last'] } }));
  const edited = call(splitter, [...split, '--devices', devices, '--probe', `WebGPU=${file}`],
    { env: { ...env, PSPLIT_ONNXRUNTIME: '/nowhere' } });
  const more = stages().map((stage) => stage.device);
  tap.ok(edited.status === 0 && `${more}` === 'gpu,cpu,gpu,cpu', 'an edited answer counts, and nobody is asked',
    `${edited.stderr}${more}`);

  // Without names: asked by number, told by outputs.
  const unnamed = join(tmp, 'unnamed.onnx');
  writeModel(text(false), unnamed);
  const before = readdirSync(tmp).length;
  call(splitter, [unnamed, '--dim', 'n=3', '--plan-only', '--devices', devices, '--non-contiguous', '--probe', 'WebGPU'],
    { env: { ...env, TMPDIR: tmp } });
  const by = JSON.parse(readFileSync(join(tmp, 'unnamed.WebGPU.json')));
  tap.ok(`${by.unsupported.nodes}` === 'b' && by.host_nodes.includes('g'), 'nodes without names', JSON.stringify(by));
  tap.ok(readdirSync(tmp).length === before + 1, 'the copy that was asked about is gone', `${readdirSync(tmp)}`);
}
tap.done();
