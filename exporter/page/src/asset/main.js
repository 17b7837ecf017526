// Puts the page together and keeps it up to date.

const body = $("body");
let sections = null;

const EMPTY = [
  ["See a simulated job", "pulsetrain demo"],
  ["Run a trainer as it is", "pulsetrain run --listen 127.0.0.1:9464 -- python train.py"],
  ["Follow logs that are being written", "sources: {logs: {paths: ['runs/*/training.json']}} in pulsetrain.yaml"],
  ["Look at a finished run", "pulsetrain show training.json"],
];

function build() {
  const verdicts = h("div", { class: "verdicts", hidden: true }), tiles = h("div", { class: "tiles" });
  const empty = h("div", { class: "empty" }, h("h2", {}, "Waiting for a run"), h("p", {}, "Nothing has reported a training step yet. Curves appear here with the first telemetry of a run; this page need not be reloaded."), h("ul", {}, EMPTY.map(([text, command]) => h("li", {}, h("span", {}, text), h("code", {}, command)))));
  const charts = store.layout.sections.map(section => new ChartSection(section));
  const steps = new StepSection(), ranks = new RankSection(), gpus = new GpuSection(), goodput = new GoodputSection(), events = new EventSection(), metrics = new MetricSection(), telemetry = new TelemetrySection();
  const order = [charts[0], steps, ranks, gpus, goodput, ...charts.slice(1), events, metrics, telemetry];
  fill(body, empty, verdicts, tiles, ...order.map(section => section.element));
  sections = { verdicts, tiles, empty, charts, steps, ranks, gpus, goodput, events, metrics, telemetry, order };
}

let shownFor = "";

function drawBody() {
  if (!store.layout) return;
  if (!sections) build();
  const runs = store.selected.map(id => store.data.get(id)).filter(Boolean);
  const key = store.selected.join();
  if (shownFor !== key) {
    shownFor = key;
    view.range = null;
    sections.charts.forEach(section => section.clear());
    sections.metrics.clear();
  }
  sections.empty.hidden = store.runs.size > 0;
  // Without the number of any step there is only time.
  const curves = runs.flatMap(run => [...run.series.values()]);
  if (view.x === "step" && curves.length && !curves.some(series => series.s.some(step => step >= 0))) return setAxis("time");
  updateDomain(runs);
  drawVerdicts(sections.verdicts);
  drawTiles(sections.tiles);
  const marks = marksOf(runs);
  sections.charts.forEach(section => section.update(runs, marks));
  sections.steps.update(runs);
  sections.ranks.update(runs);
  sections.gpus.update(store.selected);
  sections.goodput.update(runs);
  sections.events.update(runs);
  sections.metrics.update(runs);
  sections.telemetry.update();
  drawTabs();
  document.documentElement.dataset.ready = String(runs.length);
}

function drawTabs() {
  const shown = sections.order.filter(section => !section.element.hidden), key = shown.map(section => section.element.id).join();
  if ($("tabs").dataset.key === key) return;
  $("tabs").dataset.key = key;
  fill($("tabs"), shown.map(section => h("a", { href: "#" + section.element.id }, section.element.getAttribute("aria-label"))));
}

let isQueued = false;
function queueAll() {
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(() => {
    isQueued = false;
    drawLive();
    drawRuns();
    drawHead();
    drawBody();
  });
}
store.listeners.add(queueAll);

// Ages go on although nothing arrives.
setInterval(() => { if (store.live && store.arrived) { drawLive(); drawHead(); if (sections) drawTiles(sections.tiles); } }, 1000);

function setAxis(axis) {
  view.x = axis;
  view.range = null;
  for (const button of document.querySelectorAll("[data-x]")) button.setAttribute("aria-pressed", String(button.dataset.x === axis));
  queueAll();
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  try { if (theme) localStorage.setItem("pulsetrain-theme", theme); } catch { /* A file has no storage in some browsers. */ }
  forgetColors();
  queueAll();
}

function moveRun(by) {
  const items = [...$("runs").children], at = items.findIndex(item => item.dataset.id === store.selected[0]);
  const next = items[Math.min(Math.max(at + by, 0), items.length - 1)];
  if (next && next.dataset.id !== store.selected[0]) { select([next.dataset.id]); next.scrollIntoView({ block: "nearest" }); next.focus({ preventScroll: true }); }
}

function openSide() { $("side").classList.add("open"); $("menu").setAttribute("aria-expanded", "true"); $("filter").focus(); }
function closeSide() { $("side").classList.remove("open"); $("menu").setAttribute("aria-expanded", "false"); }

const KEYS = [["↑ ↓  or  j k", "another run"], ["Space", "compare the run that has the focus"], ["/", "filter runs"], ["s  t", "axis of steps or of time"], ["l", "light or dark"], ["← →", "on a curve: move along it (with Shift: by ten)"], ["Esc", "whole range, close"], ["drag", "zoom into a part; double-click ends it"], ["?", "this help"]];

function showHelp() {
  fill($("helpbox"), h("h2", {}, "Keyboard"), h("dl", {}, KEYS.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])), h("form", { method: "dialog" }, h("button", { class: "chip" }, "Close")));
  $("helpbox").showModal();
}

document.addEventListener("keydown", event => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range";
  if (event.key === "Escape") { if (isTyping) event.target.blur(); closeSide(); view.range = null; redrawAll(); return; }
  if (isTyping || event.metaKey || event.ctrlKey || event.altKey || $("helpbox").open) return;
  const actions = { "/": () => { if (innerWidth <= 900) openSide(); $("filter").focus(); }, "?": showHelp, j: () => moveRun(1), k: () => moveRun(-1), ArrowDown: () => moveRun(1), ArrowUp: () => moveRun(-1), s: () => setAxis("step"), t: () => setAxis("time"), l: toggleTheme };
  if (event.key === " " && event.target.classList.contains("run")) { event.preventDefault(); toggleRun(event.target.dataset.id); return; }
  if (event.key === "Enter" && event.target.classList.contains("run")) { select([event.target.dataset.id]); return; }
  const isInList = event.target.closest && event.target.closest(".runs");
  if (event.key.startsWith("Arrow") && !isInList) return;
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
});

function toggleTheme() {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  setTheme(isDark ? "light" : "dark");
}

$("filter").addEventListener("input", drawRuns);
$("clear").addEventListener("click", () => select(store.selected.slice(0, 1)));
$("menu").addEventListener("click", () => $("side").classList.contains("open") ? closeSide() : openSide());
$("shade").addEventListener("click", closeSide);
$("help").addEventListener("click", showHelp);
$("theme").addEventListener("click", toggleTheme);
$("smooth").addEventListener("input", event => { view.smooth = Number(event.target.value); redrawAll(); });
$("window").addEventListener("change", event => { view.share = Number(event.target.value); view.range = null; queueAll(); });
for (const button of document.querySelectorAll("[data-x]")) button.addEventListener("click", () => setAxis(button.dataset.x));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", forgetColors);

try { setTheme(localStorage.getItem("pulsetrain-theme")); } catch { /* As above. */ }
setAxis("step");
drawLive();

const embedded = $("data").textContent.trim();
if (embedded) {
  readEmbedded(embedded).then(() => { const run = defaultRun(); select(run ? [run.id] : []); queueAll(); }, error => { fill(body, h("div", { class: "empty" }, h("h2", {}, "The data of this file cannot be read"), h("p", {}, `${error}; a browser of 2023 or later is needed.`))); });
} else {
  start();
}
