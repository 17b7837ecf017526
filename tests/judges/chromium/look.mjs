#!/usr/bin/env node
// usage: look.mjs '{"url": URL, "until": EXPRESSION, "ask": [EXPRESSION...], "width": N, "height": N, "scheme": "dark", "full": true, "shot": FILE}'
//        and "first": [{"until": EXPRESSION, "done": FILE}...], "outage": true
// Opens a page in Chromium, waits until an expression is true, and prints {"errors": [...], "answers": [...]}: what the page
// printed as errors or threw, and the values of the expressions. Before that it waits for each expression of `first` and makes the
// file then. With `outage` the server may be away: what the browser itself prints of that is no error of the page. With `shot` it saves a picture, with `full` of the whole page.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const home = path.dirname(fileURLToPath(import.meta.url));
const { url, first = [], until = 'true', ask = [], outage = false, width = 1440, height = 1000, scheme = 'light', full = false, shot } = JSON.parse(process.argv[2]);

const browser = await chromium.launch({
  executablePath: fs.readFileSync(path.join(home, 'browser'), 'utf8').trim(),
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme, reducedMotion: 'reduce' });
  const errors = [];
  const isOutage = text => outage && text.startsWith('Failed to load resource: net::ERR_');
  page.on('console', message => { if (['error', 'warning'].includes(message.type()) && !isOutage(message.text())) errors.push(message.text()); });
  page.on('pageerror', error => errors.push(String(error.stack ?? error)));
  await page.goto(url);
  // Not `waitForFunction`: it evaluates in the page, whose policy forbids that.
  const reached = async condition => {
    for (const end = Date.now() + 50_000; !(await page.evaluate(condition));) {
      if (Date.now() > end) throw new Error(`waited in vain until ${condition}`);
      await new Promise(done => setTimeout(done, 50));
    }
  };
  for (const { until, done } of first) {
    await reached(until);
    fs.writeFileSync(done, '');
  }
  await reached(until);
  const answers = [];
  for (const expression of ask) answers.push(await page.evaluate(expression));
  if (full) {
    const tall = await page.evaluate('document.documentElement.scrollHeight');
    await page.setViewportSize({ width, height: Math.min(tall, 8000) });
  }
  // Two frames: charts are drawn in the frame after they came into sight.
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  if (shot) await page.screenshot({ path: shot });
  console.log(JSON.stringify({ errors, answers }));
} finally {
  await browser.close();
}
