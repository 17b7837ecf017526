// The list of runs, the head of a run, its verdicts and its tiles.

const $ = id => document.getElementById(id);

const runName = run => run.name || run.service || run.id;
/** The name of a run, with its id where others have the same name. */
function runLabel(run) {
  const name = runName(run);
  return [...store.runs.values()].some(other => other.id !== run.id && runName(other) === name) ? `${name} ${run.id.slice(0, 6)}` : name;
}

const runColor = id => {
  const place = store.selected.indexOf(id);
  return store.selected.length > 1 && place >= 0 ? seriesColor(place) : cssColor("--accent");
};

/** What a run is doing: a word and how it is colored. */
function runState(run) {
  const silent = (serverNow() - run.arrived) / 1000;
  if (run.open.length) return [run.open.length === 1 ? words(run.open[0]) : `${run.open.length} verdicts`, run.open.some(isSevere) ? "bad" : "warn"];
  if (run.ended) return ["Finished", ""];
  if (!store.live) return ["Recorded", ""];
  if (silent > 60) return ["Silent", "warn"];
  return ["Running", "good"];
}

const isSevere = kind => /nonfinite|lost|hang|stalled|xid/.test(kind);

function drawRuns() {
  const wanted = $("filter").value.trim().toLowerCase();
  const runs = [...store.runs.values()].sort((a, b) => b.first - a.first || a.id.localeCompare(b.id));
  const shown = runs.filter(run => !wanted || `${run.name} ${run.id} ${run.service} ${run.framework} ${run.hosts.join(" ")}`.toLowerCase().includes(wanted));
  const list = $("runs"), known = new Map([...list.children].map(item => [item.dataset.id, item]));
  shown.forEach((run, place) => {
    let item = known.get(run.id);
    known.delete(run.id);
    if (!item) {
      item = h("div", { class: "run", role: "option", tabindex: "-1", "data-id": run.id },
        h("button", { class: "dot", type: "button", tabindex: "-1", "aria-label": "Compare", title: "Compare with the others", onclick: event => { event.stopPropagation(); toggleRun(run.id); } }),
        h("span", { class: "name" }), h("span", { class: "sub" }), h("span", { class: "curve" }));
      item.addEventListener("click", event => { event.metaKey || event.ctrlKey || event.shiftKey ? toggleRun(run.id) : select([run.id]); closeSide(); });
    }
    const [state, level] = runState(run), isSelected = store.selected.includes(run.id);
    item.setAttribute("aria-selected", String(isSelected));
    item.style.setProperty("--color", runColor(run.id));
    const [, name, sub, curve] = item.children;
    setText(name, runName(run));
    name.title = run.id;
    const step = run.step === null ? "" : `step ${run.step.toLocaleString("en-US")}${run.planned ? " of " + run.planned.toLocaleString("en-US") : ""}`;
    const texts = [step, run.value === undefined ? "" : show(run.value, "")].filter(Boolean).join(" · ");
    if (item.dataset.text !== state + texts) {
      item.dataset.text = state + texts;
      fill(sub, level === "warn" || level === "bad" ? h("span", { class: "flag" }, "▲ " + state) : state, texts ? " · " + texts : "");
    }
    if (run.spark && item.sparkOf !== run.last) {
      item.sparkOf = run.last;
      curve.replaceWith(sparkline(numbers(run.spark), 58, 24));
    }
    if (list.children[place] !== item) list.insertBefore(item, list.children[place] || null);
  });
  known.forEach(item => item.remove());
  setText($("run-count"), wanted ? `${shown.length} of ${runs.length} runs` : `${runs.length} run${runs.length === 1 ? "" : "s"}`);
  $("clear").hidden = store.selected.length < 2;
  const current = list.querySelector('[aria-selected="true"]') || list.firstElementChild;
  for (const item of list.children) item.tabIndex = item === current ? 0 : -1;
}

function toggleRun(id) {
  const others = store.selected.filter(other => other !== id);
  select(others.length === store.selected.length ? [...store.selected, id] : others.length ? others : store.selected);
}

