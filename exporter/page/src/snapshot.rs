//! Encodes the history as JSON: a snapshot for a new browser, then only the changes.
//!
//! Points are columns. Times and steps are delta-encoded, which is short and compresses well.

use std::{collections::HashSet, time::Duration};

use pulsetrain_otlp::UnixNanos;

use super::{
    SinkState,
    curve::Curve,
    events::RunEvent,
    gpus::Gpu,
    history::History,
    json::JsonWriter,
    layout,
    metrics::{Catalogue, Definition, MetricKind},
    run::{Member, RunHistory},
    series::{Bucket, NO_STEP, Series},
    steps::Step,
};

/// The minimum change of a rank's last time that is sent again. The page shows it in seconds.
const RANK_EVERY: Duration = Duration::from_secs(1);

/// The number of points of a sparkline in the list of runs.
const SPARK: usize = 40;

/// Writes the data outside runs: the list of runs, GPUs, sinks, and the layout.
pub(super) fn overview(history: &History, sinks: &[SinkState], now_millis: i64, is_live: bool) -> String {
    let mut json = JsonWriter::default();
    json.object(|json| {
        json.key("now").integer(now_millis);
        json.key("live").boolean(is_live);
        json.key("version").text(env!("CARGO_PKG_VERSION"));
        layout::write(json.key("layout"));
        json.key("runs").list(|json| {
            let mut runs: Vec<&RunHistory> = history.runs.values().collect();
            runs.sort_by_key(|run| std::cmp::Reverse(run.first_nanos));
            runs.iter().for_each(|run| summary(json, run, &history.catalogue));
        });
        json.key("gpus").list(|json| {
            let gpus = history.gpus.values();
            gpus.for_each(|gpu| write_gpu(json, gpu, &history.catalogue, true));
        });
        telemetry(json, history, sinks);
    });
    json.finish()
}

/// Writes the changes since the last call: changed runs and GPUs, sinks.
pub(super) fn news(history: &mut History, sinks: &[SinkState], now_millis: i64) -> String {
    let mut json = JsonWriter::default();
    json.object(|json| {
        json.key("now").integer(now_millis);
        json.key("known")
            .list(|json| history.runs.keys().for_each(|id| json.text(id)));
        json.key("runs").list(|json| {
            for run in history
                .runs
                .values()
                .filter(|run| run.revision != run.streamed_revision)
            {
                summary(json, run, &history.catalogue);
            }
        });
        json.key("gpus").list(|json| {
            for gpu in history
                .gpus
                .values_mut()
                .filter(|gpu| gpu.revision != gpu.streamed_revision)
            {
                gpu.streamed_revision = gpu.revision;
                write_gpu(json, gpu, &history.catalogue, false);
            }
        });
        telemetry(json, history, sinks);
    });
    for run in history.runs.values_mut() {
        run.streamed_revision = run.revision;
    }
    json.finish()
}

/// Writes the snapshot of a run.
pub(super) fn run(run: &RunHistory, catalogue: &Catalogue) -> String {
    let mut json = JsonWriter::default();
    json.object(|json| {
        summary(json.key("run"), run, catalogue);
        json.key("shape").integer(run.shape as i64);
        json.key("revision").integer(run.revision as i64);
        json.key("event_count").integer(run.events.count as i64);
        let curves = run.curves();
        json.key("metrics").object(|json| {
            let mut last = None;
            for curve in &curves {
                if last.replace(curve.metric) != Some(curve.metric) {
                    let definition = catalogue.definition(curve.metric);
                    write_definition(json.key(&definition.name), definition);
                }
            }
        });
        json.key("series").list(|json| {
            for curve in &curves {
                write_curve(json, catalogue.definition(curve.metric), curve);
            }
        });
        json.key("ranks").list(|json| {
            let ranks = run.members.iter();
            ranks.for_each(|(rank, member)| write_rank(json, *rank, member, catalogue));
        });
        json.key("phases")
            .list(|json| run.steps.phases().iter().for_each(|phase| json.text(phase)));
        json.key("steps")
            .list(|json| run.steps.iter().for_each(|step| write_step(json, step)));
        json.key("events")
            .list(|json| run.events.iter().for_each(|event| write_event(json, event)));
        json.key("open").list(|json| {
            run.events
                .open()
                .iter()
                .for_each(|event| write_event(json, event));
        });
    });
    json.finish()
}

