// Models at random, split with options at random: node random.mjs TOOL
//
// Each split that is made is proved, merged, held against its schema and run: its stages give the bits of the
// model. What is not made has a reason. No bound is above a split of the same problem.
// PSPLIT_RANDOM_CASES=N draws N models (8), PSPLIT_RANDOM_SEED=S begins with the S-th and keeps what fails in
// random-S/ of the working directory.
import { spawnSync } from 'node:child_process';
import {
  cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkSplit, open } from './chain.mjs';
import { makeFeeds } from './feeds.mjs';
import { Draw, randomModel } from './random_models.mjs';
import { Tap } from './tap.mjs';
import { modelBytes } from '../support/text_model.mjs';

const [tool] = process.argv.slice(2);
const cases = Number(process.env.PSPLIT_RANDOM_CASES ?? 8);
const first = Number(process.env.PSPLIT_RANDOM_SEED ?? 0);
const keeps = process.env.PSPLIT_RANDOM_SEED !== undefined;
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-random-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const command = (name) => join(dirname(tool), `onnx-pipeline-${name}`);
const ran = (name, args) => spawnSync(command(name), args, { encoding: 'utf8', timeout: 600000, maxBuffer: 1 << 28 });

// What crosses in these types ONNX Runtime's binding for Node cannot hold.
const NOT_IN_NODE = /^(bfloat16|float8)/;
const library = () => join(dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json')),
  `bin/napi-v6/linux/${process.arch}/libonnxruntime.so.1`);

const RUNTIME_BYTES = 880 << 10; // what a session takes of a device that keeps copies, before anything else

function drawDevices(draw, n) {
  const alike = draw.chance(0.3);
  const devices = Array.from({ length: n }, (_, i) => ({
    name: `d${i}`,
    preset: alike ? 'cpu' : draw.pick(['cpu', 'cpu', 'cpu-avx512', 'cpu-sse', 'nvidia-t4']),
    host: draw.pick(['a', 'a', 'b']),
    ...(draw.chance(0.15) ? { memory_bytes: draw.from(2000, 60000), keeps_copies: false } : {}),
    ...(draw.chance(0.1) ? { unsupported: { operators: [draw.pick(['MatMul', 'Tanh', 'If', 'Add'])] } } : {}),
  }));
  const links = [];
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      if (i !== j && draw.chance(0.2)) {
        links.push({ from: `d${i}`, to: `d${j}`, bytes_per_second: draw.pick([0, 1e6, 1e9]),
          latency_ns: draw.pick([0, 100, 100000]) });
      }
    }
  }
  const same_host = draw.pick([undefined, { bytes_per_second: 1e9, latency_ns: 0 },
    { bytes_per_second: 1e8, latency_ns: 3000 }]);
  return { devices, ...(same_host ? { topology: { same_host } } : {}), links };
}

// The options of a split, and what of them has to do with its value: `also` are others for the same problem.
function drawOptions(draw, nodes, devices) {
  const k = draw.pick([1, 2, 2, 3, 3, 4, 5, 6, 8, nodes, nodes + 1, 255, 1024]);
  const problem = ['-k', `${k}`];
  const how = [];
  const kind = draw.pick(['plain', 'plain', 'devices', 'devices', 'segments', 'latency', 'overlap', 'replicas',
    'pins', 'blocks', 'memory']);
  if (draw.chance(0.3)) problem.push('--message-latency', 'per-tensor');
  if (draw.chance(0.2)) problem.push('--tied-weights', draw.pick(['duplicate', 'together']));
  if (kind === 'devices' || kind === 'segments' || (kind === 'latency' && draw.chance(0.5))) {
    writeFileSync(devices, JSON.stringify(drawDevices(draw, Math.min(k, 6) + draw.below(2))));
    problem[1] = `${Math.min(k, 6)}`;
    problem.push('--devices', devices);
    if (draw.chance(0.2)) problem.push('--device-order', 'given');
  }
  if (kind === 'segments') problem.push(...draw.pick([['--segments', `${draw.from(1, 4)}`], ['--non-contiguous']]));
  if (kind === 'latency') problem.push('--objective', 'latency');
  if (kind === 'overlap') problem.push('--overlap');
  if (kind === 'replicas') problem.push('--replicas', draw.pick(['2', '3', 'auto']));
  if (kind === 'pins') {
    for (let i = draw.from(1, 3); i > 0; i--) {
      problem.push('--pin', `n_${draw.below(nodes)}_*=${draw.below(Math.min(k, 6))}`);
    }
  }
  if (kind === 'blocks') problem.push(...draw.pick([['--keep-blocks'], ['--keep-together', `n_${draw.below(9)}_*`]]));
  if (kind === 'memory') problem.push('--max-bytes-per-stage', `${RUNTIME_BYTES + draw.from(2000, 100000)}`);
  if (draw.chance(0.3)) how.push('--slack', draw.pick(['0', '20']));
  if (draw.chance(0.15)) how.push('--time-limit', draw.pick(['0', '0.001', '0.05']));
  if (draw.chance(0.2)) how.push('--seed', `${draw.below(9)}`);
  const form = ['--boundary', draw.pick(['sendrecv', 'io']), '--weights', draw.pick(['auto', 'inline', 'external'])];
  return { kind, problem, how, form };
}

