// The HTML page in headless Chromium: node page.mjs TOOL MAKE_MODEL MAKE_BIG_GRAPH
//
// PSPLIT_SCREENSHOTS=DIR keeps a picture of each page, to be looked at.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { Tap, skipAll } from '../e2e/tap.mjs';

const [tool, makeModel, makeBigGraph] = process.argv.slice(2);
const tap = new Tap();
const tmp = mkdtempSync(join(tmpdir(), 'psplit-page-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

const modelText = (name) => readFileSync(new URL(`golden/${name}.txt`, import.meta.url), 'utf8')
  .split('--- model\n')[1].split('--- expected\n')[0];

function inspect(model, ...args) {
  const file = join(tmp, 'page.html');
  const ran = spawnSync(tool, [model, '--format', 'html', '-o', file, '-q', ...args], { encoding: 'utf8' });
  return { file, ...ran };
}

function small(name, ...args) {
  const model = join(tmp, 'model.onnx');
  const ran = spawnSync(makeModel, [model], { input: modelText(name) });
  if (ran.status !== 0) throw new Error(`${ran.stderr}`);
  return inspect(model, ...args);
}

const probe = small('supernodes');
if (/without HTML pages/.test(probe.stderr)) skipAll('this build is without HTML pages');

// Flags that keep the browser from asking for anything on the network of its own accord.
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

// Opens a page; everything that goes wrong in it, and everything that it asks for, is a problem.
async function open(title, { status, stderr, file }) {
  if (!tap.ok(status === 0, `${title}: the page is written`, stderr)) return null;
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.problems = [];
  page.on('console', (m) => { if (m.type() !== 'log') page.problems.push(`console ${m.type()}: ${m.text()}`); });
  page.on('pageerror', (error) => page.problems.push(`${error}`));
  page.on('dialog', (dialog) => { page.problems.push('a name was run as a script'); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) page.problems.push(`request: ${request.url()}`);
  });
  const start = Date.now();
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => window.page?.graph());
  page.milliseconds = Date.now() - start;
  return page;
}

async function close(title, page) {
  const shots = process.env.PSPLIT_SCREENSHOTS;
  if (shots) await page.screenshot({ path: join(shots, `${title.replaceAll(' ', '-')}.png`) });
  tap.none(page.problems, `${title}: no error, no request`);
  await page.close();
}

const supernodes = (page) => page.evaluate(() => window.page.graph().nodes().length);

// Where a supernode is on the screen.
const spot = (page, id) => page.evaluate((g) => {
  const at = window.page.box(g).renderedPosition();
  const box = document.getElementById('canvas').getBoundingClientRect();
  return [box.left + at.x, box.top + at.y];
}, id);

async function block() {
  const title = 'one plan';
  const page = await open(title, small('supernodes', '-k', '2', '--dim', 'batch=2', '--micro-batches', '5'));
  if (!page) return;
  tap.ok(await page.locator('#stages .stage').count() === 2, `${title}: a bar for each of two stages`);
  tap.ok(await page.locator('#stages .bar').nth(1).locator('i').count() === 4, `${title}: memory in its four parts`);
  tap.ok(await supernodes(page) === 4, `${title}: four supernodes`);
  tap.ok(await page.locator('#schedule rect').count() === 10, `${title}: two stages times five micro-batches`);
  await page.fill('#batches', '7');
  tap.ok(await page.locator('#schedule rect').count() === 14, `${title}: seven micro-batches when asked for`);
  // The sum of the loads for the first, the slowest for each of the others.
  const { makespan, bubble } = await page.evaluate(() => window.page.simulate([1, 3, 2], 4));
  tap.ok(makespan === 15 && Math.abs(bubble - (1 - 24 / 45)) < 1e-9, `${title}: the schedule is a pipeline's`, `${makespan}, ${bubble}`);
  tap.ok(await page.locator('#repeats').isHidden() && await page.locator('#notes').isHidden(), `${title}: no empty panels`);
  tap.ok(await page.locator('#cuts line.cut').count() === 1, `${title}: the cut is on the curve`);
  tap.ok(await page.locator('#choice').isHidden(), `${title}: nothing to choose`);
  await page.mouse.click(...await spot(page, 1));
  await page.waitForSelector('#detail[data-supernode]');
  tap.ok(await page.locator('#detail h2').textContent() === 'layers.0', `${title}: a click selects the supernode`);
  tap.ok(await page.locator('#detail tbody tr').count() === 3, `${title}: its three operators are listed`);
  await page.fill('#search', '/head/fc');
  await page.locator('#found button').first().click();
  tap.ok(await page.locator('#detail').getAttribute('data-supernode') === '3', `${title}: search finds an operator's supernode`);
  await close(title, page);
}

