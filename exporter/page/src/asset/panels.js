// The sections of a run: charts, steps, ranks, GPUs, events, all metrics, telemetry of Pulsetrain itself.

/** The events that are marked on the curves. */
function marksOf(runs) {
  return runs.flatMap(run => run.events.map(event => {
    const level = event.kind ? (event.open ? (isSevere(event.kind) ? "bad" : "warn") : "") : event.severity >= 17 ? "bad" : event.severity >= 13 ? "warn" : "";
    if (event.kind && !event.open) return null;
    return { t: event.t, step: event.step, level, text: `${event.kind ? words(event.kind) : words(event.name)}${event.subject ? " · " + event.subject : ""}` };
  }).filter(Boolean)).concat(runs.flatMap(attemptMarks), runs.flatMap(rankMarks));
}

/** Where another rank continues the curves of a rank that has ended. */
function rankMarks(run) {
  const marks = new Map();
  for (const series of run.series.values()) {
    for (const change of series.changes) {
      const place = series.t.findIndex((_, place) => isChange(series, change, place));
      const text = `rank ${change[1]} continues`;
      if (place > 0 && !marks.has(text)) marks.set(text, { t: series.t[place], step: series.s[place] >= 0 ? series.s[place] : null, level: "", text });
    }
  }
  return [...marks.values()];
}

/** Where attempts begin. */
function attemptMarks(run) {
  const longest = [...run.series.values()].sort((a, b) => b.t.length - a.t.length)[0];
  if (!longest) return [];
  return longest.attempts.flatMap((attempt, place) => place && attempt !== longest.attempts[place - 1] ? [{ t: longest.t[place], step: longest.s[place] >= 0 ? longest.s[place] : null, level: "", text: `attempt ${attempt} begins` }] : []);
}

/** The curves of some metrics, of all selected runs. */
function curvesOf(runs, metrics) {
  const curves = [], isComparing = runs.length > 1;
  for (const run of runs) {
    for (const metric of metrics) {
      for (const series of seriesOf(run, metric)) {
        const definition = run.metrics[metric];
        series.kind = definition.kind;
        const name = labelText(series.label);
        const place = isComparing ? store.selected.indexOf(run.id) : curves.length;
        const within = isComparing ? curves.filter(curve => curve.run === run.id).length : 0;
        const short = metrics.filter(other => runs.some(run => seriesOf(run, other).length)).length > 1 ? shortName(metric, metrics) : "";
        curves.push({ run: run.id, series, metric, color: seriesColor(place), dash: within ? [5, 3] : null, label: [isComparing ? runLabel(store.runs.get(run.id) || run) : "", short, name].filter(Boolean).join(" · ") });
      }
    }
  }
  return curves;
}

/** The part of a metric's name that tells it from the others in a chart. */
function shortName(metric, metrics) {
  const own = metric.split("."), others = metrics.filter(other => other !== metric);
  const unique = own.filter(part => others.some(other => !other.split(".").includes(part)));
  return (unique.length ? unique : own.slice(1)).join(" ").replace(/_/g, " ");
}

const unitOf = definition => definition.kind === "rate" ? (definition.unit === "s" ? "1" : definition.unit + "/s") : definition.unit;

/** A section with charts that exist while there is data for them. */
class ChartSection {
  constructor(section) {
    this.section = section;
    this.panels = new Map();
    this.grid = h("div", { class: "grid" });
    this.element = h("section", { id: section.id, "aria-label": section.title }, h("h2", {}, section.title), this.grid);
  }

  update(runs, marks) {
    let place = 0;
    for (const panel of this.section.panels) {
      const metrics = panel.one ? panel.metrics.filter(metric => runs.some(run => seriesOf(run, metric).some(series => series.v.length))).slice(0, 1) : panel.metrics;
      const curves = curvesOf(runs, metrics).filter(curve => xColumn(curve.series).some(Number.isFinite));
      let chart = this.panels.get(panel.title);
      if (!curves.length) {
        if (chart) { chart.remove(); this.panels.delete(panel.title); }
        continue;
      }
      if (!chart) {
        const run = runs.find(run => run.metrics[curves[0].metric]), definition = run.metrics[curves[0].metric];
        chart = new Chart(panel.title, { unit: unitOf(definition), brief: `${definition.brief} (${curves.map(curve => curve.metric).filter((name, n, all) => all.indexOf(name) === n).join(", ")})` });
        this.panels.set(panel.title, chart);
      }
      if (this.grid.children[place] !== chart.element) this.grid.insertBefore(chart.element, this.grid.children[place] || null);
      place++;
      chart.show(curves, marks);
    }
    this.element.hidden = !this.panels.size;
  }

