// The operators of com.microsoft that the installed ONNX Runtime has are those of rules.def:
//
//   contrib.mjs RULES_DEF
//
// ONNX Runtime prints no list, but says of a node whether a schema is registered for it. Names that it is
// asked about are all words in its library that could be one: a name that is not among them is nowhere in it.
// Results as TAP.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tap, skipAll } from '../e2e/tap.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const ort = createRequire(join(here, '../e2e/package.json'))('onnxruntime-node');
const folder = join(here, `../e2e/node_modules/onnxruntime-node/bin/napi-v6/linux/${process.arch}`);
let library;
try {
  library = readFileSync(join(folder, 'libonnxruntime.so.1')).toString('latin1');
} catch {
  skipAll('the package onnxruntime-node has no library here');
}

const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(n >> 7)]);
const block = (field, data) =>
  Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(data.length)]), Buffer.from(data)]);
const opset = (domain, version) => block(8, Buffer.concat([block(1, domain), Buffer.from([16, version])]));

// A node without inputs: what has a schema wants some, or more of its result.
const modelOf = (op, domain) => Buffer.concat([
  Buffer.from([8, 8]),
  block(7, Buffer.concat([
    block(1, Buffer.concat([block(2, 'y'), block(4, op), block(7, domain)])),
    block(2, 'g'), block(12, block(1, 'y'))])),
  opset(domain, 1), opset('', 21)]);

async function hasSchema(op, domain) {
  try {
    const session = await ort.InferenceSession.create(modelOf(op, domain), { logSeverityLevel: 4 });
    await session.release?.();
    return true;
  } catch (error) {
    return !/is not a registered function\/op|No Op registered/.test(error.message);
  }
}

// Linkers keep a string that another one ends with only once.
const names = new Set();
for (const [word] of library.matchAll(/[A-Za-z0-9_]{3,60}(?=\0)/g))
  for (let i = 0; i + 3 <= word.length; i++)
    if (/[A-Z]/.test(word[i]) && (i === 0 || !/[A-Z]/.test(word[i - 1])) && word.length - i < 48)
      names.add(word.slice(i));

const rules = readFileSync(process.argv[2], 'utf8');
const rows = (kind) => new Set(
  [...rules.matchAll(new RegExp(`^PSPLIT_${kind}\\("com\\.microsoft", "(\\w+)"`, 'gm'))].map(([, op]) => op));
const [ruled, bare] = [rows('RULE'), rows('NO_RULE')];
// Made by ONNX Runtime itself while it loads a model, or nothing but an echo of ONNX's own.
const excused = new Set(['Constant']);

const tap = new Tap();
const found = [];
for (const name of names) if (await hasSchema(name, 'com.microsoft')) found.push(name);
tap.ok(found.length > 100 && found.includes('MoE') && found.includes('Attention') && found.includes('CDist'),
  `ONNX Runtime has ${found.length} operators in com.microsoft`, found.join(' '));
tap.ok(!(await hasSchema('NoSuchOperator', 'com.microsoft')), 'and not one more');
tap.none(found.filter((name) => !ruled.has(name) && !bare.has(name) && !excused.has(name)),
  'each has a row in rules.def');
tap.none(found.filter((name) => bare.has(name) && !['EPContext', 'Snpe'].includes(name)),
  'and each whose results can be told has a rule');
tap.done();
