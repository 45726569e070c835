// Tokens of a split decoder are those of the whole one, token by token:
//
//   node generate.mjs GENERATE SPLIT USE_GENERATOR ODD [LAUNCHER]
//
// Other sequences that come and go change nothing; no state crosses a link.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tap, skipAll } from '../e2e/tap.mjs';
import { endOf, env, library, processesBelow } from '../runtime/runner.mjs';
import { writeModel } from '../support/text_model.mjs';
import { decoders } from './decoder.mjs';

const [generator, splitter, program, odd, launcher = ''] = process.argv.slice(2);
if (launcher.startsWith('skip ')) skipAll(launcher.slice(5));
const ort = createRequire(new URL('../e2e/package.json', import.meta.url))('onnxruntime-node');
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-generate-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const LAYERS = 3;
const PROMPTS = [[1, 2, 3, 4, 5], [7], [9, 8, 7, 60, 1, 0, 4, 4, 4], [33, 12], [2, 2, 2], [5, 17, 44, 3]];
const NEW = 20;

// Greedy, by the whole model, one sequence at a time.
async function whole(model, prompt, n) {
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1 });
  const tokens = [...prompt];
  let past = 0, state = {};
  const int64 = (numbers) => new ort.Tensor('int64', BigInt64Array.from(numbers, BigInt), [1, numbers.length]);
  while (tokens.length < prompt.length + n) {
    const fresh = tokens.slice(past);
    const feeds = { ...state };
    for (const name of session.inputNames) {
      if (name === 'input_ids') feeds[name] = int64(fresh);
      if (name === 'attention_mask') feeds[name] = int64(tokens.map(() => 1));
      if (name === 'position_ids') feeds[name] = int64(fresh.map((_, i) => past + i));
      if (name.startsWith('past') && !past) feeds[name] = new ort.Tensor('float32', new Float32Array(0), [1, 2, 0, 16]);
    }
    const got = await session.run(feeds);
    state = Object.fromEntries(Object.entries(got).filter(([name]) => name.startsWith('present'))
      .map(([name, tensor]) => [name.replace('present', 'past_key_values'), tensor]));
    const { data, dims } = got.logits;
    const row = data.slice(data.length - dims[2]);
    past = tokens.length;
    tokens.push(row.indexOf(Math.max(...row)));
  }
  return tokens.slice(prompt.length);
}

function run(k, args, options = {}) {
  const command = launcher ? [...launcher.split(' '), `${k}`, generator] : [generator];
  return spawnSync(command[0], [...command.slice(1), ...args], { encoding: 'utf8', timeout: 60000, env, ...options });
}
const lines = (text) => text.trim().split('\n').map((line) => line.split(' ').map(Number));
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const dirs = {};
for (const [name, text] of Object.entries(decoders)) {
  const model = join(tmp, `${name}.onnx`);
  writeModel(text(LAYERS), model);
  const wanted = [];
  for (const prompt of PROMPTS) wanted.push(await whole(model, prompt, NEW));
  tap.ok(new Set(wanted.flat()).size > 8, `${name}: the whole model says various things`, JSON.stringify(wanted));
  for (const k of launcher ? [2, 3] : [1, 2, 3]) {
    const dir = join(tmp, `${name}${k}`);
    const made = spawnSync(splitter, [model, '-k', `${k}`, '-o', dir, '--quiet', '--dim', 'b=1', '--dim', 's=1', '--dim', 't=33', '--dim', 'p=32'],
      { encoding: 'utf8' });
    if (!tap.ok(made.status === 0, `${name} in ${k} is split`, made.stderr)) continue;
    dirs[`${name}${k}`] = { dir, wanted, k };
    const manifest = JSON.parse(readFileSync(join(dir, 'pipeline.json')));
    tap.ok(manifest.transfers.every(({ tensor }) => !/past|present/.test(tensor)), `${name} in ${k}: no state crosses a link`);
    const given = PROMPTS.flatMap((prompt) => ['--prompt-ids', prompt.join()]);
    for (const sequences of [1, 2, 5]) {
      const got = run(k, [dir, ...given, '-n', `${NEW}`, '--sequences', `${sequences}`, '--quiet']);
      tap.ok(got.status === 0 && same(lines(got.stdout), wanted), `${name} in ${k}, ${sequences} at once: the tokens of the whole`,
        `${got.stderr}${got.stdout}${JSON.stringify(wanted)}`);
    }
  }
}

