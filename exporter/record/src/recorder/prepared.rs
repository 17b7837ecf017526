//! Series that are recorded again and again: what is the same in all their points is made once.

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{Attribute, EncodedSeries, MetricsWriter},
};
use pulsetrain_semconv::{Instrument, Metric};

use super::{Recorder, active_series::ActiveSeries, number, series::SeriesKey};
use crate::SkipReason;

/// A series by its metric and its attributes.
#[derive(Debug)]
pub struct PreparedSeries {
    encoded: EncodedSeries,
    key: SeriesKey,
}

impl PreparedSeries {
    /// Returns the series of a metric with these attributes.
    pub fn new(metric: &'static Metric, attributes: &[Attribute<'_>]) -> Self {
        Self {
            encoded: EncodedSeries::new(metric, attributes),
            key: SeriesKey::new(attributes),
        }
    }

    /// Adds a point of a gauge or a sum.
    #[inline]
    pub(super) fn add_to(
        &self,
        metrics: &mut MetricsWriter,
        start_unix_nanos: UnixNanos,
        time_unix_nanos: UnixNanos,
        value: NumberValue,
    ) {
        metrics.number_of(&self.encoded, start_unix_nanos, time_unix_nanos, value);
    }

    /// Adds the series to the active ones, if they are tracked.
    #[inline]
    pub(super) fn note_in(&self, active: Option<&mut ActiveSeries>) {
        if let Some(active) = active {
            active.note_encoded(&self.encoded, self.key.as_str());
        }
    }
}

impl Recorder<'_> {
    /// Records a value of a series, as [`record`](Self::record) does with its metric and its attributes.
    #[inline]
    pub fn record_prepared(&mut self, series: &mut PreparedSeries, time_unix_nanos: UnixNanos, value: f64) {
        self.last_unix_nanos = self.last_unix_nanos.max(time_unix_nanos);
        let PreparedSeries { encoded, key } = series;
        let metric = encoded.metric();
        let (start_unix_nanos, value) = match metric.instrument {
            Instrument::Counter | Instrument::Histogram if !value.is_finite() || value < 0.0 => {
                return self.skipped.count(SkipReason::NotSummable);
            }
            Instrument::Gauge => (UnixNanos::UNKNOWN, value),
            Instrument::UpDownCounter => (self.start(time_unix_nanos), value),
            Instrument::Counter => {
                let Some(total) = self.series.add_known(metric, key, value) else {
                    return self.skipped.count(SkipReason::TooManySeries);
                };
                (self.start(time_unix_nanos), total)
            }
            Instrument::Histogram => return self.observe_prepared(series, time_unix_nanos, value),
        };
        self.metrics
            .number_of(encoded, start_unix_nanos, time_unix_nanos, number(metric, value));
        self.note_prepared(series);
    }

    fn observe_prepared(&mut self, series: &mut PreparedSeries, time_unix_nanos: UnixNanos, value: f64) {
        let start_unix_nanos = self.start(time_unix_nanos);
        let PreparedSeries { encoded, key } = series;
        let metric = encoded.metric();
        let Some(histogram) = self.series.known_histogram(encoded, key) else {
            return self.skipped.count(SkipReason::TooManySeries);
        };
        self.metrics
            .observe(histogram, (start_unix_nanos, time_unix_nanos), value);
        self.note_step_duration(metric, time_unix_nanos, value);
        self.note_prepared(series);
    }

    #[inline]
    fn note_prepared(&mut self, series: &PreparedSeries) {
        series.note_in(self.active.as_mut());
        self.counts.points += 1;
    }
}