  clear() {
    for (const chart of this.panels.values()) chart.remove();
    this.panels.clear();
  }
}

/** Prepares a canvas for drawing in CSS pixels. */
function prepared(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  return { pen, width, height };
}

const phaseTitle = span => ((store.layout.phases.find(phase => phase.span === span) || {}).title) || span.replace(/^(perf|rl|train)\./, "").replace(/_/g, " ");

/** The color of a phase is the same in every run. */
function phaseColor(span) {
  const known = store.layout.phases.findIndex(phase => phase.span === span);
  const order = [5, 1, 6, 3, 7, 4, 2, 0, 4, 0, 2, 4, 3, 6];
  return known >= 0 ? seriesColor(order[known]) : seriesColor(7);
}

/** Phases of one rank's step: `[span, seconds]`, with what is in none of them. */
function phasesOf(run, step, place) {
  const flat = step.p[place] || [], list = [];
  let sum = 0;
  for (let at = 0; at < flat.length; at += 2) { list.push([run.phases[flat[at]], flat[at + 1] || 0]); sum += flat[at + 1] || 0; }
  const whole = step.d[place];
  if (whole && whole - sum > whole * 0.002) list.push(["", whole - sum]);
  return list;
}

/** The last steps as stacked bars, and what they consist of. */
class StepSection {
  constructor() {
    this.choice = h("select", { "aria-label": "Which ranks", onchange: () => this.update(this.runs) });
    this.canvas = h("canvas", { role: "img" });
    this.keys = h("div", { class: "keys" });
    this.stack = h("div", { class: "stack" });
    this.note = h("small");
    this.element = h("section", { id: "steps", "aria-label": "Steps" }, h("h2", {}, "Where the step goes ", this.note),
      h("div", { class: "split" },
        h("figure", { class: "panel" }, h("figcaption", {}, h("h3", {}, "Last steps"), h("span", { class: "panel-value" }, this.choice)), h("div", { class: "canvas", style: "height:230px" }, this.canvas)),
        h("figure", { class: "panel" }, h("figcaption", {}, h("h3", {}, "Share of the step")), this.stack, this.keys)));
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  update(runs) {
    this.runs = runs;
    const run = this.run = runs[0];
    this.steps = run ? stepsOf(run).filter(step => step.d.some(Boolean)).slice(-60) : [];
    this.element.hidden = !this.steps.length || runs.length > 1;
    if (this.element.hidden) return;
    const ranks = [...new Set(this.steps.flatMap(step => step.r))].sort((a, b) => a - b);
    const wanted = [["mean", ranks.length > 1 ? `Mean of ${ranks.length} ranks` : `Rank ${ranks[0]}`], ...(ranks.length > 1 ? [["slowest", "Slowest rank"], ...ranks.map(rank => [String(rank), `Rank ${rank}`])] : [])];
    const key = JSON.stringify(wanted);
    if (this.choice.dataset.key !== key) {
      this.choice.dataset.key = key;
      const before = this.choice.value;
      fill(this.choice, wanted.map(([value, text]) => h("option", { value }, text)));
      if (wanted.some(([value]) => value === before)) this.choice.value = before;
    }
    this.choice.hidden = ranks.length < 2;
    this.bars = this.steps.map(step => this.barOf(step)).filter(bar => bar.total > 0);
    this.draw();
    this.drawKeys();
  }

  /** The phases of a step for the chosen ranks. */
  barOf(step) {
    const choice = this.choice.value;
    let places = step.r.map((_, place) => place).filter(place => step.d[place]);
    if (choice === "slowest") places = places.sort((a, b) => ownTime(this.run, step, b) - ownTime(this.run, step, a)).slice(0, 1);
    else if (choice !== "mean" && choice) places = places.filter(place => String(step.r[place]) === choice);
    const sums = new Map();
    for (const place of places) for (const [span, seconds] of phasesOf(this.run, step, place)) sums.set(span, (sums.get(span) || 0) + seconds / places.length);
    const order = store.layout.phases.map(phase => phase.span);
    const list = [...sums].sort((a, b) => (order.indexOf(a[0]) + 1 || 99) - (order.indexOf(b[0]) + 1 || 99));
    return { step, rank: places.length === 1 ? step.r[places[0]] : null, list, total: list.reduce((sum, [, seconds]) => sum + seconds, 0) };
  }

  draw() {
    if (!this.bars || !this.canvas.clientWidth) return;
    const { pen, width, height } = prepared(this.canvas), theme = colors();
    const high = Math.max(...this.bars.map(bar => bar.total)) * 1.05 || 1, left = 52, bottom = height - 18, top = 6;
    const marks = ticks(0, high, 5), y = seconds => bottom - seconds / high * (bottom - top);
    pen.strokeStyle = theme.grid; pen.fillStyle = theme.text; pen.textAlign = "right"; pen.textBaseline = "middle";
    for (const mark of marks) {
      const at = Math.round(y(mark)) + 0.5;
      pen.beginPath(); pen.moveTo(left, at); pen.lineTo(width, at); pen.stroke();
      pen.fillText(axisLabel(mark, "s", marks), left - 6, at);
    }
    const slot = (width - left - 4) / Math.max(this.bars.length, 12), size = Math.max(1, slot - (slot > 6 ? 2 : 0.5));
    this.hits = [];
    this.bars.forEach((bar, place) => {
      const x = left + 2 + place * slot;
      let at = 0;
      for (const [span, seconds] of bar.list) {
        pen.fillStyle = span ? phaseColor(span) : theme.grid;
        const a = y(at + seconds);
        pen.fillRect(x, a, size, y(at) - a);
        at += seconds;
      }
      this.hits.push([x, x + slot, bar]);
    });
    pen.fillStyle = theme.text; pen.textBaseline = "alphabetic"; pen.textAlign = "center";
    const every = Math.ceil(this.bars.length / Math.max(2, (width - left) / 64));
    this.bars.forEach((bar, place) => { if (place % every === 0) pen.fillText(bar.step.n.toLocaleString("en-US"), left + 2 + place * slot + size / 2, height - 4); });
    this.canvas.setAttribute("aria-label", `Last ${this.bars.length} steps by phase; the last took ${show(this.bars[this.bars.length - 1].total, "s")}`);
  }

  drawKeys() {
    const sums = new Map();
    let total = 0;
    for (const bar of this.bars) for (const [span, seconds] of bar.list) { if (!sums.has(span)) sums.set(span, []); sums.get(span).push(seconds); total += seconds; }
    const rows = [...sums].map(([span, list]) => [span, list, list.reduce((a, b) => a + b, 0)]);
    fill(this.stack, rows.map(([span, , sum]) => h("i", { style: `width:${sum / total * 100}%;background:${span ? phaseColor(span) : "var(--grid)"}`, title: span ? phaseTitle(span) : "other" })));
    fill(this.keys, rows.flatMap(([span, list, sum]) => [h("i", { style: `background:${span ? phaseColor(span) : "var(--faint)"}` }), h("b", { style: "font-weight:500" }, span ? phaseTitle(span) : "other"), h("span", {}, show(median(list), "s", 3)), h("span", {}, show(sum / total, "1", 3))]));
    const times = this.bars.map(bar => bar.total);
    setText(this.note, `last ${this.bars.length} steps · median ${show(median(times), "s", 3)} · slowest ${show(Math.max(...times), "s", 3)} at step ${this.bars[times.indexOf(Math.max(...times))].step.n.toLocaleString("en-US")}`);
  }

  point(event) {
    const hit = (this.hits || []).find(([from, to]) => event.offsetX >= from && event.offsetX < to);
    if (!hit) return hideTip();
    const bar = hit[2];
    showTip(event, h("div", { class: "tip-when" }, `step ${bar.step.n.toLocaleString("en-US")}${bar.rank === null ? "" : " · rank " + bar.rank} · ${show(bar.total, "s", 4)}`),
      ...bar.list.map(([span, seconds]) => h("div", {}, h("i", { style: `background:${span ? phaseColor(span) : "var(--faint)"}` }), h("span", {}, span ? phaseTitle(span) : "other"), h("b", {}, show(seconds, "s", 3)))));
  }
}

/** The time of a rank's step without its largest wait: the phase that hides the slowness of others is backward. */
function ownTime(run, step, place) {
  const list = phasesOf(run, step, place), forward = list.find(([span]) => /forward$/.test(span));
  return forward ? forward[1] : step.d[place] || 0;
}

/** Ranks: a strip of heat, and a table. */
class RankSection {
  constructor() {
    this.choice = h("select", { "aria-label": "What is compared", onchange: () => { this.chosen = this.choice.value; this.update(this.runs); } });
    this.canvas = h("canvas", { role: "img" });
    this.scale = h("span", { class: "scale" }, "median", h("i"), "twice as long");
    this.holder = h("div", { class: "canvas" }, this.canvas);
    this.head = h("tr"); this.rows = h("tbody");
    this.sort = { column: "rank", down: false };
    this.note = h("small");
    this.element = h("section", { id: "ranks", "aria-label": "Ranks" }, h("h2", {}, "Ranks ", this.note),
      h("div", { class: "split" },
        h("figure", { class: "panel" }, h("figcaption", {}, h("h3", {}, "Against the median of the step"), this.scale, this.choice), this.holder),
        h("figure", { class: "panel" }, h("div", { class: "tablebox" }, h("table", {}, h("thead", {}, this.head), this.rows)))));
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  update(runs) {
    this.runs = runs;
    const run = this.run = runs[0], ranks = run ? run.ranks.filter(rank => rank.rank !== null) : [];
    this.element.hidden = runs.length !== 1 || ranks.length < 2;
    if (this.element.hidden) return;
    this.ranks = ranks;
    this.steps = stepsOf(run).filter(step => step.d.some(Boolean)).slice(-120);
    const spans = run.phases.filter(span => this.steps.some(step => step.p.some(flat => flat.some((value, at) => at % 2 === 0 && run.phases[value] === span))));
    const options = [["", "Whole step"], ...spans.map(span => [span, words(phaseTitle(span))])];
    const key = JSON.stringify(options);
    if (this.choice.dataset.key !== key) { this.choice.dataset.key = key; fill(this.choice, options.map(([value, text]) => h("option", { value }, text))); }
    this.measure = this.chosen !== undefined ? this.chosen : this.widest(spans);
    if (this.choice.value !== this.measure) this.choice.value = this.measure;
    setText(this.note, `${ranks.length}${store.runs.get(run.id) && store.runs.get(run.id).world > ranks.length ? " of " + store.runs.get(run.id).world : ""} report`);
    this.holder.style.height = `${Math.min(420, Math.max(110, ranks.length * (ranks.length > 24 ? 6.5 : 18) + 26))}px`;
    this.draw();
    this.table();
  }

  /** The phase in which ranks differ most, for it shows who is slow. Backward hides waits for others. */
  widest(spans) {
    let best = "", most = 0.05;
    for (const span of spans.filter(span => !/backward$|sync/.test(span))) {
      const ratio = median(this.steps.slice(-30).map(step => {
        const list = step.r.map((_, place) => this.seconds(step, place, span)).filter(Number.isFinite);
        return list.length > 1 ? (Math.max(...list) - median(list)) / median(step.d) : NaN;
      }));
      if (ratio > most) { most = ratio; best = span; }
    }
    return best;
  }

  seconds(step, place, span) {
    if (!span) return step.d[place] || NaN;
    const flat = step.p[place] || [];
    for (let at = 0; at < flat.length; at += 2) if (this.run.phases[flat[at]] === span) return flat[at + 1];
    return NaN;
  }

  draw() {
    if (!this.steps || !this.canvas.clientWidth) return;
    const { pen, width, height } = prepared(this.canvas), theme = colors();
    const left = 34, bottom = height - 18, rowHeight = (bottom - 2) / this.ranks.length, columns = Math.max(this.steps.length, 20), slot = (width - left) / columns;
    const rowOf = new Map(this.ranks.map((rank, row) => [rank.rank, row]));
    this.grid = { left, rowHeight, slot, bottom };
    this.steps.forEach((step, column) => {
      const list = step.r.map((_, place) => this.seconds(step, place, this.measure)), middle = median(list);
      step.r.forEach((rank, place) => {
        const row = rowOf.get(rank);
        if (row === undefined || !Number.isFinite(list[place])) return;
        pen.fillStyle = heat(list[place] / middle);
        pen.fillRect(left + column * slot, row * rowHeight, slot + 0.35 - (slot > 5 ? 1 : 0), Math.max(1, rowHeight - (rowHeight > 8 ? 1.5 : 0.4)));
      });
    });
    pen.fillStyle = theme.text; pen.textAlign = "right"; pen.textBaseline = "middle";
    const every = Math.max(1, Math.ceil(13 / rowHeight));
    this.ranks.forEach((rank, row) => { if (row % every === 0) pen.fillText(String(rank.rank), left - 6, (row + 0.5) * rowHeight); });
    pen.textBaseline = "alphabetic"; pen.textAlign = "center";
    const labels = Math.ceil(columns / Math.max(2, width / 80));
    this.steps.forEach((step, column) => { if (column % labels === 0) pen.fillText(step.n.toLocaleString("en-US"), left + (column + 0.5) * slot, height - 4); });
    this.scale.querySelector("i").style.background = `linear-gradient(90deg, ${[0, .25, .5, .75, 1].map(part => heat(1 + part)).join(",")})`;
    this.canvas.setAttribute("aria-label", `${this.ranks.length} ranks over ${this.steps.length} steps; slower than the median is brighter`);
  }

  columns() {
    const metrics = store.layout.ranks.filter(column => this.ranks.some(rank => rank.values.some(value => value.metric === column.metric)));
    return [["rank", "Rank", "Number of the rank in the job"], ["host", "Host", "Host, and the rank on it"], ["own", this.measure ? words(phaseTitle(this.measure)) : "Step", "Median of the last steps"], ["ratio", "vs median", "Against the median of all ranks"],
      ...metrics.filter(column => column.title !== "Step time").map(column => [column.metric, column.title, column.brief]), ["last", "Last seen", "Time since the newest telemetry of the rank"]];
  }

  table() {
    const run = this.run, columns = this.columns();
    const values = this.ranks.map(rank => {
      const list = this.steps.slice(-40).map(step => { const place = step.r.indexOf(rank.rank); return place < 0 ? NaN : this.seconds(step, place, this.measure); });
      const row = { rank: rank.rank, host: rank.host + (rank.local === null ? "" : ":" + rank.local), own: median(list), last: rank.last, ended: rank.ended, of: rank };
      for (const value of rank.values) if (row[value.metric] === undefined) row[value.metric] = value.latest;
      return row;
    });
    const middle = median(values.map(row => row.own));
    values.forEach(row => { row.ratio = row.own / middle; });
    const { column, down } = this.sort;
    values.sort((a, b) => { const order = typeof a[column] === "string" ? a[column].localeCompare(b[column]) : (Number.isFinite(a[column]) ? a[column] : -Infinity) - (Number.isFinite(b[column]) ? b[column] : -Infinity); return (down ? -order : order) || a.rank - b.rank; });
    if (this.head.dataset.key !== columns.map(([id, title]) => id + title).join()) {
      this.head.dataset.key = columns.map(([id, title]) => id + title).join();
      fill(this.head, columns.map(([id, title, brief]) => h("th", { title: brief }, h("button", { type: "button", onclick: () => { this.sort = { column: id, down: this.sort.column === id ? !this.sort.down : id !== "rank" && id !== "host" }; this.table(); } }, title))));
    }
    [...this.head.children].forEach((cell, place) => cell.setAttribute("aria-sort", columns[place][0] === column ? (down ? "descending" : "ascending") : "none"));
    const newest = Math.max(...values.map(row => row.last));
    const marked = new Set(run.open.map(event => event.rank).filter(rank => rank !== null));
    fill(this.rows, values.map(row => h("tr", { class: marked.has(row.rank) ? "marked" : "" }, columns.map(([id]) => {
      if (id === "rank") return h("td", {}, h("b", {}, String(row.rank)));
      if (id === "host") return h("td", { class: "left muted" }, row.host || "–");
      if (id === "own") return h("td", {}, Number.isFinite(row.own) ? show(row.own, "s", 3) : "–");
      if (id === "ratio") return h("td", { class: row.ratio > 1.4 ? "bad" : row.ratio > 1.15 ? "warn" : "" }, Number.isFinite(row.ratio) ? "×" + row.ratio.toFixed(2) : "–");
      if (id === "last") { const late = ((store.live ? serverNow() : newest) - row.last) / 1000; return h("td", { class: !row.ended && newest - row.last > 30000 ? "bad" : "muted" }, row.ended ? "ended" : row.last ? duration(late) : "–"); }
      const column = store.layout.ranks.find(column => column.metric === id), isLow = id === store.layout.straggler && row[id] < 0.8;
      return h("td", { class: isLow ? "warn" : "" }, row[id] === undefined ? "–" : show(row[id], column.unit === "1" ? "" : column.unit, 3));
    }))));
  }

  point(event) {
    const { left, rowHeight, slot } = this.grid || {}, step = this.steps && this.steps[Math.floor((event.offsetX - left) / slot)], rank = this.ranks && this.ranks[Math.floor(event.offsetY / rowHeight)];
    const place = step && rank ? step.r.indexOf(rank.rank) : -1;
    if (place < 0) return hideTip();
    const list = step.r.map((_, other) => this.seconds(step, other, this.measure)), middle = median(list);
    showTip(event, h("div", { class: "tip-when" }, `step ${step.n.toLocaleString("en-US")} · rank ${rank.rank}${rank.host ? " · " + rank.host : ""}`), h("div", {}, h("span", {}, this.measure ? phaseTitle(this.measure) : "step"), h("b", {}, `${show(list[place], "s", 3)} (×${(list[place] / middle).toFixed(2)})`)), ...phasesOf(this.run, step, place).map(([span, seconds]) => h("div", {}, h("i", { style: `background:${span ? phaseColor(span) : "var(--faint)"}` }), h("span", {}, span ? phaseTitle(span) : "other"), h("b", {}, show(seconds, "s", 3)))));
  }
}

/** The color of a time that is so many times the median: calm until 1.1, then ever warmer. */
function heat(ratio) {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  const part = Math.min(1, Math.max(0, (ratio - 1.04) / 0.96));
  if (ratio < 0.93) return isDark ? "#1f5560" : "#b9e3e0";
  const stops = isDark ? [[30, 42, 52], [122, 84, 26], [222, 110, 40], [255, 96, 84]] : [[226, 234, 240], [252, 211, 128], [244, 137, 62], [205, 38, 30]];
  const at = Math.sqrt(part) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at)), rest = at - low;
  return `rgb(${stops[low].map((value, place) => Math.round(value + (stops[low + 1][place] - value) * rest)).join(",")})`;
}

