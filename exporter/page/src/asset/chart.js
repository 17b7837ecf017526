// Curves on a canvas: strokes by attempt, gaps with marks where a value is not finite, a band where points are merged.
// All charts share their horizontal axis, its zoom and its cursor.

const view = { x: "step", range: null, share: 0, smooth: 0, hover: null, domain: [0, 1] };
const charts = new Set();

const seen = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const chart = entry.target.chart;
    chart.isSeen = entry.isIntersecting;
    if (chart.isSeen && chart.isStale) chart.queue();
  }
}, { rootMargin: "200px" });

let queued = null;
function redrawAll() {
  for (const chart of charts) chart.queue();
}

function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

let themeColors = null;
function colors() {
  if (!themeColors) {
    themeColors = { text: cssColor("--muted"), grid: cssColor("--grid"), strong: cssColor("--text"), bad: cssColor("--bad"), panel: cssColor("--panel"), warn: cssColor("--warn"), accent: cssColor("--accent"), series: Array.from({ length: 8 }, (_, n) => cssColor("--series-" + n)) };
  }
  return themeColors;
}
function forgetColors() { themeColors = null; redrawAll(); }

/** The color of the n-th series or run. */
const seriesColor = place => colors().series[place % 8];

/** Round numbers within a range. */
function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(size => size >= raw) || power * 10;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step * 1e-6 ? 0 : value);
  return found;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map(value => value * 1000);
function timeTicks(low, high, most) {
  const step = TIME_STEPS.find(size => (high - low) / size <= most) || 604800000 * Math.ceil((high - low) / 604800000 / most);
  const zone = new Date(low).getTimezoneOffset() * 60000, found = [];
  for (let value = Math.ceil((low - zone) / step) * step + zone; value <= high; value += step) found.push(value);
  return [found, step];
}

function tickTime(millis, step) {
  const date = new Date(millis);
  if (step >= 86400000) return date.toLocaleDateString("en-CA").slice(5);
  return date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: step < 60000 ? "2-digit" : undefined });
}

/** Whether a new stroke begins at a place: another attempt, steps that begin again, or another rank that continues the curve. */
function breaks(series, xs, place) {
  return place > 0 && (series.attempts[place] !== series.attempts[place - 1] || xs[place] < xs[place - 1] || series.changes.some(change => isChange(series, change, place)));
}

/** Whether the point at a place is the first one of another rank. */
const isChange = (series, [last], place) => place > 0 && series.t[place - 1] <= last && series.t[place] > last;

/** The column of the horizontal axis; a point without a step has that of the point before it. */
function xColumn(series) {
  if (view.x === "time") return series.t;
  if (series.xs && series.xs.length === series.s.length) return series.xs;
  let last = NaN;
  series.xs = series.s.map(step => (step >= 0 ? (last = step) : last));
  return series.xs;
}

/** The part of the axis that all charts show. */
function updateDomain(runs) {
  let low = Infinity, high = -Infinity;
  for (const run of runs) {
    for (const series of run.series.values()) {
      const xs = xColumn(series);
      if (xs.length < 2) continue;
      for (const x of xs) { if (x < low) low = x; if (x > high) high = x; }
    }
  }
  if (!(high > low)) { if (Number.isFinite(low)) high = low + 1; else { low = 0; high = 1; } }
  if (view.share > 0) low = high - (high - low) * view.share;
  view.domain = [low, high];
}