/// Writes the changes of a run since the last call.
///
/// They are the points of the curves, and the last values of the other ranks in the rank table.
pub(super) fn delta(run: &mut RunHistory, catalogue: &Catalogue) -> String {
    let mut json = JsonWriter::default();
    let curves: HashSet<u32> = run.curves().iter().map(|curve| curve.series.id).collect();
    json.object(|json| {
        json.key("id").text(&run.id);
        json.key("shape").integer(run.shape as i64);
        json.key("revision").integer(run.revision as i64);
        // For each series: its id, the number of earlier points, times, steps, values, the last value.
        json.key("series").list(|json| {
            for (metric, series) in run.series_by_metric() {
                if series.count == series.streamed {
                    continue;
                }
                if curves.contains(&series.id) {
                    write_unsent(json, series);
                } else if catalogue.definition(metric).is_rank_column {
                    json.object(|json| {
                        json.key("id").integer(i64::from(series.id));
                        json.key("latest").any_number(series.latest);
                    });
                }
                series.streamed = series.count;
            }
        });
        json.key("ranks").list(|json| {
            for (rank, member) in &mut run.members {
                let (sent_nanos, sent_ended) = member.streamed;
                let is_same = member.is_ended == sent_ended;
                if is_same && member.last_nanos < sent_nanos.saturating_add(RANK_EVERY) {
                    continue;
                }
                member.streamed = (member.last_nanos, member.is_ended);
                json.list(|json| {
                    json.optional(*rank);
                    json.integer(millis(member.last_nanos));
                    json.boolean(member.is_ended);
                });
            }
        });
        json.key("phases")
            .list(|json| run.steps.phases().iter().for_each(|phase| json.text(phase)));
        json.key("steps").list(|json| {
            let changed = run.steps.iter().filter(|step| step.revision > run.steps.streamed);
            changed.for_each(|step| write_step(json, step));
        });
        // The number of the first of these events, so that a browser detects repeated and missing events.
        json.key("event_from").integer(run.events.unsent_from() as i64);
        json.key("events")
            .list(|json| run.events.unsent().for_each(|event| write_event(json, event)));
        json.key("open").list(|json| {
            run.events
                .open()
                .iter()
                .for_each(|event| write_event(json, event));
        });
    });
    run.steps.streamed = run.steps.revision;
    run.events.streamed = run.events.count;
    json.finish()
}

/// Marks all changes as sent, because no browser is subscribed.
pub(super) fn skip_to_now(run: &mut RunHistory) {
    run.every_series()
        .for_each(|series| series.streamed = series.count);
    run.steps.streamed = run.steps.revision;
    run.events.streamed = run.events.count;
}

fn summary(json: &mut JsonWriter, run: &RunHistory, catalogue: &Catalogue) {
    let about = &run.about;
    json.object(|json| {
        json.key("id").text(&run.id);
        json.key("name").text(&about.name);
        json.key("service").text(&about.service);
        json.key("framework").text(&about.framework);
        json.key("world").optional(about.world_size);
        json.key("attempt").integer(about.attempt);
        json.key("ranks").integer(run.ranks() as i64);
        json.key("hosts").list(|json| {
            let hosts: std::collections::BTreeSet<&str> =
                run.members.values().map(|member| &*member.host).collect();
            hosts
                .iter()
                .filter(|host| !host.is_empty())
                .take(64)
                .for_each(|host| json.text(host));
        });
        json.key("first").integer(millis(run.first_nanos));
        json.key("last").integer(millis(run.last_nanos));
        json.key("last_step").integer(millis(run.last_step_nanos));
        json.key("arrived").integer(run.arrived_millis);
        json.key("step").optional(run.step);
        json.key("planned").optional(planned(run, catalogue));
        json.key("ended").boolean(run.is_ended());
        json.key("thinned").integer(i64::from(run.thinned));
        json.key("open").list(|json| {
            let open = run
                .events
                .open()
                .iter()
                .filter_map(|event| event.verdict.as_ref());
            open.for_each(|verdict| json.text(&verdict.kind));
        });
        // The headline series of the run.
        if let Some(curve) = run.first_curve(|metric| catalogue.definition(metric).is_headline) {
            json.key("value").any_number(curve.series.latest);
            json.key("spark")
                .list(|json| spark_of(json, curve.points().1, SPARK));
        }
    });
}

/// Returns the planned number of steps.
fn planned(run: &RunHistory, catalogue: &Catalogue) -> Option<i64> {
    let metric = catalogue.find(layout::PLANNED_STEPS.name)?;
    let series = run
        .members
        .values()
        .find_map(|member| member.metrics.get(&metric)?.first())?;
    (series.latest > 0.0).then_some(series.latest as i64)
}

/// Writes at most `most` evenly spaced points of a series.
fn spark(json: &mut JsonWriter, series: &Series, most: usize) {
    spark_of(json, series.points().1, most);
}

