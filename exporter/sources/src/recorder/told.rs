//! Which series a run has told of, so that they can be ended with it.
//!
//! Only who follows a run keeps this: a finished log does not say whether its run is over.

use std::collections::HashSet;

use pulsetrain_otlp::write::{Attribute, MetricsWriter, PointParts, Value};
use pulsetrain_semconv::{self as semconv, Metric};

use super::{Recorder, series::series_key};

/// How long after the last point of a run its series end: at once, and still later for who counts in milliseconds.
const AFTER_NANOS: u64 = 1_000_000;

/// The series that points were recorded for, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Told {
    series: Vec<Series>,
    /// By the ordinal of the metric, what tells its series from one another: some metrics have thousands.
    known: Vec<HashSet<String>>,
}

#[derive(Debug)]
struct Series {
    metric: &'static Metric,
    attributes: Vec<(&'static semconv::Attribute, Owned)>,
}

/// A value that a series can have in its attributes.
#[derive(Debug)]
enum Owned {
    Text(Box<str>),
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl Told {
    /// Notes the series of a point.
    pub(super) fn note(&mut self, metric: &'static Metric, attributes: &[Attribute<'_>]) {
        let ordinal = usize::from(metric.ordinal);
        if self.known.len() <= ordinal {
            self.known.resize_with(ordinal + 1, HashSet::new);
        }
        let known = &mut self.known[ordinal];
        let key = series_key(attributes);
        if known.contains(&key) {
            return;
        }
        known.insert(key);
        self.series.push(Series {
            metric,
            attributes: attributes
                .iter()
                .filter_map(|(attribute, value)| Some((*attribute, Owned::of(value)?)))
                .collect(),
        });
    }

    /// Ends all of them, and says how many they were.
    pub(super) fn end(&mut self, time_unix_nanos: u64, writer: &mut MetricsWriter) -> u64 {
        let all = std::mem::take(self).series;
        for series in &all {
            let attributes: Vec<Attribute<'_>> = series
                .attributes
                .iter()
                .map(|(attribute, value)| (*attribute, value.borrowed()))
                .collect();
            let point = PointParts {
                start_unix_nanos: 0,
                time_unix_nanos,
                attributes: &attributes,
            };
            writer.end_of_series(series.metric, point);
        }
        all.len() as u64
    }
}

impl Owned {
    /// Nothing where the value is none that tells series apart.
    fn of(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(Self::Text((*text).into())),
            Value::Bool(is) => Some(Self::Bool(*is)),
            Value::Int(number) => Some(Self::Int(*number)),
            Value::Double(number) => Some(Self::Double(*number)),
            Value::Bytes(_) | Value::List(_) | Value::Map(_) => None,
        }
    }

    fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::Bool(is) => Value::Bool(*is),
            Self::Int(number) => Value::Int(*number),
            Self::Double(number) => Value::Double(*number),
        }
    }
}

impl Recorder<'_> {
    /// The same recorder, which keeps in mind what [`end_series`](Self::end_series) ends.
    pub(crate) fn keeping_series(mut self) -> Self {
        self.told = Some(Told::default());
        self
    }

    /// Ends every series of the run, in all ranks: just after its last point, whenever that is noticed.
    pub(crate) fn end_series(&mut self) {
        let time_unix_nanos = self.last_unix_nanos.saturating_add(AFTER_NANOS);
        let own = self.told.as_mut();
        let mut ended = own.map_or(0, |told| told.end(time_unix_nanos, &mut self.metrics));
        for rank in self.ranks.values_mut() {
            ended += rank.end_series(time_unix_nanos);
        }
        self.counts.points += ended;
    }
}