/** Whether a curve is worth its place. */
function varies(values) {
  const finite = values.filter(Number.isFinite);
  return finite.length > 4 && Math.max(...finite) - Math.min(...finite) > 0.02 * Math.abs(Math.max(...finite));
}

/** GPUs: a table with small curves. */
class GpuSection {
  constructor() {
    this.rows = h("tbody");
    this.head = h("tr");
    this.note = h("small");
    this.element = h("section", { id: "gpus", "aria-label": "GPUs" }, h("h2", {}, "GPUs ", this.note), h("figure", { class: "panel" }, h("div", { class: "tablebox" }, h("table", {}, h("thead", {}, this.head), this.rows))));
  }

  update(ids) {
    const of = [...store.gpus.values()].filter(gpu => !ids.length || !gpu.run || ids.includes(gpu.run));
    this.element.hidden = !of.length;
    if (!of.length) return;
    of.sort((a, b) => a.host.localeCompare(b.host) || (a.rank ?? 1e9) - (b.rank ?? 1e9) || (a.index ?? 0) - (b.index ?? 0));
    const models = [...new Set(of.map(gpu => gpu.model).filter(Boolean))];
    setText(this.note, `${of.length}${models.length === 1 ? " × " + models[0] : ""}`);
    const columns = store.layout.gpus.filter(column => of.some(gpu => gpu.values.some(value => value.metric === column.metric && (value.latest !== 0 || value.unit !== "{state}"))));
    fill(this.head, h("th", {}, "GPU"), h("th", { class: "left" }, "Host"), h("th", {}, "Rank"), columns.map(column => h("th", { title: column.brief }, column.title)));
    fill(this.rows, of.map(gpu => h("tr", {}, h("td", { title: gpu.id }, h("b", {}, gpu.index === null ? gpu.id.slice(0, 12) : String(gpu.index)), models.length > 1 ? h("span", { class: "muted" }, " " + gpu.model) : ""), h("td", { class: "left muted" }, gpu.host || "–"), h("td", {}, gpu.rank === null ? "–" : String(gpu.rank)), columns.map(column => this.cell(gpu, column)))));
  }

