//! Draws series on counter tracks and states on state tracks; in a full trace, with the other fields of each point.

use std::collections::HashSet;

use pulsetrain_otlp::{
    WireError,
    descriptor::FieldKind,
    view::{Message, Metric, NumberPoint},
};
use pulsetrain_perfetto::{Annotations, Counter, CounterTrack, CounterUnit, CounterValue};

use super::{
    PerfettoError,
    counter_names::DistinctNames,
    identity::KEY,
    message,
    points::{NameKey, Points},
    readings::{EncodedPoint, Reading},
    scopes::Scopes,
    trace_output::{PerfettoParts, TraceOutput},
};

/// The fields of `NumberDataPoint` that a counter already contains, and the time field of points.
const SHOWN: [u32; 3] = [TIME, 4, 6];
const TIME: u32 = 3;

/// Draws points in the order of their times.
pub(super) struct Metering<'a> {
    points: &'a Points,
    names: DistinctNames,
    /// The running totals of delta series.
    totals: Vec<f64>,
    states: Vec<CurrentState>,
    /// The metrics whose head is already in the current file.
    described: HashSet<u32>,
}

/// The current state of a row of states.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentState {
    state: Option<u32>,
    /// The time of the last point of that state.
    time: u64,
}

impl<'a> Metering<'a> {
    pub(super) fn new(points: &'a Points, scopes: &Scopes) -> Self {
        Self {
            points,
            names: DistinctNames::new(points, scopes),
            totals: vec![0.0; points.series.len()],
            states: vec![CurrentState::default(); points.state_tracks.len()],
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
        let track = counter(number, self.points, &self.names, time, output)?;
        let shown = if series.is_delta {
            let total = &mut self.totals[number as usize];
            let delta = as_f64(value);
            // After NaN or infinity, a sum could not recover.
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

    /// Draws a point without a counter value, as an instant on the heading of all counters.
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

    /// Writes the fields of a metric except its points, once for each file.
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
                // Only a number is equal to its counter value; a distribution has several counters.
                let without = if about.name == "NumberPoint" { shown } else { &[] };
                outcome = message::add(about, carried.bytes, without, map);
                if about.name == "NumberPoint" && !without.contains(&TIME) && is_at(carried, 0) {
                    // Default values are omitted: without this entry, the reader would use the time of the counter.
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
        let (resource, name) = state_row(number, self.points, &self.names);
        let track = output.state(number, resource, name, time)?;
        let label = self.points.labels.get(state);
        Ok(output.trace.set_state(track, time, Some(label))?)
    }

    /// Ends the open states at the end of a file, each at the time of its last point.
    pub(super) fn finish_page<P: PerfettoParts>(
        &mut self,
        output: &mut TraceOutput<'_, P>,
    ) -> Result<(), PerfettoError> {
        self.described.clear();
        for (number, shown) in (0..).zip(&mut self.states) {
            if shown.state.take().is_some() {
                let (resource, name) = state_row(number, self.points, &self.names);
                let track = output.state(number, resource, name, shown.time)?;
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

/// Returns whether the time field of a number point is `time`.
fn is_at(point: EncodedPoint<'_>, time: u64) -> bool {
    NumberPoint::decode(point.bytes).is_ok_and(|point| point.time_unix_nano == time)
}

/// Returns the descriptor of the points in a field of `Metric`.
fn descriptor_of(data: u32) -> Option<&'static pulsetrain_otlp::descriptor::MessageDescriptor> {
    let (_, field) = Metric::descriptor().by_number(data)?;
    let FieldKind::One(data) = field.kind else {
        return None;
    };
    let (_, points) = data().by_number(1)?;
    match points.kind {
        FieldKind::Many(point) => Some(point()),
        _ => None,
    }
}

fn counter<P: PerfettoParts>(
    number: u32,
    points: &Points,
    names: &DistinctNames,
    time: u64,
    output: &mut TraceOutput<'_, P>,
) -> Result<CounterTrack, PerfettoError> {
    let (key, series) = points.series_of(number);
    let (NameKey { resource, name }, counters) = points.metric(key.stream);
    let heading = if counters > 1 {
        let family = points.stream(key.stream).family;
        output.metric((family, name), *resource, time)?
    } else {
        output.metrics(*resource, time)?
    };
    let about = Counter {
        name: names.series(number, &key.name),
        unit: unit(&series.unit),
        description: &series.description,
        scale: series.scale.as_deref(),
    };
    Ok(output.counter(number, heading, &about)?)
}

/// Returns the resource and the name of a row of states.
fn state_row<'a>(number: u32, points: &'a Points, names: &'a DistinctNames) -> (u32, &'a str) {
    let stream = points.state_tracks[number as usize];
    let (NameKey { resource, name }, _) = points.metric(stream);
    (*resource, names.state(number, name))
}

/// Converts a UCUM unit without braces to a unit that Perfetto defines, if there is an equal one.
fn unit(ucum: &str) -> CounterUnit<'_> {
    match ucum {
        "" | "1" => CounterUnit::Unspecified,
        "ns" => CounterUnit::TimeNanos,
        "By" => CounterUnit::SizeBytes,
        other => CounterUnit::Named(other),
    }
}

fn as_f64(value: CounterValue) -> f64 {
    match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    }
}
