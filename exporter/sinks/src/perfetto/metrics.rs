//! Series onto counter tracks, states onto state tracks.

use std::io::Write;

use pulsetrain_perfetto::{Counter, CounterUnit, CounterValue, ParentTrack, ProcessTrack, TraceWriter};

use super::{
    PerfettoSummary,
    points::{Points, Series},
};

/// Where the heading of all counters stands among a process's tracks: below the rows of spans.
const RANK: i32 = 100_000;
/// Where states stand: above everything.
const STATE_RANK: i32 = -1;

/// Draws the series of one process.
pub(super) fn draw<W: Write>(
    trace: &mut TraceWriter<W>,
    process: ProcessTrack,
    resource: u32,
    points: &mut Points,
    summary: &mut PerfettoSummary,
) -> std::io::Result<()> {
    states(trace, process, resource, points)?;
    let mut series: Vec<&mut Series> = points
        .series
        .iter_mut()
        .filter(|series| series.resource == resource)
        .collect();
    if series.is_empty() {
        return Ok(());
    }
    series.sort_by(|a, b| a.name.cmp(&b.name));
    let heading = trace.group(process, "metrics", RANK)?;
    for series in series {
        counter(trace, heading.into(), series)?;
        summary.counters += 1;
    }
    Ok(())
}

fn counter<W: Write>(
    trace: &mut TraceWriter<W>,
    heading: ParentTrack,
    series: &mut Series,
) -> std::io::Result<()> {
    let about = Counter {
        name: &series.name,
        unit: unit(&series.unit),
        description: &series.description,
        scale: series.scale.as_deref(),
    };
    let track = trace.counter(heading, &about)?;
    series.values.sort_by_key(|(time, _)| *time);
    let mut total = 0.0;
    for (time, value) in &series.values {
        let value = if series.is_delta {
            total += as_f64(*value);
            CounterValue::Double(total)
        } else {
            *value
        };
        trace.count(track, *time, value)?;
    }
    Ok(())
}

/// Draws the states of one process: of a state that is said again only the first.
fn states<W: Write>(
    trace: &mut TraceWriter<W>,
    process: ProcessTrack,
    resource: u32,
    points: &mut Points,
) -> std::io::Result<()> {
    points.states.sort();
    let mine: Vec<_> = points
        .states
        .iter()
        .filter(|state| state.resource == resource)
        .collect();
    for same_track in mine.chunk_by(|a, b| a.track == b.track) {
        let track = trace.state(process, &same_track[0].track, STATE_RANK)?;
        for said in same_track.chunk_by(|a, b| a.state == b.state) {
            trace.set_state(track, said[0].time, Some(&said[0].state))?;
        }
        if let Some(last) = same_track.last() {
            trace.set_state(track, last.time, None)?;
        }
    }
    Ok(())
}

/// Perfetto's own units where they are the same; braces, which UCUM has around what is counted, are left out.
fn unit(ucum: &str) -> CounterUnit<'_> {
    match ucum {
        "" | "1" => CounterUnit::Unspecified,
        "ns" => CounterUnit::TimeNanos,
        "By" => CounterUnit::SizeBytes,
        other => CounterUnit::Named(other.trim_start_matches('{').trim_end_matches('}')),
    }
}

fn as_f64(value: CounterValue) -> f64 {
    match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    }
}