  cell(gpu, column) {
    const all = gpu.values.filter(value => value.metric === column.metric);
    if (!all.length) return h("td", { class: "muted" }, "–");
    if (column.unit === "{state}") {
      const active = all.filter(value => value.latest > 0).map(value => labelText(value.label)).filter(name => name !== "none" && name !== "idle");
      return h("td", {}, active.length ? active.map(name => h("span", { class: "reason " + (/thermal|hw|lost|brake/.test(name) ? "bad" : "") }, words(name))) : h("span", { class: "muted" }, "no"));
    }
    if (column.unit === "{error}") {
      const sum = all.reduce((sum, value) => sum + (Number(value.latest) || 0), 0);
      return h("td", { class: sum ? "bad" : "muted", title: all.map(value => `${labelText(value.label)}: ${value.latest}`).join("\n") }, sum ? `${sum} (${all.filter(value => value.latest > 0).map(value => labelText(value.label)).join(", ")})` : "0");
    }
    const value = all.find(value => value.label.endsWith("=" + column.prefer)) || all[0];
    const limits = column.limit ? gpu.values.filter(value => value.metric === column.limit) : [];
    const limit = limits.find(value => value.label.endsWith("=enforced")) || limits[0];
    const share = column.unit === "1" ? value.latest : limit && limit.latest ? value.latest / limit.latest : null;
    return h("td", { title: limit ? `of ${show(limit.latest, column.unit, 3)}` : "" }, h("span", { class: "cell" }, value.spark && !column.limit && varies(value.spark) ? sparkline(numbers(value.spark), 44, 18) : null, h("span", {}, value.ended ? h("span", { class: "reason bad" }, "no reading") : show(value.latest, column.unit, 3)), share === null || column.unit === "1" ? null : h("span", { class: "meter" }, h("i", { style: `width:${Math.min(100, share * 100)}%` }))));
  }
}