fn spark_of<'a>(json: &mut JsonWriter, points: impl Iterator<Item = &'a Bucket> + Clone, most: usize) {
    let count = points.clone().count();
    let every = count.div_ceil(most).max(1);
    // The last point is always included.
    let first = (count.max(1) - 1) % every;
    points
        .skip(first)
        .step_by(every)
        .for_each(|point| json.single(point.last));
}

fn write_definition(json: &mut JsonWriter, definition: &Definition) {
    json.object(|json| {
        json.key("unit").text(&definition.unit);
        json.key("brief").text(&definition.brief);
        json.key("kind").text(match definition.kind {
            MetricKind::Value => "value",
            MetricKind::Rate => "rate",
            MetricKind::Mean => "mean",
            MetricKind::State => "state",
        });
    });
}

fn write_curve(json: &mut JsonWriter, definition: &Definition, curve: &Curve<'_>) {
    let (merged, points) = curve.points();
    let series = curve.series;
    json.object(|json| {
        json.key("id").integer(i64::from(series.id));
        json.key("metric").text(&definition.name);
        json.key("label").text(&series.label);
        json.key("rank").optional(curve.rank);
        json.key("count").integer(series.count as i64);
        json.key("latest").any_number(series.latest);
        json.key("at").integer(millis(series.latest_nanos));
        json.key("ended").boolean(series.is_ended);
        columns(json, points.clone());
        json.key("low").list(|json| {
            points
                .clone()
                .take(merged)
                .for_each(|point| json.single(point.low));
        });
        json.key("high").list(|json| {
            points
                .clone()
                .take(merged)
                .for_each(|point| json.single(point.high));
        });
        // Changes of rank: the time of the last point before, and the next rank.
        json.key("changes").list(|json| {
            for (millis, rank) in curve.changes() {
                json.list(|json| {
                    json.integer(millis);
                    json.optional(rank);
                });
            }
        });
        // The indexes of points with a value that was not finite, and the indexes at which attempts start.
        json.key("bad").list(|json| {
            let places = points
                .clone()
                .enumerate()
                .filter(|(_, point)| point.has_non_finite);
            places.for_each(|(place, _)| json.integer(place as i64));
        });
        json.key("attempts").list(|json| {
            let mut last = None;
            for (place, point) in points.clone().enumerate() {
                if last.replace(point.attempt) != Some(point.attempt) {
                    json.integer(place as i64);
                    json.integer(i64::from(point.attempt));
                }
            }
        });
    });
}

/// Writes times, steps and values of points.
fn columns<'a>(json: &mut JsonWriter, points: impl Iterator<Item = &'a Bucket> + Clone) {
    json.key("t").list(|json| {
        let mut last = 0;
        for point in points.clone() {
            json.integer(point.time_millis - last);
            last = point.time_millis;
        }
    });
    json.key("s").list(|json| {
        let mut last = 0;
        for point in points.clone() {
            let step = step(point);
            json.integer(step - last);
            last = step;
        }
    });
    json.key("v")
        .list(|json| points.for_each(|point| json.single(point.last)));
}

fn write_unsent(json: &mut JsonWriter, series: &Series) {
    json.object(|json| {
        json.key("id").integer(i64::from(series.id));
        json.key("from").integer(series.streamed as i64);
        json.key("latest").any_number(series.latest);
        json.key("at").integer(millis(series.latest_nanos));
        match series.unsent() {
            None => json.key("gap").boolean(true),
            Some(points) => {
                let attempt = points.clone().last().map_or(0, |point| point.attempt);
                json.key("attempt").integer(i64::from(attempt));
                columns(json, points.clone());
                json.key("bad").list(|json| {
                    let places = points.enumerate().filter(|(_, point)| point.has_non_finite);
                    places.for_each(|(place, _)| json.integer(place as i64));
                });
            }
        }
    });
}

fn step(point: &Bucket) -> i64 {
    if point.step == NO_STEP {
        -1
    } else {
        i64::from(point.step)
    }
}

fn write_rank(json: &mut JsonWriter, rank: Option<i64>, member: &Member, catalogue: &Catalogue) {
    json.object(|json| {
        json.key("rank").optional(rank);
        json.key("host").text(&member.host);
        json.key("local").optional(member.local_rank);
        json.key("step").optional(member.step);
        json.key("last").integer(millis(member.last_nanos));
        json.key("ended").boolean(member.is_ended);
        json.key("values").list(|json| {
            for (metric, series) in &member.metrics {
                let definition = catalogue.definition(*metric);
                if !definition.is_rank_column {
                    continue;
                }
                for series in series {
                    json.object(|json| {
                        json.key("id").integer(i64::from(series.id));
                        json.key("metric").text(&definition.name);
                        json.key("label").text(&series.label);
                        json.key("latest").any_number(series.latest);
                        json.key("spark").list(|json| spark(json, series, SPARK));
                    });
                }
            }
        });
    });
}

