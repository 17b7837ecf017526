//! Series: the encoding of numbers, sums and histograms, state sets, repetition, ends, and limits.
//!
//! Every source and stage writes its points through a [`SeriesWriter`], so that these rules are the same everywhere. `table` has
//! the totals of series and knows which of them have not ended, `states` has the state sets.

mod states;
mod table;
mod writer;

use std::time::Duration;

use pulsetrain_otlp::{
    view::NumberValue,
    write::{Attribute, EncodedSeries},
};
use pulsetrain_semconv::{Metric, Number};

pub use self::writer::SeriesWriter;

/// The interval after which an unchanged value is sent again: well below the five minutes after which Prometheus treats a series
/// as stale.
pub const REPEAT_AFTER: Duration = Duration::from_secs(60);

/// The limits of the series of one resource. By default they are 0: the caller keeps the values of its series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesLimits {
    /// The number of sums or histograms of one metric, and of state sets. Values of further ones are not written.
    pub per_metric: usize,
    /// The number of series that can be ended; 0 if series are never ended. Further ones are written, and have no end.
    pub ended: usize,
}

/// The result of ending series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSeries {
    /// The number of series that ended.
    pub ended: u64,
    /// The number of points, since the last end, of series that were beyond the limit and have no end.
    pub beyond: u64,
}

/// A series by its metric and its attributes, which are encoded once, with its cached index in a table.
#[derive(Debug)]
pub struct PreparedSeries {
    encoded: EncodedSeries,
    /// The id of the table that the index is for, or 0 if there is no index yet.
    table: u64,
    index: usize,
}

impl PreparedSeries {
    /// Returns the series of a metric with these attributes.
    #[inline]
    pub fn new(metric: &'static Metric, attributes: &[Attribute<'_>]) -> Self {
        Self {
            encoded: EncodedSeries::new(metric, attributes),
            table: 0,
            index: 0,
        }
    }

    /// Returns the metric.
    #[inline]
    pub fn metric(&self) -> &'static Metric {
        self.encoded.metric()
    }
}

/// Converts a value to the type of its metric. Integers are rounded, because a conversion of units is inexact: 8.03 GB is
/// 8029999999.999999 bytes.
#[inline]
pub fn number(metric: &Metric, value: f64) -> NumberValue {
    match metric.number {
        Number::Int => NumberValue::Int(value.round() as i64),
        Number::Double => NumberValue::Double(value),
    }
}

/// Converts a count in units of `scale` to the type of its metric. Integers keep all of their bits.
pub fn scaled_count(metric: &Metric, count: u64, scale: f64) -> NumberValue {
    match metric.number {
        Number::Int if scale.fract() == 0.0 => NumberValue::Int(count.saturating_mul(scale as u64) as i64),
        _ => number(metric, count as f64 * scale),
    }
}

#[cfg(test)]
mod tests;