function drawLive() {
  const live = $("live");
  live.className = "live " + (!store.live ? "" : store.connected ? "on" : "off");
  setText(live, !store.arrived ? "Loading" : !store.live ? "Recorded" : store.connected ? "Live" : "Disconnected");
}

function drawHead() {
  const run = store.runs.get(store.selected[0]), headline = $("headline");
  if (!run || store.selected.length > 1) delete headline.dataset.key;
  document.title = run ? `${runName(run)} · Pulsetrain` : "Pulsetrain";
  if (!run) { fill(headline, h("h1", {}, h("span", {}, "Pulsetrain"))); return; }
  if (store.selected.length > 1) {
    fill(headline, h("h1", {}, h("span", {}, `${store.selected.length} runs`)), h("div", { class: "meta" }, store.selected.map(id => store.runs.get(id)).filter(Boolean).map(run => h("span", { style: `color:${runColor(run.id)}` }, "● ", h("span", { class: "muted" }, runLabel(run))))));
    return;
  }
  const [state, level] = runState(run);
  const about = [run.framework || run.service, run.ranks > 1 || run.world > 1 ? `${run.ranks}${run.world && run.world !== run.ranks ? " of " + run.world : ""} ranks` : "", run.hosts.filter(Boolean).length > 1 ? `${run.hosts.length} hosts` : run.hosts[0], run.attempt ? `attempt ${run.attempt}` : "", run.first ? "since " + clockTime(run.first, serverNow()) : "", !store.live && run.last > run.first ? "for " + duration((run.last - run.first) / 1000) : ""].filter(Boolean);
  const key = [run.id, state, ...about].join("|");
  if (headline.dataset.key === key) return;
  headline.dataset.key = key;
  fill(headline, h("h1", {}, h("span", {}, runName(run)), h("span", { class: "pill " + level }, state)), h("div", { class: "meta" }, about.map(text => h("span", {}, text)), runName(run) === run.id ? null : h("code", { title: "Id of the run" }, run.id.length > 20 ? run.id.slice(0, 12) + "…" : run.id)));
}

function drawVerdicts(box) {
  const open = store.selected.flatMap(id => ((store.data.get(id) || {}).open || []).map(event => ({ ...event, run: id })));
  const key = JSON.stringify(open);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.hidden = !open.length;
  fill(box, open.slice(0, 6).map(event => h("div", { class: "verdict " + (isSevere(event.kind) ? "bad" : ""), role: "alert" },
    h("span", { class: "sign", "aria-hidden": "true" }, "▲"),
    h("p", {}, h("b", {}, words(event.kind)), event.subject ? h("span", {}, ` · ${event.subject}`) : "", event.text ? h("span", { class: "muted" }, " — " + event.text) : ""),
    h("time", {}, `${event.step === null ? "" : "step " + event.step.toLocaleString("en-US") + " · "}${clockTime(event.t, serverNow())}`))),
    open.length > 6 ? h("p", { class: "muted" }, `and ${open.length - 6} more, see Events`) : null);
}

/** The pace of the last steps, in seconds a step. */
function pace(run) {
  const steps = stepsOf(run).slice(-40);
  if (steps.length > 1) {
    const first = steps[0], last = steps[steps.length - 1];
    if (last.n > first.n && last.a === first.a) return (last.t - first.t) / 1000 / (last.n - first.n);
  }
  for (const series of run.series.values()) {
    const end = series.s.length - 1, start = Math.max(0, end - 40);
    if (end > start && series.s[end] > series.s[start] && series.s[start] >= 0) return (series.t[end] - series.t[start]) / 1000 / (series.s[end] - series.s[start]);
  }
  return NaN;
}

