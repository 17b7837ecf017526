//! The readings of a driver: each one value of one series, as the driver returned it.

use std::{
    hash::{Hash, Hasher},
    ptr,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Attribute, Metric};

/// A value of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// What it is of.
    pub(crate) entity: Entity,
    /// The metric.
    pub(crate) metric: &'static Metric,
    /// Identifies the series among those of the metric.
    pub(crate) labels: Labels,
    /// The value.
    pub(crate) value: Sample,
    /// When the driver measured it, if known.
    pub(crate) time_unix_nanos: UnixNanos,
    /// How often it is read: when it is missed.
    pub(crate) cadence: Cadence,
}

/// How often something is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// In every pass.
    #[default]
    Tick,
    /// Every few seconds: what changes seldom or costs more.
    Seldom,
    /// Once, because it never changes.
    Once,
}

/// What of a GPU a value is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entity {
    /// All of it.
    #[default]
    Gpu,
    /// A MIG device, by its number among those of the GPU.
    Instance(u32),
    /// A process.
    Process(u32),
}

/// A value as the driver returned it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sample {
    /// What it is now.
    Now(f64),
    /// What a counter of the driver has come to.
    Total {
        /// The counter.
        raw: u64,
        /// What one count is in the metric's unit.
        scale: f64,
        /// Whether the counter has 32 bits and starts over.
        wraps: bool,
    },
    /// The value of a counter at an earlier time than that of the pass.
    Earlier {
        /// The counter.
        raw: u64,
        /// One count in the unit of the metric.
        scale: f64,
    },
    /// The state that holds, of those of the attribute.
    State(&'static Attribute, &'static str),
    /// One of many observations.
    Observed(f64),
    /// None of them since the last time.
    NothingObserved,
}

/// What distinguishes a series from others of its metric: fixed attributes, and one that is a number. Descriptive attributes are
/// written with the points and identify nothing: two labels that differ in them alone are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels {
    /// Attributes that the table names.
    pub(crate) fixed: Fixed,
    /// The number of a link, a fan ...
    pub(crate) number: Option<(&'static Attribute, i64)>,
}

/// Attributes with the value that each has.
pub(crate) type Fixed = &'static [(&'static Attribute, &'static str)];

impl Labels {
    /// Fixed attributes alone.
    pub(crate) const fn fixed(fixed: Fixed) -> Self {
        Self { fixed, number: None }
    }

    /// Fixed attributes and a number.
    pub(crate) fn numbered(fixed: Fixed, attribute: &'static Attribute, number: u32) -> Self {
        Self {
            fixed,
            number: Some((attribute, i64::from(number))),
        }
    }
}

impl Labels {
    /// Whether the descriptive attributes of both are the same.
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

/// Where the rows of the table put what they read.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// What was read so far.
    pub(crate) all: Vec<Reading>,
    /// What the next ones are of.
    pub(crate) entity: Entity,
    /// How often the next ones are read.
    pub(crate) cadence: Cadence,
}

impl Readings {
    /// What it is now.
    pub(crate) fn now(&mut self, metric: &'static Metric, labels: Labels, value: f64) {
        self.put(metric, labels, Sample::Now(value), UnixNanos::UNKNOWN);
    }

    /// Whether something holds.
    pub(crate) fn flag(&mut self, metric: &'static Metric, fixed: Fixed, holds: bool) {
        self.now(metric, Labels::fixed(fixed), f64::from(u8::from(holds)));
    }

    /// What a counter of 64 bits has come to.
    pub(crate) fn total(&mut self, metric: &'static Metric, labels: Labels, raw: u64, scale: f64) {
        let value = Sample::Total {
            raw,
            scale,
            wraps: false,
        };
        self.put(metric, labels, value, UnixNanos::UNKNOWN);
    }

    /// The state that holds.
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

    /// Any value, with the driver's own time where there is one.
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
