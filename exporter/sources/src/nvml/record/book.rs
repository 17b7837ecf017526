//! The book of series: what each has come to, when it was said, and that it ends when nothing more is heard of it.

use std::collections::HashMap;

use pulsetrain_otlp::{
    view::NumberValue,
    write::{Attribute, Encoded, Envelope, HistogramParts, MetricsWriter, PointParts, Value},
};
use pulsetrain_semconv::{self as semconv, Instrument, Metric, Number};

use super::{counter::Counter, subject::Carried, subject::written};
use crate::nvml::reading::{Cadence, Labels};

/// After how long what has not changed is said again: well under the five minutes after which Prometheus lets a series go.
const REPEAT_NANOS: u64 = 60_000_000_000;
/// How far the driver's own time may be from ours to be believed: behind and ahead.
const BEHIND_NANOS: u64 = 600_000_000_000;
const AHEAD_NANOS: u64 = 10_000_000_000;

/// Attributes whose values are texts of the program, besides those of [`Labels`].
pub(super) type Texts = [Option<(&'static semconv::Attribute, &'static str)>; 2];

/// What tells a series from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// What it is of.
    pub(super) subject: u32,
    /// The ordinal of the metric.
    metric: u16,
    labels: Labels,
    texts: [Option<&'static str>; 2],
}

/// A value on its way into the book.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    /// What it is now, said whenever it is read.
    Now(f64),
    /// What it is now, said when it changes and once in a while.
    Held(f64),
    /// What a counter of the driver has come to.
    Total { raw: u64, scale: f64, wraps: bool },
    /// How much our own counter grows by.
    Grows(u64),
    /// One of many observations.
    Observed(f64),
}

/// Where and when an entry belongs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// What it is of.
    pub(super) subject: u32,
    /// The attributes of that.
    pub(super) carried: &'a Carried,
    /// The metric.
    pub(super) metric: &'static Metric,
    /// What tells the series from others of the metric.
    pub(super) labels: Labels,
    /// More of the same.
    pub(super) texts: Texts,
    /// When it was read, in nanoseconds since 1970.
    pub(super) time_unix_nanos: u64,
    /// When the driver measured it; zero where it does not say.
    pub(super) driver_unix_nanos: u64,
    /// How often it is read.
    pub(super) cadence: Cadence,
}

struct Series {
    metric: &'static Metric,
    texts: Texts,
    carried: Carried,
    contents: Contents,
    cadence: Cadence,
    start_unix_nanos: u64,
    /// When it was last heard of, by our clock.
    heard_unix_nanos: u64,
    /// When it was last said, by our clock, and the time of the last point.
    said_unix_nanos: u64,
    point_unix_nanos: u64,
    /// Whether it has grown since it was said.
    fresh: bool,
}

enum Contents {
    Number(f64),
    Total(Counter, f64),
    Own(u64),
    Distribution(Box<Distribution>),
}

struct Distribution {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    buckets: Vec<u64>,
}

/// All series, and the points that wait to be sent.
#[derive(Default)]
pub(super) struct Book {
    series: HashMap<Key, Series>,
    writer: MetricsWriter,
}

impl Key {
    /// Whether the texts of the series are these.
    pub(super) fn says(&self, first: &str, second: &str) -> bool {
        self.texts == [Some(first), Some(second)]
    }
}

impl Book {
    /// Takes a value down, and says it where it is to be said.
    pub(super) fn enter(&mut self, place: Place<'_>, entry: Entry) {
        let key = Key {
            subject: place.subject,
            metric: place.metric.ordinal,
            labels: place.labels,
            texts: place.texts.map(|text| text.map(|(_, value)| value)),
        };
        let Self { series, writer } = self;
        let mut is_new = false;
        let series = series.entry(key).or_insert_with(|| {
            is_new = true;
            Series::new(&place, entry)
        });
        if !is_new
            && series.heard_unix_nanos == place.time_unix_nanos
            && !matches!(entry, Entry::Observed(_) | Entry::Grows(_))
        {
            // Two rows give the same series: the first is the better one.
            return;
        }
        series.enter(&key.labels, &place, entry, is_new, writer);
    }

    /// Says what has grown since it was said: distributions, and what we count.
    pub(super) fn say_fresh(&mut self, now_unix_nanos: u64) {
        let Self { series, writer } = self;
        for (key, series) in series.iter_mut().filter(|(_, series)| series.fresh) {
            series.say(&key.labels, now_unix_nanos, writer);
        }
    }