// Whatever it is that a run of a command must not end with.
const badEnd = ({ status, signal, stderr }, allowed) => (allowed.includes(status)
  && (status === 0 || /^error: .+/m.test(stderr)) && !/internal|a bug/i.test(stderr)
  ? '' : `status ${status}, signal ${signal}: ${stderr}`);

const sameFiles = (a, b) => readdirSync(a).sort().join() === readdirSync(b).sort().join()
  && readdirSync(a).every((each) => readFileSync(join(a, each)).equals(readFileSync(join(b, each))));

// Whether a plan with these transfers and duplicates is one that a bound of this scope leaves out.
const isOutside = (scope, { transfers, duplicates }) => {
  const passesOn = ({ from, tensor }) => transfers.some((each) => each.tensor === tensor && each.to === from);
  return (/without copies/.test(scope) && duplicates?.length > 0)
    || (/send directly/.test(scope) && transfers.some(passesOn));
};

async function runnable(file, runs) {
  try {
    const session = await open(file);
    for (const run of runs) await session.run(makeFeeds(session.inputMetadata, run));
    await session.release();
    return '';
  } catch (error) {
    return String(error.message ?? error).split('\n')[0];
  }
}

// What is wrong with one model, as lines.
async function problemsOf(seed, at) {
  const draw = new Draw(seed + 1000003);
  const { text, runs } = randomModel(seed, draw.pick([6, 12, 25, 60]));
  const file = join(at, 'm.onnx');
  writeFileSync(join(at, 'm.onnxtxt'), text);
  writeFileSync(file, modelBytes(text));
  const unrunnable = await runnable(file, runs);
  const listed = ran('inspect', [file, '--level', 'operators', '--format', 'json', '--quiet']);
  const problems = [];
  const say = (what, problem) => problem && problems.push(`${what}: ${problem}`);
  say('inspect', badEnd(listed, [0, 4]));
  const dims = /\bn\b[,\]]/.test(text.split('\n')[1].split(' => ')[0]) ? ['--dim', 'n=3'] : [];
  const nodes = text.split('\n').length;
  const told = { unrunnable, splits: 0, refused: 0 };
  for (let i = 0; i < 3; i++) {
    const { kind, problem, how, form } = drawOptions(draw, nodes, join(at, `devices${i}.json`));
    const dir = join(at, `s${i}`);
    const args = [...problem, ...how, ...form];
    const line = args.join(' ');
    const timed = how.includes('--time-limit');
    const split = ran('split', [file, ...args, ...dims, '-o', dir, '--quiet', '--threads', '1', '--no-sync']);
    say(line, badEnd(split, [0, 5, 7, ...(kind === 'pins' ? [2, 4] : []), ...(kind === 'blocks' ? [2] : [])]));
    if (draw.chance(0.3) && !timed && split.status === 0) {
      const again = ran('split', [file, ...args, ...dims, '-o', `${dir}-2`, '--quiet', '--threads', '2', '--no-sync']);
      say(line, again.status === split.status && again.stderr.replaceAll(`${dir}-2`, dir) === split.stderr ? ''
        : `one thread ends with ${split.status}, two with ${again.status}: ${split.stderr}${again.stderr}`);
      if (again.status === 0) say(line, sameFiles(dir, `${dir}-2`) ? '' : 'one thread and two write other bytes');
    }
    if (split.status !== 0) {
      told.refused++;
      told.reason = split.stderr;
      say(line, existsSync(dir) ? 'a directory though it failed' : '');
      continue;
    }
    told.splits++;
    const manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
    const { plan } = manifest;
    const value = { latency: plan.latency_ns, throughput: plan.bottleneck_ns }[plan.objective];
    say(line, plan.lower_bound_ns > value * (1 + 1e-12) ? `the bound ${plan.lower_bound_ns} is above ${value}` : '');
    // Others for the same problem: no bound of one is above the value of another.
    if (draw.chance(0.5)) {
      const other = ran('split', [file, ...problem, ...dims, '--plan-only', '--json', '--quiet', '--threads', '1',
        ...draw.pick([['--slack', '0'], ['--seed', '7'], ['--time-limit', '0'], ['--slack', '50']])]);
      say(`${line} again`, badEnd(other, [0, 7]));
      if (other.status === 0) {
        const { plan: it, duplicates, transfers } = JSON.parse(other.stdout);
        const its = { latency: it.latency_ns, throughput: it.bottleneck_ns }[it.objective];
        const its_way = { duplicates, transfers };
        for (const [bound, scope, of, way] of [[plan.lower_bound_ns, plan.bound_scope ?? '', its, its_way],
          [it.lower_bound_ns, it.bound_scope ?? '', value, manifest]]) {
          say(line, bound > of * (1 + 1e-12) && !isOutside(scope, way)
            ? `a bound ${bound} (${scope}) is above another split's ${of}` : '');
        }
      }
    }
    const proof = ran('verify', [dir, '--model', file]);
    say(`${line}: verify`, badEnd(proof, [0]));
    const merged = join(at, `merged${i}.onnx`);
    const merge = ran('merge', [dir, '-o', merged, '--model', file]);
    say(`${line}: merge`, badEnd(merge, [0]));
    if (merge.status === 0) say(`${line}: merged`, badEnd(ran('verify', [merged, '--model', file]), [0]));
    if (manifest.transfers.some(({ dtype }) => NOT_IN_NODE.test(dtype))) {
      // Numbers that are made need not suit the model (status 4).
      const run = ran('verify', [dir, '--model', file, '--run', '--onnxruntime', library(), ...dims]);
      say(`${line}: verify --run`, unrunnable ? '' : badEnd(run, [0, 4]));
      continue;
    }
    const lines = [];
    const quiet = new Tap((each) => /^(not ok|#)/.test(each) && lines.push(each));
    if (!unrunnable) await checkSplit(quiet, dir, file, runs, { constants: true });
    say(line, lines.join('\n'));
  }
  return { problems, ...told };
}

let [splits, refused, unrunnable] = [0, 0, 0];
const wrong = [];
for (let seed = first; seed < first + cases; seed++) {
  const at = join(tmp, `${seed}`);
  mkdirSync(at);
  let told;
  try {
    told = await problemsOf(seed, at);
  } catch (error) {
    told = { problems: [error.stack], splits: 0, refused: 0, unrunnable: '' };
  }
  splits += told.splits;
  refused += told.refused;
  unrunnable += told.unrunnable ? 1 : 0;
  if (process.env.PSPLIT_RANDOM_TELL && told.unrunnable) console.log(`# ${seed}: ${told.unrunnable}`);
  if (process.env.PSPLIT_RANDOM_TELL && told.reason) console.log(`# ${seed}: ${told.reason}`);
  if (told.problems.length) {
    wrong.push(seed);
    tap.none(told.problems, `model ${seed}`);
    if (keeps) cpSync(at, `random-${seed}`, { recursive: true });
  }
  rmSync(at, { recursive: true });
}
console.log(`# ${cases} models, ${unrunnable} of which do not run; ${splits} splits, ${refused} refused`);
tap.ok(wrong.length === 0, `${cases} models from ${first} on are split, proved and run`, `not: ${wrong.join(' ')}`);
tap.done();