async function slider() {
  const title = 'several plans';
  const page = await open(title, small('supernodes', '-k', '1..4', '--dim', 'batch=2'));
  if (!page) return;
  tap.ok(await page.locator('#stages .stage').count() === 4, `${title}: begins with the most stages`);
  await page.fill('#slider', '1');
  tap.ok(await page.locator('#stages .stage').count() === 2, `${title}: the slider chooses two stages`);
  tap.ok(await page.locator('#chosen').textContent() === '2', `${title}: and says so`);
  await close(title, page);
}

async function blocks() {
  const title = 'repeated blocks';
  const page = await open(title, small('layers', '-k', '2'));
  if (!page) return;
  tap.ok(await supernodes(page) === 11, `${title}: eleven supernodes`);
  tap.ok((await page.locator('#repeats button').textContent()).startsWith('layers.[0-2]: 3 × block of 3 supernodes'), `${title}: are listed`);
  await page.click('#fold');
  const boxes = await supernodes(page);
  tap.ok(boxes > 2 && boxes < 11, `${title}: fold into fewer boxes`, `${boxes}`);
  const folded = await page.evaluate(() => window.page.data.plans[0].supernodes.find(({ id }) => {
    const label = window.page.box(id).data('label');
    return label.startsWith('layers.[0-2], ') && label.includes('3 supernodes');
  })?.id);
  await page.mouse.click(...await spot(page, folded));
  await page.waitForSelector('#detail[data-supernode]');
  tap.ok(await page.locator('#detail li button').count() === 3, `${title}: a click lists a block's supernodes`);
  await page.locator('#detail li button').nth(1).click();
  tap.ok(await page.locator('#detail tbody tr').count() === 2, `${title}: and a click there its operators`);
  await close(title, page);
}

async function notes() {
  const title = 'notes in the dark';
  const page = await open(title, small('layers', '-k', '2'));
  if (!page) return;
  await page.emulateMedia({ colorScheme: 'dark' });
  // As a plugin's pass would have left them; tests/plugin has one that does.
  await page.evaluate(() => {
    window.page.data.plans[0].notes.push(
      { pass: 'odd', operator: 1, supernode: 1, text: '<b>slow</b> on Tuesdays' },
      { pass: 'odd', operator: null, supernode: null, text: 'of the whole' });
    document.getElementById('slider').dispatchEvent(new Event('input'));
  });
  tap.ok(await page.locator('#notes li').count() === 2, `${title}: all are listed`);
  await page.evaluate(() => window.page.show(1));
  tap.ok((await page.locator('#detail li').textContent()).startsWith('<b>slow</b> on Tuesdays'), `${title}: a supernode shows its own, as text`);
  await page.evaluate(() => window.page.show(2));
  tap.ok(await page.locator('#detail .notes').count() === 0, `${title}: another one does not`);
  await close(title, page);
}

async function training() {
  const title = 'training';
  const model = join(tmp, 'model.onnx');
  const layers = [0, 1, 2, 3].map((i) => `  m${i} = MatMul (h${i}, w${i})\n  h${i + 1} = Tanh (m${i})\n`).join('');
  spawnSync(makeModel, [model], { input: '<ir_version: 8, opset_import: ["": 17]>\nmain (float[16,32] h0) => (float[16,32] h4) <'
    + `${[0, 1, 2, 3].map((i) => `float[32,32] w${i} = random(${i + 1})`).join(', ')}> {\n${layers}}\n` });
  const page = await open(title, inspect(model, '-k', '2', '--training', '--loss', 'mse:target=t', '--micro-batches', '5'));
  if (!page) return;
  const stages = await page.evaluate(() => window.page.data.plans[0].stages);
  tap.ok(stages.every(({ forward_ns: f, backward_ns: b }) => f > 0 && b > f), `${title}: stages know forward and backward`, JSON.stringify(stages));
  tap.ok(await page.locator('#stages .bar .backward').count() === 2 && await page.locator('#stages .bar .compute').count() === 2,
    `${title}: forward and backward of a stage side by side`);
  const [forward, back] = await Promise.all(['compute', 'backward'].map((kind) =>
    page.locator(`#stages .bar .${kind}`).first().evaluate((each) => each.getBoundingClientRect().width)));
  tap.ok(Math.abs(back / forward - stages[0].backward_ns / stages[0].forward_ns) < 0.1, `${title}: as long as they take`, `${forward} ${back}`);
  tap.ok(/forward .*, backward .*stash/.test(await page.locator('#stages .stage').first().textContent()), `${title}: and in numbers`);
  tap.ok(await page.locator('#schedule rect').count() === 20, `${title}: five micro-batches there and back`);
  await close(title, page);
}