/** How wall time was used. */
class GoodputSection {
  constructor() {
    this.stack = h("div", { class: "stack" });
    this.keys = h("div", { class: "keys" });
    this.note = h("small");
    this.element = h("section", { id: "goodput", "aria-label": "Wall time" }, h("h2", {}, "Use of wall time ", this.note), h("figure", { class: "panel" }, this.stack, this.keys));
  }

  update(runs) {
    const list = runs.length === 1 ? seriesOf(runs[0], store.layout.wall_time).filter(series => series.latest > 0) : [];
    this.element.hidden = !list.length;
    if (!list.length) return;
    const isGood = series => /=productive/.test(series.label);
    list.sort((a, b) => isGood(b) - isGood(a) || b.latest - a.latest);
    const total = list.reduce((sum, series) => sum + series.latest, 0);
    const color = (series, place) => isGood(series) ? "var(--good)" : seriesColor([1, 3, 5, 4, 6, 7, 0][Math.max(0, place - 1) % 7]);
    const title = series => { const part = key => (series.label.split(", ").find(part => part.split("=")[0].endsWith(key)) || "").split("=")[1]; return words([part("bucket"), part("cause"), part("event")].filter(Boolean).join(": ")); };
    setText(this.note, `${duration(total)} in all · ${show(list.filter(isGood).reduce((sum, series) => sum + series.latest, 0) / total, "1", 3)} productive`);
    fill(this.stack, list.map((series, place) => h("i", { style: `width:${series.latest / total * 100}%;background:${color(series, place)}`, title: title(series) })));
    fill(this.keys, list.flatMap((series, place) => [h("i", { style: `background:${color(series, place)}` }), h("b", { style: "font-weight:500" }, title(series)), h("span", {}, duration(series.latest)), h("span", {}, show(series.latest / total, "1", 3))]));
  }
}