// As long as real answers are.
for (const [name, text] of Object.entries(decoders)) {
  const model = join(tmp, `${name}_long.onnx`), prompts = PROMPTS.slice(0, 2), given = prompts.flatMap((prompt) => ['--prompt-ids', prompt.join()]);
  writeModel(text(4).replaceAll('float[64,', 'float[320,'), model); // places
  const wanted = [];
  for (const prompt of prompts) wanted.push(await whole(model, prompt, 256));
  for (const k of launcher ? [4] : [1, 2, 3, 4]) { // ranks take long beside each other
    const dir = join(tmp, `${name}_long${k}`);
    const made = spawnSync(splitter, [model, '-k', `${k}`, '-o', dir, '--quiet', '--context', '256'], { encoding: 'utf8' });
    const got = run(k, [dir, ...given, '-n', '256', '--quiet']);
    tap.ok(got.status === 0 && same(lines(got.stdout), wanted), `${name} in ${k}: 256 tokens of the whole`, `${made.stderr}${got.stderr}${got.stdout}${JSON.stringify(wanted)}`);
  }
}

const { dir, wanted, k } = dirs.plain2;
const all = PROMPTS.flatMap((prompt) => ['--prompt-ids', prompt.join()]);
const fed = run(k, [dir, '--prompts', '-', '-n', `${NEW}`, '--quiet'], { input: PROMPTS.map((p, i) => (i % 2 ? JSON.stringify(p) : p.join(' '))).join('\n\n') });
tap.ok(same(lines(fed.stdout), wanted), 'prompts on standard input', fed.stderr);

const stream = run(k, [dir, '--prompt-ids', PROMPTS[0].join(), '--prompt-ids', PROMPTS[1].join(), '-n', '6', '--stream', '--quiet']);
const streamed = [[], []];
for (const [sequence, token] of lines(stream.stdout)) streamed[sequence].push(token);
tap.ok(same(streamed, wanted.slice(0, 2).map((tokens) => tokens.slice(0, 6))), 'tokens as they come', stream.stderr);

const ends = run(k, [dir, '--prompt-ids', PROMPTS[0].join(), '-n', `${NEW}`, '--end', `${wanted[0][4]}`, '--json']);
const [first] = JSON.parse(ends.stdout).sequences;
tap.ok(first.end === 'end token' && same(first.tokens, wanted[0].slice(0, wanted[0].indexOf(wanted[0][4]) + 1)), 'an end token', ends.stdout);
const either = run(k, [dir, '--prompt-ids', PROMPTS[0].join(), '-n', `${NEW}`, '--end', `${wanted[0][4]}`, '--end', '60', '--quiet']);
tap.ok(same(lines(either.stdout), [first.tokens]), 'an end token that is said again adds to those before', either.stdout + either.stderr);
for (const [symbol, size] of [['b', 3], ['p', 16]]) {
  const made = run(k, [dir, '--prompt-ids', '1', '--dim', `${symbol}=${size}`]);
  tap.ok(made.status === 2 && made.stdout === '' && made.stderr.includes(`error: dimension ${symbol} is of inputs that are made`), `--dim ${symbol}, which each step has its own of, is refused`, made.stderr);
}
const one = run(k, [dir, '--prompt-ids', '7', '-n', '1']);
tap.ok(/(^|\n)1 sequence, 1 prompt token, 1 token in /.test(one.stderr), 'one is no plural', one.stderr);
const context = run(k, [dir, '--prompt-ids', PROMPTS[0].join(), '-n', `${NEW}`, '--context', '9', '--json']);
const short = JSON.parse(context.stdout);
tap.ok(short.sequences[0].end === 'context' && same(short.sequences[0].tokens, wanted[0].slice(0, 4)), 'the end of the context', context.stdout);
tap.ok(short.states === LAYERS * 2 || launcher, 'all states are kept', context.stdout);
tap.ok(short.steps === 4 && short.tokens === 4 && short.prompt_tokens === 5 && short.stages.length === k, 'the report adds up', context.stdout);

const draw = (...args) => run(k, [dir, ...PROMPTS.flatMap((p) => ['--prompt-ids', p.join()]), '-n', `${NEW}`, '--temperature', '1.5', '--quiet', ...args]).stdout;
tap.ok(draw('--seed', '3', '--sequences', '1') === draw('--seed', '3', '--sequences', '4'), 'what is drawn does not depend on other sequences');
tap.ok(draw('--seed', '3') !== draw('--seed', '4'), 'but on the seed');
tap.ok(same(lines(draw('--top-k', '1')), wanted), 'one of one is the most likely');
tap.ok(same(lines(draw('--top-p', '0.0000001')), wanted), 'the fewest of next to nothing, too');

