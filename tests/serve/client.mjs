// What tests of onnx-pipeline-serve share: a server that serves a small split, clients of it, and the bits that
// onnx-pipeline-run gives for what they ask.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { readNpy, writeNpy } from '../runtime/npy.mjs';
import { Runner, endOf, env, library, processesBelow, until, within } from '../runtime/runner.mjs';

export const INFER = '/v2/models/m/infer';
export const KINDS = 6;
export const values = (seed, rows) => Array.from({ length: 8 * rows }, (_, i) => Math.fround(Math.sin(seed + i)));

export class Clients {
  constructor(server, runner, splitter, odd, launcher) {
    this.each = new Runner(runner, splitter, launcher, 2);
    const { dir, manifest: { inputs: [{ name: input }], outputs: [{ name: output }] } } = this.each.split('fan_out');
    Object.assign(this, { server, odd, launcher, dir, input, output, tap: this.each.tap, tmp: this.each.tmp });
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
    this.wanted = this.#learn(runner, dir);
  }

  // What the runner gives for the same numbers.
  #learn(runner, dir) {
    const { each, tmp } = this;
    for (let seed = 0; seed < KINDS; seed++) {
      writeNpy(join(tmp, `in${seed}.npy`), { type: 'float32', dims: [2, 8], data: Float32Array.from(values(seed, 2)) });
    }
    const made = each.start(runner, [dir, '-q', '-m', `${KINDS}`, '-i', `${this.input}=${join(tmp, 'in{}.npy')}`, '-o',
      join(tmp, 'out'), '--transport', 'threads']);
    this.tap.ok(made.status === 0, 'the bits to be given', made.stderr);
    return Array.from({ length: KINDS }, (_, seed) => [...readNpy(join(tmp, 'out', `${seed}-0.npy`)).data]);
  }

  isRight(data, seed) {
    const wanted = this.wanted[seed];
    return data?.length === wanted.length && wanted.every((value, i) => Math.fround(data[i]) === value);
  }

  // The environment in which ../runtime/odd_onnxruntime.c does as it is told.
  oddly(what) {
    return { ...env, ODD: what, ODD_LIBRARY: library, PSPLIT_ONNXRUNTIME: this.odd };
  }

  // `limits`: what ulimit is told before it starts, if anything.
  async serve(args = [], environment = env, dir = this.dir, limits = '') {
    const { server, launcher } = this;
    const command = [...(limits ? ['sh', '-c', `ulimit ${limits} && exec "$@"`, 'sh'] : []), server, dir, '--listen', '127.0.0.1:0', '--model-name', 'm', ...args];
    const [program, ...rest] = launcher ? [...launcher.split(' '), '2', ...command] : command;
    const child = spawn(program, rest, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    const run = { child, stdout: '', stderr: '' };
    child.stdout.on('data', (data) => { run.stdout += data; });
    child.stderr.on('data', (data) => { run.stderr += data; });
    run.ended = endOf(child).then(({ status }) => status ?? -1);
    await until(() => /:(\d+)\/v2/.test(run.stdout) || child.exitCode !== null, 120);
    run.port = Number(/:(\d+)\/v2/.exec(run.stdout)?.[1]);
    if (!run.port) this.tap.ok(false, 'it starts', run.stderr);
    run.pid = launcher ? processesBelow(child.pid, server).find((pid) =>
      /\0(PMI|OMPI_COMM_WORLD)_RANK=0\0/.test(readFileSync(`/proc/${pid}/environ`, 'latin1'))) : child.pid;
    return run;
  }

  ask(run, method, path, body, headers = {}) {
    return new Promise((resolve) => {
      const request = http.request({ port: run.port, host: '127.0.0.1', method, path, agent: run.agent ?? this.agent, headers }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('end', () => {
          const bytes = Buffer.concat(parts);
          let json;
          try {
            json = JSON.parse(bytes.subarray(0, Number(response.headers['inference-header-content-length'] ?? bytes.length)));
          } catch { /* it is none */ }
          resolve({ status: response.statusCode, headers: response.headers, bytes, json });
        });
        response.on('error', (error) => resolve({ status: 0, error }));
      });
      request.on('error', (error) => resolve({ status: 0, error }));
      if (body) request.write(body);
      request.end();
    });
  }

  request(seed, rows, more = {}, of = {}) {
    return JSON.stringify({
      id: `r${seed}`, inputs: [{ name: this.input, shape: [rows, 8], datatype: 'FP32', data: values(seed, rows), ...of }], ...more,
    });
  }

  async metric(run, name) {
    const { bytes } = await this.ask(run, 'GET', '/metrics');
    const line = `${bytes}`.split('\n').find((each) => each.startsWith(`psplit_${name} `));
    return line === undefined ? undefined : Number(line.split(' ')[1]);
  }

  async stop(run, signal = 'SIGTERM') {
    process.kill(run.pid, signal);
    const status = await within(120000, run.ended);
    if (status === undefined) run.child.kill('SIGKILL');
    return status;
  }

  done() {
    this.agent.destroy();
    this.tap.done();
  }
}

// The processes of stages that a server has started, by stage.
export function stageProcesses(pid) {
  const found = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const parent = Number(readFileSync(`/proc/${name}/stat`, 'latin1').replace(/^.*\) . /s, '').split(' ')[0]);
      const words = readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0');
      if (parent === pid && words[1] === '--stage-process') found.set(Number(words[2]), Number(name));
    } catch { /* it has ended */ }
  }
  return found;
}
