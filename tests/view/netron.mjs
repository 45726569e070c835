// What --format onnx writes opens in Netron as blocks to step into: node netron.mjs TOOL MAKE_MODEL
//
// Netron is on no registry of packages for Node. PSPLIT_NETRON=DIR names a checkout of
// https://github.com/lutzroeder/netron, or its folder `source`; without it the test is skipped.
// PSPLIT_SCREENSHOTS=DIR keeps a picture.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';
import { Tap, skipAll } from '../e2e/tap.mjs';

const [tool, makeModel] = process.argv.slice(2);
const checkout = process.env.PSPLIT_NETRON;
if (!checkout) skipAll('PSPLIT_NETRON does not name a checkout of Netron');
const source = existsSync(join(checkout, 'source')) ? join(checkout, 'source') : checkout;
if (!existsSync(join(source, 'onnx.js'))) skipAll(`${source} has no onnx.js: it is not Netron`);

const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-netron-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

function run(program, args, options = {}) {
  const ran = spawnSync(program, args, { encoding: 'utf8', ...options });
  if (ran.status !== 0) throw new Error(`${program}: ${ran.stderr}`);
  return ran.stdout;
}

// Layers that repeat; supernodes of several operators become functions.
const model = join(tmp, 'model.onnx');
const golden = readFileSync(new URL('golden/layers.txt', import.meta.url), 'utf8');
run(makeModel, [model], { input: golden.split('--- model\n')[1].split('--- expected\n')[0] });
run(tool, [model, '-q', '--format', 'onnx', '-o', join(tmp, 'blocks.onnx')]);
const { supernodes } = JSON.parse(run(tool, [model, '-q', '--format', 'json']));
const wanted = supernodes.filter(({ operators }) => operators.length > 1);

const types = {
  '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
};
const server = createServer((request, response) => {
  const path = normalize(new URL(request.url, 'http://localhost').pathname);
  const file = path.endsWith('.onnx') ? join(tmp, path) : join(source, path);
  if (existsSync(file) && statSync(file).isFile()) {
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    response.end(readFileSync(file));
  } else if (path.endsWith('-metadata.json')) { // what it says of operators is not asked here
    response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
  } else {
    response.writeHead(404).end();
  }
});
await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--no-first-run'],
});
const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
// It asks about cookies where it cannot tell the country, and for nothing else from elsewhere.
await context.addCookies([{ name: 'consent', value: '1', url: origin }]);
await context.route((url) => url.origin !== origin && /^http/.test(url.protocol),
  (route) => route.abort());
// It takes eval away, which the driver of the browser needs to ask questions.
await context.addInitScript(() => {
  const kept = window.eval;
  Object.defineProperty(window, 'eval', { get: () => kept, set: () => {} });
});
const page = await context.newPage();
const problems = [];
page.on('pageerror', (error) => problems.push(`${error}`));
await page.goto(`${origin}/index.html?url=/blocks.onnx`);
const opened = await page.waitForFunction(() => window.__view__?.model, null, { timeout: 30000 })
  .then(() => true, () => false);
const said = opened ? '' : await page.locator('#message-text').textContent().catch(() => '');
if (tap.ok(opened, 'Netron opens the file', said)) {
  const functions = await page.evaluate(() =>
    window.__view__.model.functions.map(({ name, nodes }) => ({ name, n: nodes.length })));
  const sizes = (list) => list.sort((a, b) => a - b).join();
  tap.ok(functions.length === wanted.length,
    'with a function for each supernode of several operators', JSON.stringify(functions));
  tap.ok(sizes(functions.map(({ n }) => n)) ===
    sizes(wanted.map(({ operators }) => operators.length)), 'which holds its operators',
    JSON.stringify(functions));
  await page.waitForSelector('.graph-node, .node', { timeout: 15000 }).catch(() => {});
  const drawn = await page.locator('.graph-node, .node').count();
  tap.ok(drawn >= supernodes.length, 'and draws the blocks', `${drawn}`);
}
tap.none(problems, 'without an error');
const shots = process.env.PSPLIT_SCREENSHOTS;
if (shots) await page.screenshot({ path: join(shots, 'netron.png') });
await browser.close();
server.close();
tap.done();
