#!/usr/bin/env node
// usage: look.mjs '{"prometheus": URL, "tempo": URL, "looks": [{"dashboard": FILE, "start": T, "end": T, "variables": {"run": "id"}, "theme": "dark", "then": "light", "width": N, "shot": FILE}]}'
// Draws dashboards of Perses in Chromium, each until its panels have drawn. Prints a JSON line for each look, in their order:
//   {"dashboard": FILE, "panels": [{"title": T, "drawn": true, "text": T, "error": null}], "then": [the same again], "errors": [what the page threw], "millis": [time of each theme]}
// `drawn` means that marks are visible: coloured pixels where a panel has a chart, else text that differs from its background.
// `text` is what a panel shows as text. `then` is a theme in which the same page is drawn again, from blank charts and without
// new queries. `start` is a duration such as 15m or, with `end`, milliseconds since 1970. Of a look only `dashboard` is required.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { startServer } from './server.mjs';

const home = path.dirname(fileURLToPath(import.meta.url));
// How long one page may take until the last panel has drawn, and how long a panel without marks is waited for.
const deadlineMillis = 300_000;
const patienceMillis = 6_000;

const { prometheus, tempo, looks } = JSON.parse(process.argv[2]);
const backends = { prometheus, ...(tempo && { tempo }) };
const server = await startServer(home, backends, looks.map(({ dashboard }) => withOpenRows(dashboard)));
const browser = await chromium.launch({
  executablePath: fs.readFileSync(path.join(home, 'browser'), 'utf8').trim(),
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
try {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  for (const [index, look] of looks.entries()) console.log(JSON.stringify(await draw(context, index, look)));
} finally {
  await browser.close();
  server.close();
}

/** Draws one dashboard and reports its panels. */
async function draw(context, index, { dashboard, start, end, variables = {}, theme = 'light', then, width = 1500, shot }) {
  const [page, began] = [await context.newPage(), Date.now()];
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error.stack ?? error)));
  const query = new URLSearchParams({ theme });
  if (start !== undefined) query.set('start', start);
  if (end !== undefined) query.set('end', end);
  for (const [name, value] of Object.entries(variables)) query.set(`var-${name}`, [value].flat().join(','));
  // A panel queries when it comes into sight, so the window is made as high as the page.
  await page.setViewportSize({ width, height: 1000 });
  await page.goto(`${server.url}/${index}?${query}`);
  await page.waitForSelector('[data-testid=panel]', { timeout: deadlineMillis });
  const height = await page.evaluate('document.documentElement.scrollHeight');
  await page.setViewportSize({ width, height: Math.min(Math.max(height, 600), 16_000) });
  const panels = await drawnPanels(page);
  const millis = [Date.now() - began];
  if (shot) await page.screenshot({ path: shot });
  const [switched, again] = [Date.now(), then && (await drawnAgain(page, then))];
  if (then) millis.push(Date.now() - switched);
  await page.close();
  return { dashboard, panels, ...(again && { then: again }), errors, millis };
}

/** Changes the theme of a page with blank charts, so that old marks do not count, and lists the panels when they have drawn. */
async function drawnAgain(page, theme) {
  await page.evaluate((theme) => {
    for (const chart of document.querySelectorAll('[data-testid=panel] canvas')) {
      chart.getContext('2d').clearRect(0, 0, chart.width, chart.height);
    }
    window.setTheme(theme);
  }, theme);
  const hasBackground = (dark) => {
    const parts = getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3);
    return parts.every((part) => Number(part) < 100) === dark;
  };
  await page.waitForFunction(hasBackground, theme === 'dark', { timeout: deadlineMillis });
  return drawnPanels(page);
}

/** Waits until every panel has marks or an error, or nothing changes any more, and lists the panels. */
async function drawnPanels(page) {
  const end = Date.now() + deadlineMillis;
  let [last, since] = ['', Date.now()];
  // Reading pixels is slow, so charts with marks are read again only at the end.
  let seen = [];
  for (;;) {
    const panels = await page.evaluate(readPanels, seen);
    const text = JSON.stringify(panels);
    const [same, now] = [text === last, Date.now()];
    if (!same) [last, since] = [text, now];
    const loading = panels.some((panel) => panel.loading);
    const complete = same && panels.every((panel) => panel.drawn || panel.error);
    seen = panels.map((panel) => panel.drawn);
    if (!loading && (complete || now - since > patienceMillis)) {
      const final = await page.evaluate(readPanels, []);
      return final.map(({ title, drawn, text, error }) => ({ title, drawn, text, error }));
    }
    if (now > end) throw new Error(`after ${deadlineMillis} ms these panels still load: ${text}`);
    await new Promise((done) => setTimeout(done, 400));
  }
}

/** Runs in the page: what each panel shows now. The charts of panels in `seen` have had marks. */
function readPanels(seen) {
  // Axes, grids and empty gauges are grey; marks have a colour.
  const hasMarks = (canvas) => {
    if (!canvas.width || !canvas.height) return false;
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length && count < 20; at += 4) {
      const [red, green, blue, alpha] = [data[at], data[at + 1], data[at + 2], data[at + 3]];
      if (alpha > 60 && Math.max(red, green, blue) - Math.min(red, green, blue) > 30) count += 1;
    }
    return count >= 20;
  };
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.5) return color;
    }
    return [255, 255, 255];
  };
  const contrast = (element) => {
    const [text, behind] = [parts(getComputedStyle(element).color), background(element)];
    return Math.max(...[0, 1, 2].map((at) => Math.abs(text[at] - behind[at])));
  };
  const isReadable = (body) => {
    const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.data.trim() && contrast(node.parentElement) > 80) return true;
    }
    return false;
  };
  return [...document.querySelectorAll('[data-testid=panel]')].map((panel, index) => {
    const title = document.getElementById(panel.getAttribute('aria-labelledby'))?.innerText ?? panel.innerText.split('\n')[0];
    const body = panel.querySelector('.MuiCardContent-root') ?? panel;
    const error = panel.querySelector('[role=alert]')?.innerText ?? null;
    const text = body.innerText.replace(/\s+/g, ' ').trim();
    const charts = [...panel.querySelectorAll('canvas')];
    const visible = charts.length > 0 ? seen[index] || charts.some(hasMarks) : text !== '' && !/^No (data|traces)/.test(text) && isReadable(body);
    const drawn = error === null && visible;
    const loading = panel.querySelector('[role=progressbar], .MuiSkeleton-root') !== null;
    return { title, drawn, text, error, loading };
  });
}

/** Reads a dashboard with its rows unfolded and without refreshes, which would begin anew what is being waited for. */
function withOpenRows(file) {
  const dashboard = JSON.parse(fs.readFileSync(file));
  for (const { spec } of dashboard.spec.layouts) if (spec.display?.collapse) spec.display.collapse.open = true;
  return { ...dashboard, spec: { ...dashboard.spec, refreshInterval: '0s' } };
}