/** What happened. */
class EventSection {
  constructor() {
    this.list = h("ol", { class: "events" });
    this.note = h("small");
    this.element = h("section", { id: "events", "aria-label": "Events" }, h("h2", {}, "Verdicts and events ", this.note), h("figure", { class: "panel" }, this.list));
  }

  update(runs) {
    const events = runs.flatMap(run => run.events).sort((a, b) => b.t - a.t).slice(0, 200);
    this.element.hidden = !events.length;
    const key = events.length + ":" + (events[0] ? events[0].t + events[0].name + (events[0].end || "") : "") + runs.map(run => run.id);
    if (this.key === key) return;
    this.key = key;
    setText(this.note, `newest ${events.length}`);
    fill(this.list, events.map(event => {
      const level = event.kind ? (event.open ? (isSevere(event.kind) ? "bad" : "warn") : "good") : event.severity >= 17 ? "bad" : event.severity >= 13 ? "warn" : "";
      const title = event.kind ? words(event.kind) + (event.open ? "" : " resolved") : words(event.name.replace(/^(train|run)\./, "") || "message");
      const about = [event.subject, event.gpu && !event.subject ? event.gpu : "", event.end ? `took ${show((event.end - event.t) / 1000, "s", 3)}` : "", event.text].filter(Boolean).join(" · ");
      return h("li", {}, h("time", {}, clockTime(event.t, serverNow())), h("span", { class: "at" }, event.step === null ? "" : "step " + event.step.toLocaleString("en-US")), h("span", { class: "what " + level }, h("b", {}, title), about ? h("span", { class: "muted" }, " " + about) : ""));
    }));
  }
}

