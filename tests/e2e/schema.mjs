// Compiled JSON Schemas, kept as code beside the npm packages: to compile that of manifests takes longer than most tests that
// ask it. What is kept is named after all that it is made from.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const options = { allErrors: true, allowUnionTypes: true };

// A function that tells whether a value fits the schema in a file, and has what does not as its `errors`.
export function fits(file) {
  const text = readFileSync(file);
  const { version } = require('ajv/package.json');
  const name = createHash('sha256').update(`${version} ${JSON.stringify(options)}\n`).update(text).digest('hex').slice(0, 32);
  const kept = fileURLToPath(new URL(`node_modules/.schema-${name}.cjs`, import.meta.url));
  if (!existsSync(kept)) {
    const { default: Ajv } = require('ajv/dist/2020.js');
    const ajv = new Ajv({ ...options, code: { source: true } });
    const compiled = ajv.compile(JSON.parse(text));
    try { // Tests that run at once each write a whole file; one that may not write does without.
      const part = `${kept}.${process.pid}`;
      writeFileSync(part, require('ajv/dist/standalone').default(ajv, compiled));
      renameSync(part, kept);
    } catch {
      return compiled;
    }
  }
  return require(kept);
}
