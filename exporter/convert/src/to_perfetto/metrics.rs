//! Series onto counter tracks, states onto state tracks; in a full trace, with the other fields of each point.

use std::collections::HashSet;

use pulsetrain_otlp::{
    WireError,
    descriptor::Kind,
    view::{Message, Metric, NumberPoint},
};
use pulsetrain_perfetto::{Annotations, Counter, CounterTrack, CounterUnit, CounterValue};

use super::{
    PerfettoError,
    identity::KEY,
    message,
    points::{NameKey, Points},
    readings::{EncodedPoint, Reading},
    trace_output::{PerfettoParts, TraceOutput},
};

/// Fields of `NumberDataPoint` that a counter shows, and the field of a histogram's time, which every point has.
const SHOWN: [u32; 3] = [TIME, 4, 6];
const TIME: u32 = 3;

/// Draws points, which come in the order of their times.
pub(super) struct Metering<'a> {
    points: &'a Points,
    /// The sums of series whose points are differences.
    totals: Vec<f64>,
    states: Vec<Shown>,
    /// The metrics whose head is in this file.
    described: HashSet<u32>,
}

/// What a row of states shows.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    state: Option<u32>,
    /// The time of the last point of that state.
    time: u64,
}

impl<'a> Metering<'a> {
    pub(super) fn new(points: &'a Points) -> Self {
        Self {
            points,
            totals: vec![0.0; points.series.len()],
            states: vec![Shown::default(); points.state_tracks.len()],
            described: HashSet::new(),
        }
    }

    /// Draws one reading.
    pub(super) fn draw<P: PerfettoParts>(
        &mut self,
        reading: Reading<'_>,
        time: u64,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        match reading {
            Reading::Count {
                series,
                value,
                carried,
            } => self.count((series, value), carried, time, output),
            Reading::State { track, state } => self.state(track, state, time, output),
            Reading::Point { resource, carried } => self.point(resource, carried, time, output),
        }
    }

    fn count<P: PerfettoParts>(
        &mut self,
        (number, value): (u32, CounterValue),
        carried: Option<EncodedPoint<'_>>,
        time: u64,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        if let Some(carried) = carried {
            self.describe(carried.metric, time, output)?;
        }
        let series = &self.points.series[number as usize];
        let track = counter(number, self.points, time, output)?;
        let shown = if series.is_delta {
            let total = &mut self.totals[number as usize];
            let delta = as_f64(value);
            // A sum with one NaN or infinity in it stays so.
            *total += if delta.is_finite() { delta } else { 0.0 };
            CounterValue::Double(*total)
        } else {
            value
        };
        let Some(carried) = carried else {
            return Ok(output.trace.count(track, time, shown)?);
        };
        let mut outcome = Ok(());
        output.trace.count_with(track, time, shown, |event| {
            let without: &[u32] = match (series.is_delta, is_at(carried, time)) {
                (false, true) => &SHOWN,
                (true, true) => &[TIME],
                _ => &[],
            };
            outcome = self.add_point(carried, without, &mut event.annotations());
        })?;
        Ok(outcome?)
    }

    /// Draws a point that no counter shows, as an instant on the heading of all counters.
    fn point<P: PerfettoParts>(
        &mut self,
        resource: u32,
        carried: EncodedPoint<'_>,
        time: u64,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        self.describe(carried.metric, time, output)?;
        let heading = output.metrics(resource, time)?;
        let mut outcome = Ok(());
        output.trace.instant(heading, time, "point", |event| {
            outcome = self.add_point(carried, &[], &mut event.annotations());
        })?;
        Ok(outcome?)
    }

    /// Writes the fields of a metric besides its points, once a file.
    fn describe<P: PerfettoParts>(
        &mut self,
        number: u32,
        time: u64,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        if !self.described.insert(number) {
            return Ok(());
        }
        let head = &self.points.heads[number as usize];
        let heading = output.metrics(head.resource, time)?;
        let mut outcome = Ok(());
        output.trace.instant(heading, time, "metric", |event| {
            event.annotations().map(KEY, |map| {
                map.add("metric", number);
                map.add("scope", head.scope);
                outcome = message::add(Metric::descriptor(), &head.bytes, &[], map);
            });
        })?;
        Ok(outcome?)
    }