/** What a tile shows: value, unit, note, level, curve. */
function tileOf(tile, run, summary) {
  const found = firstOf(run, tile.metrics), now = serverNow();
  const of = (value, unit, rest) => ({ parts: parts(value, unit), ...rest });
  const left = summary.planned && summary.step !== null ? Math.max(0, summary.planned - summary.step) : null;
  switch (tile.id) {
    case "step": {
      if (summary.step === null) return null;
      return { parts: [summary.step.toLocaleString("en-US"), ""], note: summary.planned ? "of " + summary.planned.toLocaleString("en-US") : summary.attempt ? `attempt ${summary.attempt}` : "" };
    }
    case "progress": {
      const share = found ? lastValue(found.series) : summary.planned ? summary.step / summary.planned : null;
      return share === null || share === undefined ? null : of(share, "1", { bar: share });
    }
    case "eta": {
      if (summary.ended || !store.live) return null;
      const value = found ? lastValue(found.series) : left === null ? NaN : left * pace(run);
      return Number.isFinite(value) ? { parts: [duration(value), ""], note: "at " + clockTime(now + value * 1000, now) } : null;
    }
    case "since_step": {
      if (!store.live || summary.ended || !summary.last_step) return null;
      const value = Math.max(0, (now - summary.last_step) / 1000), usual = pace(run);
      const level = Number.isFinite(usual) && value > Math.max(10, usual * 6) ? "warn" : "";
      return { parts: seconds(value, 2), note: "end of the newest step", level };
    }
    case "sample_age": {
      if (!store.live || summary.ended) return null;
      const value = Math.max(0, (now - summary.arrived) / 1000);
      return { parts: seconds(value, 2), note: "newest telemetry", level: value > 60 ? "warn" : "" };
    }
    default: {
      if (!found) return null;
      const { series, definition } = found, value = definition.kind === "rate" ? lastValue(series) : typeof series.latest === "string" ? series.latest : lastValue(series);
      if (value === undefined) return null;
      const isBad = value === "NaN" || value === "inf" || value === "-inf";
      const unit = definition.kind === "rate" ? definition.unit + "/s" : definition.unit;
      const finite = series.v.filter(Number.isFinite);
      let note = "";
      if (tile.id === "loss" && finite.length) note = "lowest " + show(series.lo.reduce((a, b) => b < a ? b : a, Infinity), unit);
      else if (tile.id === "step_time" && finite.length > 4) note = `p50 ${show(quantile(series.v.slice(-200), 0.5), unit, 3)} · p95 ${show(quantile(series.v.slice(-200), 0.95), unit, 3)}`;
      return of(value, unit, { note, level: isBad ? "bad" : "", curve: series.v.slice(-120) });
    }
  }
}

function drawTiles(box) {
  const run = store.data.get(store.selected[0]), summary = store.runs.get(store.selected[0]);
  if (!run || !summary || store.selected.length > 1) { fill(box); delete box.dataset.ids; return; }
  const shown = store.layout.tiles.map(tile => [tile, tileOf(tile, run, summary)]).filter(([, value]) => value);
  const ids = shown.map(([tile]) => tile.id).join();
  if (box.dataset.ids !== ids) {
    box.dataset.ids = ids;
    fill(box, shown.map(([tile, value]) => h("div", { class: "tile" }, h("div", { class: "title" }, tile.title), h("div", { class: "big" }, h("span"), h("small")), value.bar === undefined ? h("div", { class: "note" }) : h("div", { class: "bar" }, h("i")))));
  }
  shown.forEach(([tile, value], place) => {
    const element = box.children[place], [, big, last] = element.children;
    element.className = "tile " + (value.level || "");
    element.title = tile.metrics.map(metric => (run.metrics[metric] || {}).brief).find(Boolean) || "";
    setText(big.children[0], value.parts[0]);
    setText(big.children[1], value.parts[1]);
    if (value.bar !== undefined) last.firstChild.style.width = `${Math.min(100, value.bar * 100)}%`;
    else setText(last, value.note || "");
    if (value.curve && element.curveOf !== value.curve.length + ":" + value.curve[value.curve.length - 1]) {
      element.curveOf = value.curve.length + ":" + value.curve[value.curve.length - 1];
      element.querySelectorAll(".spark").forEach(old => old.remove());
      element.append(sparkline(value.curve, 62, 20));
    }
  });
}
