// Opens an exported page in Chromium: the numbers of ten test images must be those of `circulant predict`, drawing must
// change them, and a prediction of 16 networks must take less than 5 ms. Takes screenshots.
//
//   npm install playwright-core
//   circulant export RUN --to html --quantise f32 --out page.html
//   circulant predict RUN --data mnist --first 10 --samples 16 --out predictions.json
//   node web/test.mjs page.html predictions.json t10k-images-idx3-ubyte SCREENSHOTS
import assert from "node:assert";
import { readFileSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { chromium } from "playwright-core";

const [page_file, predictions_file, images_file, shots] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const problems = [];
async function open(options) {
  const context = await browser.newContext(options), page = await context.newPage();
  page.on("pageerror", error => problems.push(String(error)));
  page.on("console", message => message.type() === "error" && problems.push(message.text()));
  page.on("request", request => request.url().startsWith("file:") || request.url().startsWith("data:") || problems.push(request.url()));
  await page.goto("file://" + resolve(page_file));
  await page.waitForSelector("body[data-ready=yes]");
  return page;
}

const page = await open({ viewport: { width: 1280, height: 900 } });
const predictions = JSON.parse(readFileSync(predictions_file, "utf8")), images = readFileSync(images_file).subarray(16);
let largest = 0;
for (const [index, expected] of predictions.slice(0, 10).entries()) {
  const pixels = Array.from(images.subarray(784 * index, 784 * (index + 1)), byte => byte / 255);
  // The same weights drawn as on the desktop.
  const found = await page.evaluate(values => circulant.predict(Float32Array.from(values), 16, 0, 1, 1), pixels);
  expected.probabilities.forEach((p, k) => { largest = Math.max(largest, Math.abs(p - found.p[k])); });
  assert.equal(found.class, expected.class);
}
console.log(`ten images: the largest difference of a probability is ${largest.toExponential(2)}`);
assert(largest < Number(process.env.TOLERANCE ?? 1e-5));

const milliseconds = await page.evaluate(values => {
  const image = Float32Array.from(values), times = [];
  for (let i = 0; i < 60; i++) { const begin = performance.now(); circulant.predict(image, 16); times.push(performance.now() - begin); }
  return times.sort((a, b) => a - b)[30];
}, Array.from(images.subarray(0, 784), byte => byte / 255));
console.log(`16 networks: ${milliseconds.toFixed(2)} ms`);
assert(milliseconds < Number(process.env.MILLISECONDS ?? 5));

// Draw a one: the bars follow.
await page.click("#clear");
const box = await page.locator("#pad").boundingBox();
await page.mouse.move(box.x + box.width * 0.52, box.y + box.height * 0.2);
await page.mouse.down();
await page.mouse.move(box.x + box.width * 0.48, box.y + box.height * 0.8, { steps: 12 });
await page.mouse.up();
await page.waitForTimeout(700);
const drawn = await page.textContent("#class");
console.log(`a drawn stroke is read as ${drawn}`);
assert.equal(drawn, "1");
// By keyboard: a cleared pad, a few dots.
await page.focus("#pad");
await page.keyboard.press("Delete");
await page.waitForTimeout(700);
assert.equal(await page.textContent("#class"), "?");
for (let i = 0; i < 6; i++) { await page.keyboard.press("Space"); await page.keyboard.press("ArrowDown"); }
await page.waitForTimeout(700);
assert.notEqual(await page.textContent("#class"), "?");
// Noise is often, not always, unlike the test images; so this is reported alone.
await page.click("[data-odd=noise]");
await page.waitForTimeout(700);
console.log(`noise: ${await page.textContent("#ood")}`);

mkdirSync(shots, { recursive: true });
for (const [name, options] of [
  ["desktop", { viewport: { width: 1200, height: 900 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1200, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true, isMobile: true, deviceScaleFactor: 2 }],
]) {
  const shown = await open(options);
  await shown.locator("#size").fill("45");
  await shown.waitForTimeout(300);
  const wide = await shown.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert(wide <= 0, `${name}: ${wide} pixels too wide`);
  await shown.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}
assert.deepEqual(problems, []);
await browser.close();
console.log("the page passed");