    fn add_point(
        &self,
        carried: EncodedPoint<'_>,
        shown: &[u32],
        out: &mut Annotations<'_>,
    ) -> Result<(), WireError> {
        let mut outcome = Ok(());
        out.map(KEY, |map| {
            map.add("point_of", carried.metric);
            let data = self.points.heads[carried.metric as usize].data();
            let point = data.and_then(descriptor_of);
            if let Some(about) = point {
                // Only a number is what its counter shows; of a distribution the counter is one of many.
                let without = if about.name == "NumberPoint" { shown } else { &[] };
                outcome = message::add(about, carried.bytes, without, map);
                if about.name == "NumberPoint" && !without.contains(&TIME) && is_at(carried, 0) {
                    // Fields with their default are left out: without it, the time of the counter would count.
                    map.add("timeUnixNano", 0_u64);
                }
            }
        });
        outcome
    }

    fn state<P: PerfettoParts>(
        &mut self,
        number: u32,
        state: u32,
        time: u64,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        let shown = &mut self.states[number as usize];
        shown.time = time;
        // A repeated state is drawn once.
        if shown.state.replace(state) == Some(state) {
            return Ok(());
        }
        let NameKey { resource, name } = &self.points.state_tracks[number as usize];
        let track = output.state(number, *resource, name, time)?;
        let label = self.points.labels.get(state);
        Ok(output.trace.set_state(track, time, Some(label))?)
    }

    /// Ends the open states at the end of a file, each at its last point.
    pub(super) fn finish_page<P: PerfettoParts>(
        &mut self,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        self.described.clear();
        for (number, shown) in (0..).zip(&mut self.states) {
            if shown.state.take().is_some() {
                let NameKey { resource, name } = &self.points.state_tracks[number as usize];
                let track = output.state(number, *resource, name, shown.time)?;
                output.trace.set_state(track, shown.time, None)?;
            }
        }
        Ok(())
    }

    /// Writes the metrics that have no points.
    pub(super) fn finish<P: PerfettoParts>(
        &mut self,
        time: u64,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        (0..self.points.heads.len() as u32).try_for_each(|metric| self.describe(metric, time, output))?;
        self.finish_page(output)
    }
}

/// Whether a number has this time for its own.
fn is_at(point: EncodedPoint<'_>, time: u64) -> bool {
    NumberPoint::decode(point.bytes).is_ok_and(|point| point.time_unix_nano == time)
}

/// The message that the points of a field of `Metric` are.
fn descriptor_of(data: u32) -> Option<&'static pulsetrain_otlp::descriptor::MessageDescriptor> {
    let (_, field) = Metric::descriptor().by_number(data)?;
    let Kind::One(data) = field.kind else {
        return None;
    };
    let (_, points) = data().by_number(1)?;
    match points.kind {
        Kind::Many(point) => Some(point()),
        _ => None,
    }
}

fn counter<P: PerfettoParts>(
    number: u32,
    points: &Points,
    time: u64,
    output: &mut TraceOutput<'_, P>,
) -> Result<CounterTrack, PerfettoError> {
    let known = points.series.get_index(number as usize);
    let (NameKey { resource, name }, series) = known.expect("invariant: readings have numbers of series");
    let heading = match points.families.get_index(series.family as usize) {
        Some((metric, counters)) if *counters > 1 => {
            output.metric((series.family, &metric.name), *resource, time)?
        }
        _ => output.metrics(*resource, time)?,
    };
    let about = Counter {
        name,
        unit: unit(&series.unit),
        description: &series.description,
        scale: series.scale.as_deref(),
    };
    Ok(output.counter(number, heading, &about)?)
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