if (!launcher) {
  const slow = spawnSync(program, [dir], { encoding: 'utf8', timeout: 60000, env });
  tap.ok(slow.status === 0 && same(slow.stdout.trim().split('\n').map(Number), wanted[0].slice(0, 4)), 'who takes tokens may take its time',
    slow.stderr + slow.stdout);
}

// Between steps no byte of state is copied: a run takes the very values that the one before it gave, which stay in the memory of the
// provider (a CPU that says it is CUDA, with memory of its own) or of the host.
for (const name of ['plain', 'gqa']) {
  for (const provider of ['cpu', 'cuda']) {
    const args = [dirs[`${name}${k}`].dir, ...all, '-n', `${NEW}`, '--quiet', '--sequences', '3', '--provider', provider];
    const got = run(k, args, { env: { ...env, ODD: `copies ${provider}`, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd } });
    const told = [...got.stderr.matchAll(/^state: (\d+) bytes to the host, (\d+) to the device, (\d+) as it came$/mg)].map((match) => match.slice(1).map(Number));
    tap.ok(got.status === 0 && same(lines(got.stdout), dirs[`${name}${k}`].wanted), `${name}: the tokens on ${provider}`, got.stderr + got.stdout);
    tap.ok(told.length === (launcher ? k : 1) && told.every(([host, device, kept]) => !host && !device && kept > 0), `${name}: no state is copied on ${provider}`, got.stderr);
  }
}

// Outputs stay on the device that the session is told: by the last of several that are given, and never by nonsense.
const onDevice = (...more) => run(k, [dirs[`plain${k}`].dir, ...all, '-n', '2', '--quiet', '--provider', 'cuda', ...more],
  { env: { ...env, ODD: 'copies cuda', ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd } });
const second = onDevice('--provider-option', 'device_id=1', '--provider-option', 'device_id=12');
tap.ok(second.status === 0 && /^devices: 12$/m.test(second.stderr) && !/^devices: .*\b[01]\b/m.test(second.stderr), 'outputs stay on the device of the session', second.stderr);
for (const wrong of ['first', '', '-1', '1x', ' 1', '99999999999']) {
  const { status, stderr } = onDevice('--provider-option', `device_id=${wrong}`);
  tap.ok(status === 2 && stderr.includes(`execution provider cuda: device_id is "${wrong}"`), `"${wrong}" is no device`, stderr);
}

// Sequences that end at different times, and one that fails among them, change nothing for the others.
const cut = (tokens, end) => (tokens.includes(end) ? tokens.slice(0, tokens.indexOf(end) + 1) : tokens);
const often = wanted.flat().reduce((best, token, _, list) => {
  const n = wanted.filter((tokens) => tokens.includes(token)).length;
  return n < wanted.length && n > best.n ? { token, n } : best;
}, { n: 0 }).token;
for (const sequences of [2, 3, 6]) {
  const retired = run(k, [dir, ...all, '-n', `${NEW}`, '--end', `${often}`, '--sequences', `${sequences}`, '--quiet']);
  tap.ok(same(lines(retired.stdout), wanted.map((tokens) => cut(tokens, often))), `some end early, ${sequences} at once`, retired.stderr + retired.stdout);
  const failing = run(k, [dir, ...all.slice(0, 4), '--prompt-ids', '1,999', ...all.slice(4), '-n', `${NEW}`, '--sequences', `${sequences}`, '--json']);
  const got = failing.status === 1 ? JSON.parse(failing.stdout).sequences : [];
  tap.ok(got.length === PROMPTS.length + 1 && got[2].end === 'failed' && !got[2].tokens.length && same(got.filter((_, i) => i !== 2).map(({ tokens }) => tokens), wanted),
    `one fails, ${sequences} at once`, `${failing.status} ${failing.stderr}${failing.stdout}`);
}

