//! The metrics of the passes themselves: the duration of each pass over the GPUs, and the time of the last success.

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Metric, attribute, metric};

use super::{
    store::{Observation, ObservationContext, SeriesStore},
    subject::EntityAttributes,
};
use crate::OwnedValue;

/// The passes of a source.
pub(super) struct ScrapeStats(EntityAttributes);

impl ScrapeStats {
    /// Returns the passes of the source with this name.
    pub(super) fn new(source: &str) -> Self {
        let name = OwnedValue::from(source);
        Self(Arc::new([(&attribute::PULSETRAIN_SOURCE_NAME, name)]))
    }

    /// Records a successful pass that began at this time.
    pub(super) fn record(&self, store: &mut SeriesStore, began_unix_nanos: UnixNanos, took: Duration) {
        let place = |metric| ObservationContext::of_host(&self.0, metric, began_unix_nanos);
        let secs = Duration::from_nanos(began_unix_nanos.0).as_secs_f64();
        store.observe(
            place(&metric::PULSETRAIN_SOURCE_DURATION),
            Observation::Observed(took.as_secs_f64()),
        );
        store.observe(
            place(&metric::PULSETRAIN_SOURCE_LAST_SUCCESS_TIME),
            Observation::Now(secs),
        );
    }
}

/// Returns whether a metric describes the passes, and not their readings.
pub(super) fn is_scrape_metric(metric: &Metric) -> bool {
    [
        &metric::PULSETRAIN_SOURCE_DURATION,
        &metric::PULSETRAIN_SOURCE_LAST_SUCCESS_TIME,
    ]
    .iter()
    .any(|own| own.ordinal == metric.ordinal)
}
