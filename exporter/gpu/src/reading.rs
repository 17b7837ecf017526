//! The readings of a driver: each one value of one series, as the driver returned it.

use std::{
    hash::{Hash, Hasher},
    ptr,
    time::Duration,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Attribute, Metric};

/// A value of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The GPU, the instance or the process that the value belongs to.
    pub(crate) entity: Entity,
    /// The metric.
    pub(crate) metric: &'static Metric,
    /// Identifies the series among those of the metric.
    pub(crate) labels: Labels,
    /// The value.
    pub(crate) value: Sample,
    /// When the driver measured it, if known.
    pub(crate) time_unix_nanos: UnixNanos,
    /// The cadence of the readings, which decides when one is missing.
    pub(crate) cadence: Cadence,
}

/// The cadence of a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// In every pass.
    #[default]
    Tick,
    /// Every [`INFREQUENT_INTERVAL`]: values that change seldom or cost more.
    Infrequent,
    /// Once, because it never changes.
    Once,
}

/// The interval of values that change seldom.
pub(crate) const INFREQUENT_INTERVAL: Duration = Duration::from_secs(5);

/// The GPU, or the instance or process on it, that a value belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entity {
    /// The GPU itself.
    #[default]
    Gpu,
    /// A MIG device, by its index on the GPU.
    Instance(u32),
    /// A process, by its id.
    Process(u32),
}

/// A value as the driver returned it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    /// The current value.
    Now(f64),
    /// The total of a counter of the driver.
    Total {
        /// The counter.
        raw: u64,
        /// One count in the unit of the metric.
        scale: f64,
        /// Whether the counter has 32 bits and wraps.
        wraps: bool,
    },
    /// The value of a counter at an earlier time than that of the pass.
    Earlier {
        /// The counter.
        raw: u64,
        /// One count in the unit of the metric.
        scale: f64,
    },
    /// The current state, one of the values of the attribute.
    State(&'static Attribute, &'static str),
    /// An observation for a histogram.
    Observed(f64),
    /// No observation for a histogram since the last reading.
    NothingObserved,
}

/// The attributes that distinguish a series from others of its metric: fixed ones, and one with a number. Descriptive attributes
/// are written with the points but do not identify the series: two labels that differ only in them are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels {
    /// Attributes that the table names.
    pub(crate) fixed: Fixed,
    /// The number of a link, a fan or a similar part.
    pub(crate) number: Option<(&'static Attribute, i64)>,
}

/// Attributes with their values.
pub(crate) type Fixed = &'static [(&'static Attribute, &'static str)];

impl Labels {
    /// Returns labels with fixed attributes only.
    pub(crate) const fn fixed(fixed: Fixed) -> Self {
        Self { fixed, number: None }
    }

    /// Returns labels with fixed attributes and a number.
    pub(crate) fn numbered(fixed: Fixed, attribute: &'static Attribute, number: u32) -> Self {
        Self {
            fixed,
            number: Some((attribute, i64::from(number))),
        }
    }
}

impl Labels {
    /// Returns whether the descriptive attributes of both are the same.
    pub(crate) fn same_description(&self, other: &Self) -> bool {
        ptr::eq(self.fixed, other.fixed) || self.parts(true).eq(other.parts(true))
    }

    /// Names and values of the fixed attributes that are descriptive, or of those that are not.
    fn parts(&self, descriptive: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
        let wanted = self
            .fixed
            .iter()
            .filter(move |(attribute, _)| attribute.descriptive == descriptive);
        wanted.map(|(attribute, value)| (attribute.name, *value))
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        let number = |labels: &Self| labels.number.map(|(attribute, number)| (attribute.name, number));
        number(self) == number(other)
            && (ptr::eq(self.fixed, other.fixed) || self.parts(false).eq(other.parts(false)))
    }
}

impl Eq for Labels {}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (_, value) in self.parts(false) {
            value.hash(state);
        }
        self.number.map(|(_, number)| number).hash(state);
    }
}

/// Returns 1 if `holds` is true, else 0.
pub(crate) fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The readings to which the rows of the table append.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// The readings so far.
    pub(crate) all: Vec<Reading>,
    /// The entity of the next readings.
    pub(crate) entity: Entity,
    /// The cadence of the next readings.
    pub(crate) cadence: Cadence,
}

impl Readings {
    /// Adds the current value of a metric.
    pub(crate) fn now(&mut self, metric: &'static Metric, labels: Labels, value: f64) {
        self.put(metric, labels, Sample::Now(value), UnixNanos::UNKNOWN);
    }

    /// Adds 1 if `holds` is true, else 0.
    pub(crate) fn flag(&mut self, metric: &'static Metric, fixed: Fixed, holds: bool) {
        self.now(metric, Labels::fixed(fixed), flag(holds));
    }

    /// Adds the total of a 64-bit counter.
    pub(crate) fn total(&mut self, metric: &'static Metric, labels: Labels, raw: u64, scale: f64) {
        let value = Sample::Total {
            raw,
            scale,
            wraps: false,
        };
        self.put(metric, labels, value, UnixNanos::UNKNOWN);
    }

    /// Adds the current state.
    pub(crate) fn state(
        &mut self,
        metric: &'static Metric,
        attribute: &'static Attribute,
        state: &'static str,
    ) {
        self.put(
            metric,
            Labels::default(),
            Sample::State(attribute, state),
            UnixNanos::UNKNOWN,
        );
    }

    /// Adds a value with the driver's own time, if it has one.
    pub(crate) fn put(
        &mut self,
        metric: &'static Metric,
        labels: Labels,
        value: Sample,
        time_unix_nanos: UnixNanos,
    ) {
        self.all.push(Reading {
            entity: self.entity,
            metric,
            labels,
            value,
            time_unix_nanos,
            cadence: self.cadence,
        });
    }
}
