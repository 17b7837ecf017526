// The data of the page: what the server sent, or what the file holds, and the changes as they come.

/** A run asks for all of its points again after so many new ones: the server merges old points. */
const MOST_APPENDED = 3000;
const MOST_COMPARED = 8;

const store = {
  live: false, isFile: false, instance: "", now: 0, offset: 0, version: "", layout: null, connected: false, arrived: false,
  runs: new Map(), gpus: new Map(), sinks: [], page: {}, data: new Map(), selected: [],
  listeners: new Set(),
};

function notify(what) {
  for (const listener of store.listeners) listener(what);
}

/** The time of the server. */
function serverNow() {
  return store.live ? Date.now() + store.offset : store.now;
}

const numbers = list => list.map(value => value === null ? NaN : value);

/** Undoes the differences of a column. */
function summed(list) {
  let last = 0;
  return list.map(value => (last += value));
}

function decodeSeries(sent) {
  const t = summed(sent.t), s = summed(sent.s), v = numbers(sent.v);
  const bad = new Array(t.length).fill(false);
  sent.bad.forEach(place => { bad[place] = true; });
  const attempts = new Array(t.length).fill(0);
  for (let place = 0; place < sent.attempts.length; place += 2) attempts.fill(sent.attempts[place + 1], sent.attempts[place]);
  const lo = numbers(sent.low).concat(v.slice(sent.low.length)), hi = numbers(sent.high).concat(v.slice(sent.high.length));
  return { id: sent.id, metric: sent.metric, label: sent.label, rank: sent.rank, count: sent.count, latest: sent.latest, at: sent.at, ended: sent.ended, changes: sent.changes, t, s, v, lo, hi, bad, attempts };
}

function decodeRun(sent) {
  const run = {
    id: sent.run.id, shape: sent.shape, metrics: sent.metrics, phases: sent.phases, ranks: sent.ranks,
    revision: sent.revision, events: sent.events, eventCount: sent.event_count, open: sent.open, series: new Map(), byMetric: new Map(), steps: new Map(), appended: 0,
  };
  for (const one of sent.series) {
    const series = decodeSeries(one);
    run.series.set(series.id, series);
    if (!run.byMetric.has(series.metric)) run.byMetric.set(series.metric, []);
    run.byMetric.get(series.metric).push(series);
  }
  for (const step of sent.steps) run.steps.set(step.a + "/" + step.n, step);
  return run;
}

/** Adds the points of a delta; false where some are missing. */
function appendPoints(series, sent) {
  if (!sent.t || sent.from > series.count) return false;
  const skip = series.count - sent.from;
  const t = summed(sent.t), s = summed(sent.s), v = numbers(sent.v), bad = new Set(sent.bad);
  for (let place = skip; place < t.length; place++) {
    series.t.push(t[place]); series.s.push(s[place]); series.v.push(v[place]);
    series.lo.push(v[place]); series.hi.push(v[place]);
    series.bad.push(bad.has(place)); series.attempts.push(sent.attempt);
  }
  series.count = Math.max(series.count, sent.from + t.length);
  series.latest = sent.latest;
  series.at = sent.at;
  series.ended = false;
  return true;
}

/** Adds the events of a delta; false where some are missing. */
function appendEvents(run, delta) {
  if (delta.event_from > run.eventCount) return false;
  const fresh = delta.events.slice(run.eventCount - delta.event_from);
  run.events.push(...fresh);
  run.eventCount += fresh.length;
  if (run.events.length > 600) run.events.splice(0, run.events.length - 500);
  return true;
}

function applyDelta(delta) {
  // What comes while all of the run is fetched is added afterwards, as far as the fetched run does not have it.
  const flight = fetching.get(delta.id);
  if (flight && flight.deltas) { flight.deltas.push(delta); return; }
  const run = store.data.get(delta.id);
  if (!run) return;
  if (delta.shape === run.shape && delta.revision <= run.revision) return;
  let isWhole = delta.shape === run.shape;
  for (const sent of delta.series) {
    const series = run.series.get(sent.id);
    if (series) isWhole = appendPoints(series, sent) && isWhole;
    const ranked = run.rankSeries && run.rankSeries.get(sent.id);
    if (ranked) { ranked.latest = sent.latest; }
    run.appended += sent.t ? sent.t.length / Math.max(1, run.series.size) : 0;
  }
  const ranks = delta.ranks.length ? new Map(run.ranks.map(rank => [rank.rank, rank])) : null;
  for (const [rank, last, ended] of delta.ranks) {
    const known = ranks.get(rank);
    if (known) Object.assign(known, { last, ended });
  }
  if (!run.rankSeries) {
    run.rankSeries = new Map(run.ranks.flatMap(rank => rank.values.map(value => [value.id, value])));
  }
  run.phases = delta.phases;
  for (const step of delta.steps) run.steps.set(step.a + "/" + step.n, step);
  while (run.steps.size > 120) run.steps.delete(run.steps.keys().next().value);
  isWhole = appendEvents(run, delta) && isWhole;
  run.open = delta.open;
  run.revision = delta.revision;
  if (!isWhole || run.appended > MOST_APPENDED) fetchRun(delta.id);
}

function applyOverview(sent, isFirst) {
  store.now = sent.now;
  store.offset = sent.now - Date.now();
  store.sinks = sent.sinks;
  store.page = sent.page;
  for (const run of sent.runs) store.runs.set(run.id, run);
  for (const gpu of sent.gpus) {
    const key = gpu.host + "\n" + gpu.id, known = store.gpus.get(key);
    if (known && !isFirst) {
      for (const value of gpu.values) {
        const before = known.values.find(other => other.metric === value.metric && other.label === value.label);
        if (before && before.spark) value.spark = before.spark.concat(typeof value.latest === "number" ? value.latest : NaN).slice(-60);
      }
    }
    store.gpus.set(key, gpu);
  }
  if (sent.known) {
    const known = new Set(sent.known);
    for (const id of [...store.runs.keys()]) if (!known.has(id)) { store.runs.delete(id); }
  }
}