    /// Repeats what was not said for long, and ends what was not heard of for
    /// longer than `patience` allows.
    pub(super) fn sweep(&mut self, now_unix_nanos: u64, patience: impl Fn(Cadence) -> Option<u64>) {
        let Self { series, writer } = self;
        series.retain(|key, series| {
            let unheard = now_unix_nanos.saturating_sub(series.heard_unix_nanos);
            if patience(series.cadence).is_some_and(|patience| unheard > patience) {
                series.end(&key.labels, now_unix_nanos, writer);
                return false;
            }
            let silent = now_unix_nanos.saturating_sub(series.said_unix_nanos);
            if silent >= REPEAT_NANOS {
                series.say(&key.labels, now_unix_nanos, writer);
            }
            true
        });
    }

    /// Ends every series that `is_over` says is.
    pub(super) fn end(&mut self, now_unix_nanos: u64, is_over: impl Fn(&Key, &'static Metric) -> bool) {
        let Self { series, writer } = self;
        series.retain(|key, series| {
            let over = is_over(key, series.metric);
            if over {
                series.end(&key.labels, now_unix_nanos, writer);
            }
            !over
        });
    }

    /// Ends the series of a subject as it was and begins them as it is now, with what they have come to.
    pub(super) fn rename(&mut self, subject: u32, carried: &Carried, now_unix_nanos: u64) {
        let Self { series, writer } = self;
        for (key, series) in series.iter_mut().filter(|(key, _)| key.subject == subject) {
            series.end(&key.labels, now_unix_nanos, writer);
            series.carried = carried.clone();
            // Said anew with the next value, or at once where none will come.
            series.said_unix_nanos = 0;
        }
    }

    /// The points so far as a batch.
    pub(super) fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        self.writer.finish(envelope)
    }
}

impl Series {
    fn new(place: &Place<'_>, entry: Entry) -> Self {
        let contents = match entry {
            Entry::Now(value) | Entry::Held(value) => Contents::Number(value),
            Entry::Total { raw, scale, .. } => Contents::Total(Counter::new(raw, place.point_time(0)), scale),
            Entry::Grows(_) => Contents::Own(0),
            Entry::Observed(_) => Contents::Distribution(Box::new(Distribution {
                count: 0,
                sum: 0.0,
                min: f64::INFINITY,
                max: f64::NEG_INFINITY,
                buckets: vec![0; place.metric.bounds.len() + 1],
            })),
        };
        Self {
            metric: place.metric,
            texts: place.texts,
            carried: place.carried.clone(),
            contents,
            cadence: place.cadence,
            start_unix_nanos: place.point_time(0).min(place.time_unix_nanos),
            heard_unix_nanos: 0,
            said_unix_nanos: 0,
            point_unix_nanos: 0,
            fresh: false,
        }
    }

    fn enter(
        &mut self,
        labels: &Labels,
        place: &Place<'_>,
        entry: Entry,
        is_new: bool,
        writer: &mut MetricsWriter,
    ) {
        let time = place.point_time(self.point_unix_nanos);
        self.heard_unix_nanos = place.time_unix_nanos;
        let silent = place.time_unix_nanos.saturating_sub(self.said_unix_nanos);
        let mut changed = is_new;
        match (&mut self.contents, entry) {
            (Contents::Number(known), Entry::Now(value)) => (*known, changed) = (value, true),
            (Contents::Number(known), Entry::Held(value)) => {
                changed |= *known != value;
                *known = value;
            }
            (Contents::Total(counter, _), Entry::Total { raw, wraps, .. }) => {
                changed = true;
                if !is_new {
                    counter.advance(raw, wraps, time.max(self.point_unix_nanos + 1));
                }
            }
            (Contents::Own(count), Entry::Grows(by)) => {
                *count += by;
                if by > 0 {
                    self.fresh = true;
                    return;
                }
            }
            (Contents::Distribution(seen), Entry::Observed(value)) => {
                seen.observe(value, self.metric.bounds);
                self.point_unix_nanos = self.point_unix_nanos.max(time);
                self.fresh = true;
                return;
            }
            // A metric has one kind of value.
            _ => return,
        }
        // The driver has measured nothing since.
        let same_moment = time <= self.point_unix_nanos;
        if changed && !same_moment || silent >= REPEAT_NANOS {
            let time = if same_moment { place.time_unix_nanos } else { time };
            self.say_at(labels, time, place.time_unix_nanos, writer);
        }
    }

