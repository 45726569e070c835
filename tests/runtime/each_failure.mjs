// Each call of ONNX Runtime and each allocation fails in turn (each_failure.c, which says what it checks):
//
//   node each_failure.mjs PROGRAM FAILING
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { skipAll } from '../e2e/tap.mjs';
import { library } from './runner.mjs';

const [program, failing] = process.argv.slice(2);
if (!existsSync(library)) skipAll('onnxruntime-node is not installed');
const directory = mkdtempSync(join(tmpdir(), 'psplit-failing-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const { status, signal } = spawnSync(program, [resolve(failing), directory], {
  env: { ...process.env, REAL_LIBRARY: library }, stdio: 'inherit', timeout: 240000,
});
if (signal) console.log(`Bail out! ended by ${signal}`);
process.exitCode = status ?? 1;