/** The newest run that goes on, else the newest. */
function defaultRun() {
  const runs = [...store.runs.values()];
  const alive = runs.filter(run => !run.ended);
  return (alive.length ? alive : runs).sort((a, b) => b.last - a.last)[0];
}

function select(ids) {
  store.selected = ids.filter(id => store.runs.has(id)).slice(0, MOST_COMPARED);
  for (const id of [...store.data.keys()]) if (!store.selected.includes(id) && !store.isFile) store.data.delete(id);
  if (store.live) connect();
  else store.selected.filter(id => !store.data.has(id)).forEach(fetchRun);
  notify("selection");
}

/** Forgets the data of runs that the server no longer has, and selects others instead; true where the selection changed. */
function dropGone() {
  for (const id of [...store.data.keys()]) if (!store.runs.has(id)) store.data.delete(id);
  const kept = store.selected.filter(id => store.runs.has(id)), other = defaultRun();
  if (kept.length === store.selected.length && (kept.length || !other)) return false;
  select(kept.length || !other ? kept : [other.id]);
  return true;
}

/** The runs that are fetched: the deltas that wait for the answer, or none where the answer came a moment ago. */
const fetching = new Map();

async function fetchRun(id) {
  if (store.isFile || fetching.has(id)) return;
  const flight = { deltas: [] };
  fetching.set(id, flight);
  let run = null, isGone = false;
  try {
    const answer = await fetch("/api/run?id=" + encodeURIComponent(id));
    isGone = answer.status === 404;
    if (answer.ok) run = decodeRun(await answer.json());
  } catch { /* The stream notices that the server is gone. */ }
  if (fetching.get(id) !== flight) return;
  const deltas = flight.deltas;
  flight.deltas = null;
  // Runs that gain series ask for all of their points a few times only.
  setTimeout(() => { if (fetching.get(id) === flight) fetching.delete(id); }, 700);
  if (isGone) { store.runs.delete(id); dropGone(); return; }
  if (run && store.selected.includes(id)) store.data.set(id, run);
  deltas.forEach(applyDelta);
  if (run) notify("run");
}

async function fetchOverview() {
  const answer = await fetch("/api/overview");
  if (!answer.ok) throw new Error("status " + answer.status);
  const sent = await answer.json();
  store.live = sent.live;
  store.version = sent.version;
  store.layout = sent.layout;
  store.runs.clear();
  store.gpus.clear();
  applyOverview(sent, true);
  store.arrived = true;
}

/** Begins with what the server has; runs that go on are then followed. */
async function start() {
  try {
    await fetchOverview();
  } catch (error) {
    setTimeout(start, 2000);
    return;
  }
  const run = defaultRun();
  if (run || !store.live) select(run ? [run.id] : []);
  else connect();
}

let stream = null;

/** Opens the stream of updates for the selected runs. */
function connect() {
  if (stream) stream.close();
  if (document.hidden) { stream = null; return; }
  const query = store.selected.map(id => "run=" + encodeURIComponent(id)).join("&");
  const opened = stream = new EventSource("/events" + (query && "?" + query));
  opened.addEventListener("hello", async message => {
    const { instance } = JSON.parse(message.data);
    // Another process counts points anew, also where the runs have the same names.
    if (store.instance && store.instance !== instance) store.data.clear();
    store.instance = instance;
    fetching.clear();
    try {
      await fetchOverview();
    } catch { return; }
    if (stream !== opened) return;
    store.connected = true;
    if (dropGone()) return;
    await Promise.all(store.selected.map(fetchRun));
    notify("overview");
  });
  opened.addEventListener("news", message => {
    store.connected = true;
    const news = JSON.parse(message.data), before = store.runs.size;
    applyOverview(news, false);
    if (dropGone()) return;
    notify(before !== store.runs.size ? "overview" : "news");
  });
  opened.addEventListener("delta", message => {
    applyDelta(JSON.parse(message.data));
    notify("delta");
  });
  opened.onerror = () => {
    store.connected = false;
    notify("news");
    // A server that is gone for good closes the stream; it is tried again all the same.
    if (opened.readyState === EventSource.CLOSED && stream === opened) setTimeout(() => stream === opened && connect(), 2000);
  };
}

// A page that nobody sees does not hold a stream: browsers open only a few to one server.
document.addEventListener("visibilitychange", () => { if (store.live) document.hidden ? (stream && stream.close(), stream = null) : connect(); });

/** Reads the data that a file carries with it. */
async function readEmbedded(base64) {
  const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const sent = JSON.parse(text);
  store.isFile = true;
  store.version = sent.overview.version;
  store.layout = sent.overview.layout;
  applyOverview(sent.overview, true);
  for (const run of sent.runs) store.data.set(run.run.id, decodeRun(run));
  store.arrived = true;
}

/** The series of a metric, the one without attributes first. */
function seriesOf(run, metric) {
  return run.byMetric.get(metric) || [];
}

/** The first of some metrics that has a value, with its definition. */
function firstOf(run, metrics) {
  for (const metric of metrics) {
    const list = seriesOf(run, metric);
    if (list.length) return { series: list[0], definition: run.metrics[metric] };
  }
  return null;
}

function stepsOf(run) {
  return [...run.steps.values()].sort((a, b) => a.a - b.a || a.n - b.n);
}