/// Writes a step: its ranks, their durations, and the seconds of each phase as pairs of phase and seconds.
fn write_step(json: &mut JsonWriter, step: &Step) {
    json.object(|json| {
        json.key("n").integer(step.number);
        json.key("a").integer(step.attempt);
        json.key("t").integer(millis(step.end_nanos));
        json.key("r")
            .list(|json| step.ranks.iter().for_each(|rank| json.integer(rank.rank)));
        json.key("d").list(|json| {
            step.ranks
                .iter()
                .for_each(|rank| json.single(rounded(rank.duration)));
        });
        json.key("p").list(|json| {
            for rank in &step.ranks {
                json.list(|json| {
                    for (phase, seconds) in rank.phases() {
                        json.integer(i64::from(phase));
                        json.single(rounded(seconds));
                    }
                });
            }
        });
    });
}

/// Rounds seconds to microseconds, which are shorter to write.
fn rounded(seconds: f32) -> f32 {
    ((f64::from(seconds) * 1e6).round() / 1e6) as f32
}

fn write_event(json: &mut JsonWriter, event: &RunEvent) {
    json.object(|json| {
        json.key("name").text(&event.name);
        json.key("t").integer(millis(event.time_nanos));
        if let Some(end) = event.end_nanos {
            json.key("end").integer(millis(end));
        }
        json.key("step").optional(event.step);
        json.key("rank").optional(event.rank);
        json.key("text").text(&event.text);
        json.key("severity").integer(i64::from(event.severity));
        if let Some(gpu) = &event.gpu {
            json.key("gpu").text(gpu);
        }
        if let Some(verdict) = &event.verdict {
            json.key("kind").text(&verdict.kind);
            json.key("subject").text(&verdict.subject);
            json.key("open").boolean(verdict.is_open);
        }
    });
}

fn write_gpu(json: &mut JsonWriter, gpu: &Gpu, catalogue: &Catalogue, with_history: bool) {
    json.object(|json| {
        json.key("id").text(&gpu.id);
        json.key("index").optional(gpu.index);
        json.key("host").text(&gpu.host);
        json.key("model").text(&gpu.model);
        json.key("run").text(gpu.run.as_deref().unwrap_or_default());
        json.key("rank").optional(gpu.rank);
        json.key("last").integer(millis(gpu.last_nanos));
        json.key("values").list(|json| {
            for (metric, series) in &gpu.metrics {
                let definition = catalogue.definition(*metric);
                if !definition.is_gpu_column {
                    continue;
                }
                // States that are off are left out, because there are many.
                let is_off = |series: &&Series| definition.kind == MetricKind::State && series.latest == 0.0;
                for series in series
                    .iter()
                    .filter(|series| !series.latest.is_nan() && !is_off(series))
                {
                    json.object(|json| {
                        json.key("metric").text(&definition.name);
                        json.key("unit").text(&definition.unit);
                        json.key("label").text(&series.label);
                        json.key("latest").any_number(series.latest);
                        json.key("ended").boolean(series.is_ended);
                        if with_history {
                            json.key("spark").list(|json| spark(json, series, 60));
                        }
                    });
                }
            }
        });
        json.key("events")
            .list(|json| gpu.events.iter().for_each(|event| write_event(json, event)));
    });
}

fn telemetry(json: &mut JsonWriter, history: &History, sinks: &[SinkState]) {
    json.key("sinks")
        .list(|json| sinks.iter().for_each(|sink| sink.write(json)));
    let counts = history.counts;
    json.key("page").object(|json| {
        json.key("bytes").integer(counts.bytes as i64);
        json.key("limit").integer(history.config.bytes as i64);
        json.key("runs_replaced").integer(counts.runs_replaced as i64);
        // Pairs of a reason and its number of items.
        json.key("refused").list(|json| {
            for (rejection, items) in counts.rejected.by_reason() {
                json.list(|json| {
                    json.text(&rejection.describe(&history.config));
                    json.integer(items as i64);
                });
            }
        });
        json.key("runs_thinned").integer(counts.runs_thinned as i64);
        json.key("malformed").integer(counts.malformed as i64);
    });
}

fn millis(time: UnixNanos) -> i64 {
    time.as_millis() as i64
}