async function unplanned() {
  const title = 'no plan';
  const page = await open(title, small('supernodes', '--before', 'infer-shapes'));
  if (!page) return;
  tap.ok(await supernodes(page) === 8, `${title}: every operator is a supernode`);
  tap.ok(await page.locator('#stages .stage').count() === 0, `${title}: there are no stages`);
  await close(title, page);
}

async function hostile() {
  const title = 'hostile names';
  const page = await open(title, small('names-text', '-k', '2'));
  if (!page) return;
  tap.ok(await page.locator('script').count() === 3, `${title}: no name became an element`);
  await page.evaluate(() => window.page.show(0));
  const text = await page.locator('#detail tbody').textContent();
  tap.ok(text.includes('</script><script>alert(1)</script>'), `${title}: they are shown as they are`);
  await page.fill('#search', 'script');
  await page.locator('#found button').first().click();
  await close(title, page);
}

// What the plan may be taken to promise, as the table says it.
async function headline() {
  const summary = async (title, written) => {
    const page = await open(title, written);
    const text = page ? await page.locator('#summary').textContent() : '';
    if (page) await close(title, page);
    return text;
  };
  const open_size = await summary('an open size', small('supernodes', '-k', '2'));
  tap.ok(/proved optimal, expected speed-up over one device .* for batch = 1 \(assumed\)/.test(open_size),
    'an open size: speed-up and proof name it', open_size);
  const found = await summary('what a run finds', small('data-dependent', '-k', '2'));
  tap.ok(/as counted, no speed-up is told: .*\/second\/MatMul/.test(found) && !/proved|expected/.test(found),
    'what a run finds: neither a speed-up nor a proof', found);
  const devices = join(tmp, 'devices.json');
  writeFileSync(devices, JSON.stringify({ devices: [{ name: 'a', preset: 'cpu-sse' }, { name: 'b', preset: 'cpu' }] }));
  const ordered = await summary('an order of devices', small('supernodes', '--dim', 'batch=2', '--devices', devices, '--device-order', 'given'));
  tap.ok(/proved optimal for this order of devices, expected speed-up over b/.test(ordered),
    'an order of devices: is the proof\'s', ordered);
}

async function large() {
  const title = '10000 operators';
  const model = join(tmp, 'big.onnx');
  spawnSync(makeBigGraph, ['10000', 'layered', model]);
  const page = await open(title, inspect(model, '-k', '4', '--time-limit', '3'));
  if (!page) return;
  tap.ok(page.milliseconds < 45000, `${title}: there in 45 s on a busy machine`, `${page.milliseconds} ms`);
  console.log(`# ${title}: ${await supernodes(page)} supernodes in ${page.milliseconds} ms`);
  tap.ok(await page.evaluate(() => window.page.data.operators.length) >= 10000, `${title}: all are in the page`);
  const first = await page.evaluate(() => window.page.data.plans[0].order[0]);
  const start = Date.now();
  await page.mouse.click(...await spot(page, first));
  await page.waitForSelector('#detail[data-supernode]');
  tap.ok(Date.now() - start < 10000, `${title}: a click answers in 10 s`, `${Date.now() - start} ms`);
  await page.locator('#fit').click();
  await close(title, page);
}

await block();
await slider();
await headline();
await blocks();
await notes();
await training();
await unplanned();
await hostile();
await large();
await browser.close();
tap.done();