function fails(title, status, pattern, args, options) {
  const got = run(k, [dir, ...args], options);
  const said = got.stderr.split('\n').filter((line) => line.startsWith('error:'));
  const alone = status !== 2 || got.stderr.trim().split('\n').length === 1; // nothing ran that a summary could be of
  tap.ok(got.status === status && said.some((line) => pattern.test(line)) && (launcher || (said.length === 1 && alone)), title, `${got.status}\n${got.stderr}`);
}
fails('no prompt', 2, /--prompt-ids or --prompts/, []);
fails('a prompt of words', 2, /--prompt-ids takes comma-separated token ids/, ['--prompt-ids', 'one,two']);
fails('a prompt longer than the context', 2, /a prompt of 5 tokens leaves no room in a context of 4/, ['--prompt-ids', '1,2,3,4,5', '--context', '4']);
{
  const late = run(k, [dir, '--prompt-ids', '1,2', '--prompt-ids', '1,2,3,4,5', '--context', '4']);
  tap.ok(late.status === 2 && !late.stdout && /leaves no room/.test(late.stderr), 'a second prompt that is too long: nothing is made', late.stdout + late.stderr);
}
fails('a line that is no prompt', 4, /line 2 is not a list/, ['--prompts', '-'], { input: '1 2\n1 x\n' });
for (const negative of ['-1', '1,-2', '1-2', '+1']) fails(`the prompt ${negative}`, 2, /--prompt-ids takes comma-separated token ids/, ['--prompt-ids', negative]);
fails('a negative end', 2, /--end takes comma-separated token ids/, ['--prompt-ids', '1', '--end', '-1']);
fails('a line with a negative token', 4, /line 1 is not a list/, ['--prompts', '-'], { input: '3 -1\n' });
for (const name of ['input_ids', 'attention_mask', 'past_key_values.1.key'])
  fails(`${name} is not given`, 2, new RegExp(`input ${name} is made from the tokens`), ['--prompt-ids', '1', '--input', `${name}=ones`]);
fails('prompts that are a directory', 3, /directory/, ['--prompts', tmp]);
fails('a line without an end', 6, /line 1 is over 64 MiB/, ['--prompts', '/dev/zero']);
fails('a state that is not there', 2, /the model has no output presents/, ['--prompt-ids', '1', '--state', 'presents=past_key_values.0.key']);
fails('a state of another type', 5, /comes out as float32, and input_ids takes int64/, ['--prompt-ids', '1', '--state', 'present.0.key=input_ids']);
fails('a state of another stage', 5, /stage \d reads the state past_key_values.2.key, and stage \d writes it as present.0.key/,
  ['--prompt-ids', '1', '--state', 'present.0.key=past_key_values.2.key']);

// A mask of a fixed size that is full: no token is left out in silence.
{
  const model = join(tmp, 'fixed.onnx'), fixed = join(tmp, 'fixed');
  const text = `<ir_version: 8, opset_import: [{version: 17}]>
counter (int64[1,s] input_ids, int64[1,8] attention_mask) => (float[1,8] logits) <float[8] w = random(1)> {
  f = Cast <to = 1> (attention_mask) i = ReduceSum (input_ids) g = Cast <to = 1> (i) a = Mul (f, w) b = Mul (a, w) logits = Add (b, g)
}`;
  writeModel(text, model);
  const made = spawnSync(splitter, [model, '-k', `${k}`, '-o', fixed, '--quiet', '--dim', 's=1'], { encoding: 'utf8' });
  const full = run(k, [fixed, '--prompt-ids', '1,2,3,4,5', '-n', '20', '--json']);
  const [sequence] = made.status === 0 ? JSON.parse(full.stdout).sequences : [{}];
  tap.ok(full.status === 1 && sequence.tokens.length === 4 && /input attention_mask has room for 8 tokens, not 9/.test(sequence.error),
    'a mask of a fixed size that is full', made.stderr + full.stderr + full.stdout);
}

// Started, and after a while a signal, or its reader closes the pipe; gives the exit status, seconds from then and standard error.
function interrupted(args, act, input = 'pipe') {
  const command = launcher ? [...launcher.split(' '), `${k}`, generator] : [generator];
  const child = spawn(command[0], [...command.slice(1), ...args], { env, stdio: [input, 'pipe', 'pipe'] });
  let stderr = '', since = 0, lines = 0;
  child.stderr.on('data', (data) => stderr += data);
  child.stdin?.on('error', () => {});
  const late = setTimeout(() => child.kill('SIGKILL'), 30000);
  child.stdout.on('data', (data) => {
    lines += `${data}`.split('\n').length - 1;
    if (since || !lines) return;
    since = performance.now();
    act(child);
  });
  child.stdin?.write('1 2\n');
  return new Promise((resolve) => child.on('close', (status) => {
    clearTimeout(late);
    resolve({ status, stderr, seconds: since ? (performance.now() - since) / 1000 : NaN });
  }));
}
// Prompts that come while others are under way: each when the one before it has had so many tokens, of a stage that takes its time.
{
  const command = launcher ? [...launcher.split(' '), `${k}`, generator] : [generator];
  const child = spawn(command[0], [...command.slice(1), dir, '--prompts', '-', '-n', `${NEW}`, '--sequences', '3', '--stream', '--quiet'],
    { env: { ...env, ODD: 'slow-run stage1 10', ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: odd }, stdio: ['pipe', 'pipe', 'inherit'] });
  const came = PROMPTS.map(() => []);
  let rest = '', n = 0, most = 0;
  const send = () => (n < PROMPTS.length ? child.stdin.write(`${PROMPTS[n++].join()}\n`) : child.stdin.end());
  child.stdout.on('data', (data) => {
    const text = (rest + data).split('\n');
    rest = text.pop();
    for (const line of text) {
      const [sequence, token] = line.split(' ').map(Number);
      came[sequence].push(token);
      if (sequence === n - 1 && came[sequence].length === 1 + (n % 3)) send();
      most = Math.max(most, came.filter((tokens) => tokens.length && tokens.length < NEW).length);
    }
  });
  send();
  await new Promise((resolve) => child.on('close', resolve));
  tap.ok(same(came, wanted) && most > 1, 'prompts that come while others are under way', JSON.stringify({ most, came }));
}

