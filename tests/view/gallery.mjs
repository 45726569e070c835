// The pictures of docs/gallery.md: node gallery.mjs INSPECT DIR [NAME...]
//
// Real models from the model cache (tests/models/fetch.sh fills it), each in a view that shows something
// about it. Pages are those that the tool writes; a picture is at most 150 kB.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [tool, folder, ...wanted] = process.argv.slice(2);
const cache = process.env.PSPLIT_MODEL_CACHE ?? new URL('../../.cache/models', import.meta.url).pathname;
const tmp = mkdtempSync(join(tmpdir(), 'psplit-gallery-'));
process.on('exit', () => rmSync(tmp, { recursive: true, force: true }));

// A cut is moved, seven places back; the figures follow.
const move = () => window.page.moveCut(1, window.page.cutPlaces()[1] - 7);
const PICTURES = [
  { name: 'resnet50', model: 'resnet50', args: ['-k', '1..8', '--dim', 'batch=1'], hash: 'k=4&supernode=20' },
  { name: 'vit_b_16', model: 'vit_b_16', args: ['-k', '4', '--dim', 'batch=1'], hash: 'view=model', height: 820 },
  { name: 'ppocr_rec', model: 'ppocr_rec', args: ['-k', '1..8', '--dim', 'p2o.DynamicDimension.0=1', '--dim', 'p2o.DynamicDimension.1=320'], hash: 'view=cuts&k=4', act: move, height: 860 },
  { name: 'retinaface', model: 'retinaface', args: ['-k', '2..4'], hash: 'k=4&compare=2', dark: true, height: 640 },
  { name: 'whisper_tiny_encoder', model: 'whisper_tiny_encoder', args: ['-k', '4', '--micro-batches', '12', '--dim', 'batch_size=1', '--dim', 'feature_size=80', '--dim', 'encoder_sequence_length=3000'], hash: 'view=schedule', height: 540 },
  { name: 'ppocr_det', model: 'ppocr_det', args: ['-k', '4', '--dim', 'p2o.DynamicDimension.0=1', '--dim', 'p2o.DynamicDimension.1=640', '--dim', 'p2o.DynamicDimension.2=640'], hash: 'view=model', height: 820 },
  { name: 'memory', model: 'densenet121', args: ['-k', '5', '--dim', 'batch=8'], hash: 'mode=memory', dark: true, height: 700 },
  { name: 'phone', model: 'resnet50', args: ['-k', '3', '--dim', 'batch=1'], hash: '', width: 390, height: 844 },
];

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
for (const { name, model, args, hash, act, dark, width = 1080, height = 690 } of PICTURES) {
  if (wanted.length && !wanted.includes(name)) continue;
  const file = join(tmp, 'page.html');
  const ran = spawnSync(tool, [join(cache, `${model}.onnx`), '--format', 'html', '-o', file, '-q', ...args], { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`${name}: ${ran.stderr}`);
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light' });
  await page.goto(`${pathToFileURL(file).href}#${hash}`);
  await page.waitForFunction(() => window.page?.shown);
  if (act) await page.evaluate(act);
  await page.evaluate(() => { document.getElementById('said').textContent = ''; });
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path });
  await page.close();
  const { size } = statSync(path);
  console.log(`${path}: ${Math.ceil(size / 1000)} kB`);
  if (size > 150000) throw new Error(`${path} is larger than 150 kB`);
}
await browser.close();