/** Every metric of the run, with a filter. */
class MetricSection {
  constructor() {
    this.input = h("input", { type: "search", placeholder: "Filter metrics", "aria-label": "Filter metrics", spellcheck: "false", oninput: () => this.update(this.runs, true) });
    this.grid = h("div", { class: "grid dense" });
    this.note = h("small");
    this.more = h("button", { type: "button", class: "link", onclick: () => { this.most += 60; this.update(this.runs, true); } }, "Show more");
    this.charts = new Map();
    this.most = 24;
    this.element = h("section", { id: "metrics", "aria-label": "All metrics" }, h("h2", {}, "All metrics ", this.note), h("div", { class: "row" }, this.input), this.grid, this.more);
  }

  update(runs) {
    this.runs = runs;
    const wanted = this.input.value.trim().toLowerCase(), names = new Set(runs.flatMap(run => [...run.byMetric.keys()]));
    const shown = [...names].sort().filter(name => !wanted || name.toLowerCase().includes(wanted) || runs.some(run => (run.metrics[name] || { brief: "" }).brief.toLowerCase().includes(wanted)));
    this.element.hidden = !names.size;
    setText(this.note, wanted ? `${shown.length} of ${names.size}` : String(names.size));
    const visible = shown.slice(0, this.most);
    this.more.hidden = shown.length <= this.most;
    for (const [name, chart] of this.charts) if (!visible.includes(name)) { chart.remove(); this.charts.delete(name); }
    visible.forEach((name, place) => {
      let chart = this.charts.get(name);
      const run = runs.find(run => run.metrics[name]);
      if (!chart) {
        chart = new Chart(name, { unit: unitOf(run.metrics[name]), brief: run.metrics[name].brief, small: true });
        this.charts.set(name, chart);
      }
      if (this.grid.children[place] !== chart.element) this.grid.insertBefore(chart.element, this.grid.children[place] || null);
      chart.show(curvesOf(runs, [name]).slice(0, 24), []);
    });
  }

