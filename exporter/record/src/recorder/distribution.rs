//! Distributions that a source has aggregated itself: each point is a delta, with bounds of its own.

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, HistogramParts, PointParts},
};
use pulsetrain_semconv as semconv;

use super::Recorder;
use crate::SkipReason;

impl Recorder<'_> {
    /// Records a distribution under a name that the registry does not know, as `train.custom_distribution`. It contains the
    /// observations after `start_unix_nanos`.
    pub fn record_custom_distribution(
        &mut self,
        start_unix_nanos: UnixNanos,
        time_unix_nanos: UnixNanos,
        name: &str,
        parts: HistogramParts<'_>,
        bounds: &[f64],
    ) {
        if !self.custom.admit(name) {
            return self.skipped.count(SkipReason::TooManyCustomNames);
        }
        let attributes = [(&semconv::attribute::TRAIN_CUSTOM_NAME, AttributeValue::Text(name))];
        let point = PointParts {
            start_unix_nanos,
            time_unix_nanos,
            attributes: &attributes,
        };
        let metric = &semconv::metric::TRAIN_CUSTOM_DISTRIBUTION;
        self.last_unix_nanos = self.last_unix_nanos.max(time_unix_nanos);
        let series = &mut self.current.series;
        series.points().distribution(metric, point, parts, bounds);
        series.mark_active(metric, &attributes);
        self.counts.points += 1;
    }
}
