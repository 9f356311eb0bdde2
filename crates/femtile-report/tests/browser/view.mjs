// Opens a report in Chromium without a window and uses its view; fails where a control changes nothing.
//
//     node view.mjs REPORT.html [FOLDER]
//
// FOLDER receives pictures of the page. CHROMIUM is the browser, by default the one on the PATH.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [, , report, folder] = process.argv;
const faults = [];
const expect = (holds, fault) => {
  if (!holds) faults.push(fault);
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'],
});
const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, colorScheme: 'light' });
page.on('console', (message) => expect(message.type() !== 'error', `console: ${message.text()}`));
page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
page.on('request', (request) => expect(/^(file|data|blob):/.test(request.url()), `request: ${request.url()}`));

/**
 * Compares a new picture of the view with the last one, and keeps it; returns the share of its pixels that differ from the
 * last picture, the share that are not of the most frequent colour, and the number of colours.
 */
async function look() {
  const shot = await page.locator('#view').screenshot();
  return page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, image.width, image.height).data;
    const last = window.lastPixels;
    window.lastPixels = pixels;
    const counts = new Map();
    let n_changed = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const colour = (pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2];
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
      n_changed += last && [0, 1, 2].some((part) => Math.abs(last[i + part] - pixels[i + part]) > 8) ? 1 : 0;
    }
    const n = pixels.length / 4;
    return { changed: n_changed / n, drawn: 1 - Math.max(...counts.values()) / n, n_colours: counts.size };
  }, shot.toString('base64'));
}

/** Does something and expects a share of the pixels to change. */
async function changes(name, act, share = 0.005) {
  await look();
  await act();
  await page.waitForTimeout(400);
  const { changed } = await look();
  console.log(`${name}: ${(100 * changed).toFixed(1)} % of the view changed`);
  expect(changed > share, `${name} changes nothing in the view`);
}

const set = (id, value) =>
  page.locator(id).evaluate((input, to) => {
    input.value = to;
    input.dispatchEvent(new Event('input'));
  }, value);
const picture = async (name) => {
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
};

const begun = Date.now();
await page.goto(pathToFileURL(resolve(report)).href);
await page.waitForFunction(() => document.body.dataset.view !== undefined, undefined, { timeout: 120_000 });
console.log(`opened in ${Date.now() - begun} ms`);
const state = await page.evaluate(() => document.body.dataset.view);
expect(state === 'ready', `the view is not ready: ${state}`);

if (state === 'ready') {
  await page.waitForTimeout(300);
  const { drawn, n_colours } = await look();
  console.log(`${(100 * drawn).toFixed(0)} % of the view is drawn, in ${n_colours} colours`);
  expect(drawn > 0.05 && n_colours > 40, 'the view is blank');
  await picture('light');

  await page.locator('#view').focus();
  await changes('turning by a key', () => page.keyboard.press('ArrowRight'));
  const box = await page.locator('#view').boundingBox();
  await changes('turning by the mouse', async () => {
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 + 80, box.y + box.height / 2 + 30, { steps: 4 });
    await page.mouse.up();
  });
  await changes('zooming', () => page.locator('#view').press('-'));
  await changes('reset', () => page.locator('#reset').click());
  await changes('isolines', () => set('#isolines', 10), 0.001);
  await changes('the mesh', () => page.locator('#edges').check(), 0.001);
  await changes('other colours', () => page.locator('#colours').selectOption('coolwarm'));
  await page.locator('#colours').selectOption('viridis');
  await changes('clipping', () => page.locator('#clip').selectOption('0'));
  await changes('moving the plane', () => set('#position', 2));
  if (await page.locator('#time-control').isVisible()) {
    await changes('another time', () => set('#time', 0), 0.001);
  }
  await picture('used');
  await changes('the dark colours', () => page.emulateMedia({ colorScheme: 'dark' }));
  await picture('dark');
  await page.setViewportSize({ width: 390, height: 800 });
  await page.waitForTimeout(400);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(overflow <= 0, `the page is ${overflow} pixels wider than a phone`);
  await picture('phone');
}
await browser.close();
faults.forEach((fault) => console.log(`FAULT: ${fault}`));
process.exit(faults.length === 0 ? 0 : 1);