  clear() {
    for (const chart of this.charts.values()) chart.remove();
    this.charts.clear();
  }
}

/** What Pulsetrain itself did: sinks, queues, losses. */
class TelemetrySection {
  constructor() {
    this.rows = h("tbody");
    this.note = h("p", { class: "muted", style: "margin:8px 0 0" });
    this.element = h("section", { id: "telemetry", "aria-label": "Telemetry" }, h("h2", {}, "Delivery of telemetry"), h("figure", { class: "panel" }, h("div", { class: "tablebox" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Sink"), h("th", {}, "Accepted"), h("th", {}, "Delivered"), h("th", {}, "In queue"), h("th", {}, "Dropped"), h("th", { class: "left" }, "State"))), this.rows)), this.note));
  }

  update() {
    const refused = (store.page.refused || []).reduce((sum, [, items]) => sum + items, 0);
    this.element.hidden = !store.sinks.length && !refused;
    // The page drops what it does not show, although its sink accepted it.
    const shown = { name: "this page", dropped: store.page.refused || [], error: "not shown here" };
    fill(this.rows, store.sinks.concat(refused ? shown : []).map(sink => {
      const lost = sink.dropped.reduce((sum, [, items]) => sum + items, 0);
      return h("tr", {}, h("td", {}, sink.name), [sink.accepted, sink.delivered, sink.queued].map(value => h("td", {}, value === undefined ? "–" : value.toLocaleString("en-US"))), h("td", { class: lost ? "bad" : "muted", title: sink.dropped.map(([reason, items]) => `${reason}: ${items}`).join("\n") }, lost ? `${lost.toLocaleString("en-US")} (${sink.dropped.map(([reason]) => reason).join(", ")})` : "0"), h("td", { class: "left " + (sink.error ? "bad" : "muted") }, sink.error || "works"));
    }));
    const page = store.page, texts = [];
    if (page.bytes) texts.push(`This page holds ${show(page.bytes, "By")} of at most ${show(page.limit, "By")}.`);
    if (page.runs_replaced) texts.push(`${page.runs_replaced} old runs made room for new ones.`);
    if (page.runs_thinned) texts.push("Runs that are silent for long lost some resolution.");
    setText(this.note, texts.join(" "));
  }
}