class Chart {
  constructor(title, options = {}) {
    this.title = title;
    this.options = options;
    this.series = [];
    this.marks = [];
    this.isLog = false;
    this.isSeen = false;
    this.canvas = h("canvas", { tabindex: "0", role: "img" });
    this.legend = h("div", { class: "legend" });
    this.number = h("div", { class: "panel-value" });
    this.logButton = h("button", { type: "button", class: "chip", title: "Logarithmic axis", "aria-pressed": "false", onclick: () => this.toggleLog() }, "log");
    const heading = h("h3", { title: options.brief || "" }, title);
    const wide = h("button", { type: "button", class: "chip", title: "Wide", "aria-label": "Show " + title + " wide", onclick: () => { this.element.classList.toggle("wide"); this.queue(); } }, "⤢");
    this.element = h("figure", { class: "panel " + (options.small ? "small" : "") },
      h("figcaption", {}, heading, h("span", { class: "panel-tools" }, this.logButton, wide), this.number), this.legend,
      h("div", { class: "canvas" }, this.canvas));
    this.canvas.chart = this;
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { if (!this.drag) this.leave(); });
    this.canvas.addEventListener("pointerdown", event => { if (event.pointerType === "mouse" && event.button === 0) { this.drag = [event.offsetX, event.offsetX]; this.canvas.setPointerCapture(event.pointerId); } });
    this.canvas.addEventListener("pointerup", () => this.endDrag());
    this.canvas.addEventListener("dblclick", () => { view.range = null; redrawAll(); });
    this.canvas.addEventListener("keydown", event => this.key(event));
    this.canvas.addEventListener("blur", () => this.leave());
    new ResizeObserver(() => this.queue()).observe(this.canvas);
    seen.observe(this.canvas);
    charts.add(this);
  }

  remove() {
    charts.delete(this);
    seen.unobserve(this.canvas);
    this.element.remove();
  }

  toggleLog() {
    this.isLog = !this.isLog;
    this.logButton.setAttribute("aria-pressed", String(this.isLog));
    this.queue();
  }

  /** Shows these curves: `{ series, label, color, dash }`. */
  show(curves, marks) {
    this.series = curves;
    this.marks = marks || [];
    this.queue();
  }

  queue() {
    this.isStale = true;
    if (!this.isSeen) return;
    if (queued) { queued.add(this); return; }
    queued = new Set([this]);
    requestAnimationFrame(() => {
      const now = queued;
      queued = null;
      for (const chart of now) chart.draw();
    });
  }

  range() { return view.range || view.domain; }

  /** The lowest and highest value that is shown. */
  bounds(from, to) {
    let low = Infinity, high = -Infinity;
    for (const { series } of this.series) {
      const xs = xColumn(series);
      for (let place = 0; place < xs.length; place++) {
        if (!(xs[place] >= from && xs[place] <= to)) continue;
        const a = series.lo[place], b = series.hi[place];
        if (a < low && (!this.isLog || a > 0)) low = a;
        if (b > high && Number.isFinite(b)) high = b;
      }
    }
    if (low === Infinity) return null;
    if (this.isLog) return [low / 1.15, Math.max(high * 1.15, low * 1.3)];
    const room = (high - low) * 0.07 || Math.abs(high) * 0.1 || 1;
    const floor = low >= 0 && low - room < 0 ? 0 : low - room;
    return [floor, high + room];
  }

  draw() {
    this.isStale = false;
    const canvas = this.canvas, ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d"), theme = colors();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    const [from, to] = this.range(), bounds = this.bounds(from, to);
    const unit = this.options.unit || "";
    this.describe();
    if (!bounds) {
      pen.fillStyle = theme.text;
      pen.textAlign = "center";
      const isBad = this.series.some(({ series }) => series.bad.some(Boolean));
      pen.fillText(isBad ? "No finite value" : "No points in this part", width / 2, height / 2);
      if (!isBad) return;
    }
    const [low, high] = bounds || [0, 1];
    const scale = this.isLog ? Math.log : value => value;
    const marks = this.isLog ? logTicks(low, high) : ticks(low, high, Math.max(2, Math.floor(height / 38)));
    const labels = marks.map(mark => axisLabel(mark, unit, marks));
    const left = Math.min(90, 10 + Math.max(...labels.map(label => pen.measureText(label).width))), right = width - 8, top = 8, bottom = height - 20;
    const box = this.box = { left, right, top, bottom };
    const x = value => left + (value - from) / (to - from || 1) * (right - left);
    const y = value => bottom - (scale(value) - scale(low)) / (scale(high) - scale(low) || 1) * (bottom - top);
    pen.lineWidth = 1;
    pen.strokeStyle = theme.grid;
    pen.fillStyle = theme.text;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    if (bounds) marks.forEach((mark, place) => {
      const at = Math.round(y(mark)) + 0.5;
      pen.beginPath(); pen.moveTo(left, at); pen.lineTo(right, at); pen.stroke();
      pen.fillText(labels[place], left - 6, at);
    });
    this.drawBottom(pen, x, from, to, box);
    pen.save();
    pen.beginPath(); pen.rect(left, 0, right - left, height); pen.clip();
    this.drawMarks(pen, x, box, theme);
    if (bounds) for (const curve of this.series) this.drawCurve(pen, curve, x, y, from, to);
    for (const curve of this.series) this.drawBad(pen, curve, x, from, to, box, theme);
    this.drawHover(pen, x, y, box, theme);
    pen.restore();
    if (this.drag && Math.abs(this.drag[1] - this.drag[0]) > 3) {
      pen.fillStyle = theme.accent;
      pen.globalAlpha = 0.14;
      pen.fillRect(Math.min(...this.drag), top, Math.abs(this.drag[1] - this.drag[0]), bottom - top);
      pen.globalAlpha = 1;
    }
    this.drawLegend();
  }

  drawBottom(pen, x, from, to, box) {
    pen.textBaseline = "alphabetic";
    const most = Math.max(2, Math.floor((box.right - box.left) / 90));
    const [at, step] = view.x === "time" ? timeTicks(from, to, most) : [ticks(from, to, most).filter(Number.isInteger), 0];
    for (const value of at) {
      const label = view.x === "time" ? tickTime(value, step) : stepLabel(value, to - from);
      const place = x(value), half = pen.measureText(label).width / 2;
      pen.textAlign = place - half < box.left ? "left" : place + half > box.right ? "right" : "center";
      pen.fillText(label, Math.min(Math.max(place, box.left), box.right), box.bottom + 15);
    }
  }

  drawMarks(pen, x, box, theme) {
    for (const mark of this.marks) {
      const value = view.x === "time" ? mark.t : mark.step;
      if (value === null || value === undefined) continue;
      const at = Math.round(x(value)) + 0.5;
      if (at < box.left || at > box.right) continue;
      pen.strokeStyle = pen.fillStyle = mark.level === "bad" ? theme.bad : mark.level === "warn" ? theme.warn : theme.text;
      pen.globalAlpha = mark.level ? 0.6 : 0.35;
      pen.setLineDash([2, 3]);
      pen.beginPath(); pen.moveTo(at, box.top); pen.lineTo(at, box.bottom); pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 0.9;
      pen.beginPath();
      if (mark.level) { pen.moveTo(at - 4, box.top - 6); pen.lineTo(at + 4, box.top - 6); pen.lineTo(at, box.top + 1); } else pen.arc(at, box.top - 3, 2.2, 0, 7);
      pen.fill();
      pen.globalAlpha = 1;
    }
  }

  drawCurve(pen, curve, x, y, from, to) {
    const { series, color } = curve, xs = xColumn(series);
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineJoin = "round";
    // Merged points: from their lowest to their highest value.
    pen.globalAlpha = 0.18;
    pen.beginPath();
    let band = [];
    const close = () => {
      if (band.length > 1) {
        pen.moveTo(x(xs[band[0]]), y(series.hi[band[0]]));
        for (const place of band) pen.lineTo(x(xs[place]), y(series.hi[place]));
        for (const place of band.reverse()) pen.lineTo(x(xs[place]), y(this.isLog ? Math.max(series.lo[place], 1e-300) : series.lo[place]));
        pen.closePath();
      }
      band = [];
    };
    for (let place = 0; place < xs.length; place++) {
      const isBand = series.hi[place] > series.lo[place] && xs[place] >= from && xs[place] <= to;
      if (!isBand || breaks(series, xs, place)) close();
      if (isBand) band.push(place);
    }
    close();
    pen.fill();
    this.drawSpikes(pen, series, xs, x, y, from, to);
    const smooth = view.smooth > 0 && xs.length > 8;
    pen.globalAlpha = smooth ? 0.28 : 1;
    pen.lineWidth = smooth ? 1 : 1.6;
    if (curve.dash) pen.setLineDash(curve.dash);
    this.stroke(pen, series, xs, from, to, x, y, series.v);
    if (smooth) {
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      this.stroke(pen, series, xs, from, to, x, y, smoothed(series));
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
  }

  /** Draws a line from the lowest to the highest value of merged points that reach far beyond the others: a spike. */
  drawSpikes(pen, series, xs, x, y, from, to) {
    const spans = [];
    for (let place = 0; place < xs.length; place++) {
      if (series.hi[place] > series.lo[place] && xs[place] >= from && xs[place] <= to) spans.push([place, series.hi[place] - series.lo[place]]);
    }
    if (!spans.length) return;
    const usual = median(spans.map(([, span]) => span));
    pen.globalAlpha = 0.85;
    pen.lineWidth = 1.4;
    pen.beginPath();
    for (const [place, span] of spans) {
      if (span < 4 * usual) continue;
      pen.moveTo(x(xs[place]), y(this.isLog ? Math.max(series.lo[place], 1e-300) : series.lo[place]));
      pen.lineTo(x(xs[place]), y(series.hi[place]));
    }
    pen.stroke();
  }

  /** Draws a line through finite values; it is interrupted by others, and by a new attempt. Dense points share a pixel. */
  stroke(pen, series, xs, from, to, x, y, values) {
    const alpha = pen.globalAlpha, newest = series.attempts[series.attempts.length - 1];
    let isDown = false, column = 0, low = 0, high = 0, last = 0, count = 0;
    const lift = () => {
      if (isDown && low < high) { pen.lineTo(column, low); pen.lineTo(column, high); pen.lineTo(column, last); }
      if (isDown && count === 1) { pen.moveTo(column + 1.2, last); pen.arc(column, last, 1.2, 0, 7); }
      isDown = false;
    };
    const begin = place => { pen.beginPath(); pen.globalAlpha = alpha * (series.attempts[place] === newest ? 1 : 0.5); };
    begin(0);
    for (let place = 0; place < xs.length; place++) {
      // A stroke reaches to the first points outside of the shown part, so that it does not end before the edge.
      const isOutside = !(xs[place] >= from || xs[place + 1] >= from) || !(xs[place] <= to || xs[place - 1] <= to);
      const value = values[place], isNew = breaks(series, xs, place);
      if (isNew) { lift(); pen.stroke(); begin(place); }
      if (isOutside || !Number.isFinite(value) || this.isLog && value <= 0) { lift(); continue; }
      const atX = x(xs[place]), atY = y(value);
      if (!isDown) {
        pen.moveTo(atX, atY);
        isDown = true; column = atX; low = high = last = atY; count = 1;
      } else if (atX - column < 0.5) {
        low = Math.min(low, atY); high = Math.max(high, atY); last = atY; count++;
      } else {
        if (low < high) { pen.lineTo(column, low); pen.lineTo(column, high); pen.lineTo(column, last); }
        pen.lineTo(atX, atY);
        column = atX; low = high = last = atY; count++;
      }
    }
    lift();
    pen.stroke();
    pen.globalAlpha = alpha;
  }

  drawBad(pen, { series }, x, from, to, box, theme) {
    const xs = xColumn(series);
    let last = -100, isFirst = true;
    pen.fillStyle = theme.bad;
    for (let place = 0; place < xs.length; place++) {
      if (!series.bad[place] || !(xs[place] >= from && xs[place] <= to)) continue;
      const at = x(xs[place]);
      if (at - last < 3) continue;
      last = at;
      pen.fillRect(at - 1.5, box.bottom - 7, 3, 7);
      if (isFirst) {
        pen.font = "600 11px system-ui, sans-serif";
        pen.textAlign = at > box.right - 40 ? "right" : "left";
        pen.fillText("NaN", at + (at > box.right - 40 ? 2 : -1), box.bottom - 11);
        pen.font = "11px system-ui, sans-serif";
        isFirst = false;
      }
    }
  }

  /** The place of a curve's point that is nearest to the cursor. */
  nearest(series) {
    const xs = xColumn(series);
    if (!xs.length || view.hover === null) return -1;
    // Of attempts that took a step again the newest counts.
    let best = -1, least = Infinity;
    for (let place = xs.length - 1; place >= 0; place--) {
      const far = Math.abs(xs[place] - view.hover);
      if (far < least) { least = far; best = place; }
    }
    return best;
  }

  drawHover(pen, x, y, box, theme) {
    if (view.hover === null) return;
    const at = x(view.hover);
    if (at < box.left || at > box.right) return;
    pen.strokeStyle = theme.text;
    pen.globalAlpha = 0.5;
    pen.beginPath(); pen.moveTo(Math.round(at) + 0.5, box.top); pen.lineTo(Math.round(at) + 0.5, box.bottom); pen.stroke();
    pen.globalAlpha = 1;
    for (const { series, color } of this.series) {
      const place = this.nearest(series);
      if (place < 0 || !Number.isFinite(series.v[place])) continue;
      pen.fillStyle = color;
      pen.strokeStyle = theme.panel;
      pen.lineWidth = 2;
      pen.beginPath(); pen.arc(x(xColumn(series)[place]), y(series.v[place]), 4, 0, 7); pen.fill(); pen.stroke();
      pen.lineWidth = 1;
    }
  }

  drawLegend() {
    const unit = this.options.unit || "", isAlone = this.series.length === 1;
    const value = series => {
      if (view.hover === null) return series.kind === "rate" || typeof series.latest !== "string" ? lastValue(series) : series.latest;
      const place = this.nearest(series);
      return place < 0 ? undefined : series.bad[place] && !Number.isFinite(series.v[place]) ? "NaN" : series.v[place];
    };
    setText(this.number, isAlone ? show(value(this.series[0].series), unit) : "");
    if (isAlone && !this.series[0].label) { fill(this.legend); return; }
    if (this.legend.childElementCount !== Math.min(this.series.length, 10) + (this.series.length > 10)) {
      fill(this.legend, this.series.slice(0, 10).map(() => h("span", {}, h("i"), h("b"), h("em"))), this.series.length > 10 ? h("span", {}, `+${this.series.length - 10}`) : null);
    }
    this.series.slice(0, 10).forEach(({ series, label, color }, place) => {
      const [swatch, name, number] = this.legend.children[place].children;
      swatch.style.background = color;
      setText(name, label);
      setText(number, isAlone ? "" : show(value(series), unit));
    });
  }

  describe() {
    const texts = this.series.slice(0, 4).map(({ series, label }) => `${label ? label + " " : ""}${show(lastValue(series), this.options.unit || "")}`);
    const hasBad = this.series.some(({ series }) => series.bad.some(Boolean));
    this.canvas.setAttribute("aria-label", `${this.title}: ${texts.join(", ")}${hasBad ? ", with values that are not finite" : ""}`);
  }

  value(offset) {
    const [from, to] = this.range();
    return from + (offset - this.box.left) / (this.box.right - this.box.left) * (to - from);
  }

  point(event) {
    if (!this.box) return;
    if (this.drag) this.drag[1] = Math.min(Math.max(event.offsetX, this.box.left), this.box.right);
    view.hover = this.value(Math.min(Math.max(event.offsetX, this.box.left), this.box.right));
    this.tip(event);
    redrawAll();
  }

  tip(event) {
    const rows = this.series.slice(0, 12).map(({ series, label, color }) => {
      const place = this.nearest(series);
      if (place < 0) return null;
      const text = series.bad[place] && !Number.isFinite(series.v[place]) ? "NaN" : show(series.v[place], this.options.unit || "", 5);
      const spread = series.hi[place] > series.lo[place] ? ` (${show(series.lo[place], this.options.unit || "", 3)} to ${show(series.hi[place], this.options.unit || "", 3)})` : "";
      return h("div", {}, h("i", { style: `background:${color}` }), h("span", {}, label || this.title), h("b", {}, text + spread));
    }).filter(Boolean);
    const first = this.series[0] && this.nearest(this.series[0].series);
    const series = this.series[0] && this.series[0].series;
    const when = series && first >= 0 ? `${series.s[first] >= 0 ? "step " + series.s[first].toLocaleString("en-US") + " · " : ""}${clockTime(series.t[first], serverNow())}` : "";
    const near = this.marks.filter(mark => { const value = view.x === "time" ? mark.t : mark.step; const [from, to] = this.range(); return value !== null && Math.abs(value - view.hover) < (to - from) / (this.box.right - this.box.left) * 6; });
    showTip(event, h("div", { class: "tip-when" }, when), ...rows, ...near.slice(0, 3).map(mark => h("div", { class: "tip-mark" }, mark.text)));
  }

  leave() {
    view.hover = null;
    hideTip();
    redrawAll();
  }

  endDrag() {
    if (!this.drag) return;
    const [a, b] = this.drag;
    this.drag = null;
    if (Math.abs(a - b) > 6) view.range = [this.value(Math.min(a, b)), this.value(Math.max(a, b))];
    redrawAll();
  }

  key(event) {
    const first = this.series[0];
    if (event.key === "Escape") { view.hover = null; view.range = null; redrawAll(); return; }
    if (!first || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    const xs = xColumn(first.series), step = event.shiftKey ? 10 : 1;
    let place = view.hover === null ? xs.length - 1 : this.nearest(first.series);
    place = event.key === "Home" ? 0 : event.key === "End" ? xs.length - 1 : place + (event.key === "ArrowLeft" ? -step : step);
    view.hover = xs[Math.min(Math.max(place, 0), xs.length - 1)];
    redrawAll();
  }
}

function lastValue(series) {
  if (!series.v.length) return typeof series.latest === "number" ? series.latest : undefined;
  const last = series.v.length - 1;
  return series.bad[last] && !Number.isFinite(series.v[last]) ? "NaN" : series.v[last];
}

/** Exponentially smoothed values, corrected for their begin; they begin again with an attempt. */
function smoothed(series) {
  if (series.smoothFor === view.smooth && series.smooth.length === series.v.length) return series.smooth;
  let mean = 0, weight = 0;
  series.smooth = series.v.map((value, place) => {
    if (place && series.attempts[place] !== series.attempts[place - 1]) mean = weight = 0;
    if (!Number.isFinite(value)) return NaN;
    mean = view.smooth * mean + (1 - view.smooth) * value;
    weight = view.smooth * weight + (1 - view.smooth);
    return mean / weight;
  });
  series.smoothFor = view.smooth;
  return series.smooth;
}

function logTicks(low, high) {
  const found = [];
  const decades = Math.log10(high / low), factors = decades > 3 ? [1] : decades > 1.2 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) for (const factor of factors) {
    const value = factor * 10 ** power;
    if (value >= low && value <= high) found.push(value);
  }
  return found.length > 1 ? found : [low, high];
}

/** A label of the vertical axis, with as many digits as tell the ticks apart. */
function axisLabel(value, unit, all) {
  const gap = all.length > 1 ? Math.abs(all[1] - all[0]) : Math.abs(value) || 1;
  const digits = value === 0 ? 1 : Math.max(1, Math.min(6, Math.ceil(Math.log10(Math.abs(value) / gap)) + 1 + 1));
  if (unit === "s" && Math.max(...all.map(Math.abs)) < 120) {
    const isSmall = Math.max(...all.map(Math.abs)) < 1;
    return isSmall ? plain(value * 1e3, digits) + NBSP + "ms" : plain(value, digits) + NBSP + "s";
  }
  return show(value, unit, digits);
}

function stepLabel(value, span) {
  if (span >= 20000 && value >= 10000) return plain(value / 1000, 4) + "k";
  return value.toLocaleString("en-US");
}

const tipBox = document.getElementById("tip");
function showTip(event, ...children) {
  fill(tipBox, ...children);
  tipBox.hidden = false;
  const { width, height } = tipBox.getBoundingClientRect();
  const x = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
  tipBox.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px)`;
}
function hideTip() { tipBox.hidden = true; }
