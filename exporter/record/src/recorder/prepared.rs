//! Series that are recorded repeatedly: their attributes are encoded once.

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, EncodedSeries},
};
use pulsetrain_semconv::{Instrument, Metric};

use super::{Recorder, number};
use crate::SkipReason;

/// A series by its metric and its attributes, with its cached index in a table.
#[derive(Debug)]
pub struct PreparedSeries {
    pub(super) encoded: EncodedSeries,
    /// The id of the table that the index is for, or 0 if there is no index yet.
    pub(super) table: u64,
    pub(super) index: usize,
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
}

impl Recorder<'_> {
    /// Records a value of a series, as [`record`](Self::record) does with its metric and its attributes.
    #[inline]
    pub fn record_prepared(&mut self, series: &mut PreparedSeries, time_unix_nanos: UnixNanos, value: f64) {
        self.last_unix_nanos = self.last_unix_nanos.max(time_unix_nanos);
        let metric = series.encoded.metric();
        let (start_unix_nanos, value) = match metric.instrument {
            Instrument::Counter | Instrument::Histogram if !value.is_finite() || value < 0.0 => {
                return self.skipped.count(SkipReason::NotSummable);
            }
            Instrument::Gauge => (UnixNanos::UNKNOWN, value),
            Instrument::UpDownCounter => (self.start(time_unix_nanos), value),
            Instrument::Counter => {
                let Some(total) = self.current.series.add(series, value) else {
                    return self.skipped.count(SkipReason::TooManySeries);
                };
                (self.start(time_unix_nanos), total)
            }
            Instrument::Histogram => return self.observe(series, time_unix_nanos, value),
        };
        let value = number(metric, value);
        let metrics = &mut self.current.metrics;
        metrics.number_of(&series.encoded, start_unix_nanos, time_unix_nanos, value);
        self.count_point(series);
    }

    /// Adds a value to a histogram.
    fn observe(&mut self, series: &mut PreparedSeries, time_unix_nanos: UnixNanos, value: f64) {
        let start_unix_nanos = self.start(time_unix_nanos);
        let Some(histogram) = self.current.series.histogram(series) else {
            return self.skipped.count(SkipReason::TooManySeries);
        };
        let metrics = &mut self.current.metrics;
        metrics.observe(histogram, (start_unix_nanos, time_unix_nanos), value);
        self.note_step_duration(series.encoded.metric(), time_unix_nanos, value);
        self.count_point(series);
    }

    #[inline]
    fn count_point(&mut self, series: &PreparedSeries) {
        if let Some(active) = &mut self.current.active {
            active.note(&series.encoded);
        }
        self.counts.points += 1;
    }
}
