// A stage process that lies (lies.c, which says what it checks):
//
//   node lies.mjs PROGRAM
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { skipAll } from '../e2e/tap.mjs';
import { env, library } from './runner.mjs';

const [program] = process.argv.slice(2);
if (!existsSync(library)) skipAll('onnxruntime-node is not installed');
const { status } = spawnSync(program, [program], { env, stdio: 'inherit', timeout: 240000 });
process.exitCode = status ?? 1;