    fn say(&mut self, labels: &Labels, now_unix_nanos: u64, writer: &mut MetricsWriter) {
        let time = match &self.contents {
            // The time of the last observation.
            Contents::Distribution(_) if self.fresh => self.point_unix_nanos,
            _ => now_unix_nanos.max(self.point_unix_nanos + 1),
        };
        self.say_at(labels, time, now_unix_nanos, writer);
    }

    fn say_at(
        &mut self,
        labels: &Labels,
        time_unix_nanos: u64,
        now_unix_nanos: u64,
        writer: &mut MetricsWriter,
    ) {
        self.point_unix_nanos = time_unix_nanos.max(self.point_unix_nanos);
        self.said_unix_nanos = now_unix_nanos;
        self.fresh = false;
        let attributes = attributes(&self.carried, labels, &self.texts);
        let start_unix_nanos = match (&self.contents, self.metric.instrument) {
            (Contents::Total(counter, _), _) => counter.start_unix_nanos(),
            (_, Instrument::Gauge) => 0,
            _ => self.start_unix_nanos,
        };
        let point = PointParts {
            start_unix_nanos,
            time_unix_nanos: self.point_unix_nanos,
            attributes: &attributes,
        };
        match &mut self.contents {
            Contents::Number(value) => writer.number(self.metric, point, number(self.metric, *value)),
            Contents::Own(count) => writer.number(self.metric, point, NumberValue::Int(*count as i64)),
            Contents::Total(counter, scale) => {
                writer.number(self.metric, point, total(self.metric, counter.total(), *scale));
            }
            Contents::Distribution(seen) => {
                let parts = HistogramParts {
                    count: seen.count,
                    sum: seen.sum,
                    min: seen.min,
                    max: seen.max,
                    bucket_counts: &seen.buckets,
                };
                writer.histogram(self.metric, point, parts);
            }
        }
    }

    fn end(&mut self, labels: &Labels, now_unix_nanos: u64, writer: &mut MetricsWriter) {
        let attributes = attributes(&self.carried, labels, &self.texts);
        let point = PointParts {
            start_unix_nanos: 0,
            time_unix_nanos: now_unix_nanos.max(self.point_unix_nanos + 1),
            attributes: &attributes,
        };
        writer.end_of_series(self.metric, point);
        self.point_unix_nanos = point.time_unix_nanos;
    }
}

impl Distribution {
    fn observe(&mut self, value: f64, bounds: &[f64]) {
        // A bucket holds what is at most its upper bound (proto/metrics/v1/metrics.proto, `explicit_bounds`).
        self.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
}

impl Place<'_> {
    /// The time of the point: the driver's own where it can be, else ours.
    fn point_time(&self, last_unix_nanos: u64) -> u64 {
        let ours = self.time_unix_nanos;
        let believed = ours.saturating_sub(BEHIND_NANOS)..=ours + AHEAD_NANOS;
        if believed.contains(&self.driver_unix_nanos) {
            self.driver_unix_nanos
        } else {
            ours.max(last_unix_nanos)
        }
    }
}

fn attributes<'a>(carried: &'a Carried, labels: &Labels, texts: &Texts) -> Vec<Attribute<'a>> {
    let fixed = labels.fixed.iter().copied();
    let texts = fixed.chain(texts.iter().flatten().copied());
    let numbers = labels
        .number
        .iter()
        .map(|(attribute, number)| (*attribute, Value::Int(*number)));
    let mut all = Vec::with_capacity(carried.len() + 4);
    all.extend(written(carried));
    all.extend(texts.map(|(attribute, text)| (attribute, Value::Text(text))));
    all.extend(numbers);
    all
}

/// The value in the type of the metric.
fn number(metric: &Metric, value: f64) -> NumberValue {
    match metric.number {
        Number::Int => NumberValue::Int(value as i64),
        Number::Double => NumberValue::Double(value),
    }
}

/// A count in the unit and the type of the metric; whole numbers keep all of their bits.
fn total(metric: &Metric, count: u64, scale: f64) -> NumberValue {
    match metric.number {
        Number::Int if scale.fract() == 0.0 => NumberValue::Int(count.saturating_mul(scale as u64) as i64),
        _ => number(metric, count as f64 * scale),
    }
}