// What ends the run is one line, which says which sequences were complete. A rank that falls silent is missed by rank 0; one that is
// killed may take all others with it, as the launcher has it: what was printed until then is true.
if (launcher) {
  for (const [signal, pattern] of [['SIGSTOP', /^error: .*stage 1.*; of 3 sequences complete: 0-1 \(see --timeout\)$/m], ['SIGKILL', null]]) {
    const child = spawn(launcher.split(' ')[0], [...launcher.split(' ').slice(1), `${k}`, generator, dir, '--prompts', '-', '-n', `${NEW}`, '--timeout', '3', '--quiet'],
      { env, stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '', stderr = '', victim = 0;
    child.stdin.on('error', () => {});
    child.stderr.on('data', (data) => stderr += data);
    child.stdout.on('data', (data) => {
      stdout += data;
      if (victim || stdout.split('\n').length < 3) return;
      victim = processesBelow(child.pid, generator).at(-1);
      process.kill(victim, signal);
      child.stdin.write(`${PROMPTS[2].join()}\n`);
    });
    child.stdin.write(`${PROMPTS.slice(0, 2).map(String).join('\n')}\n`);
    const late = setTimeout(() => child.kill('SIGKILL'), 40000);
    const { status } = await endOf(child); // a rank that is stopped keeps pipes open
    clearTimeout(late);
    if (victim && signal === 'SIGSTOP') try { process.kill(victim, 'SIGKILL'); } catch { /* it has gone */ }
    tap.ok(status !== 0 && same(lines(stdout).slice(0, 2), wanted.slice(0, 2)) && (!pattern || pattern.test(stderr)), `${signal} of a rank`,
      `${status} ${stdout}${stderr}`);
    if (pattern) tap.ok(stderr.split('\n').filter((line) => /^(error|warning):/.test(line)).length === 1, `${signal} of a rank: one line`, stderr);
  }
}
const waits = await interrupted([dir, '--prompts', '-', '-n', '2'], (child) => child.kill('SIGINT'));
tap.ok(waits.status === 130 && waits.seconds < 3 && /error: interrupted$/m.test(waits.stderr), 'Ctrl-C while it waits for a prompt', JSON.stringify(waits));
if (!launcher) {
  spawnSync('mkfifo', [join(tmp, 'fifo')]);
  const unwritten = await interrupted([dir, '--prompt-ids', '1', '--prompts', join(tmp, 'fifo'), '-n', '2'], (child) => child.kill('SIGTERM'));
  tap.ok(unwritten.status === 143 && unwritten.seconds < 3, 'SIGTERM while nobody writes to the pipe of prompts', JSON.stringify(unwritten));
  const gone = await interrupted([dir, '--prompts', '-', '-n', '2'], (child) => {
    child.stdout.destroy();
    child.stdin.write('3\n'.repeat(1000)); // and its end does not come
  });
  tap.ok(gone.status === 3 && gone.seconds < 3 && /^error: standard output cannot be written$/m.test(gone.stderr), 'nobody reads what comes out', JSON.stringify(gone));

  // What has been printed is forgotten: 1 MiB is less than 29000 answers take.
  const many = spawn(generator, [dir, '--prompts', '-', '-n', '1', '--quiet'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const resident = () => Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${many.pid}/status`))[1]);
  const at = {};
  let answers = 0;
  many.stdout.on('data', (data) => {
    answers += `${data}`.split('\n').length - 1;
    if (answers >= 10000) at.early ??= resident();
    if (answers >= 39000) at.late ??= resident();
    if (answers >= 40000) many.stdin.end();
  });
  many.stdin.write('7\n'.repeat(40000));
  await new Promise((resolve) => many.on('close', resolve));
  tap.ok(answers === 40000 && at.late - at.early < 1024, 'memory does not grow with the number of prompts', JSON.stringify({ answers, ...at }));
}
tap.done();
