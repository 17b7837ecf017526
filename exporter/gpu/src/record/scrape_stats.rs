//! The metrics of the passes themselves: the duration of each pass over the GPUs, and the time of the last success.

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Metric, attribute, metric};

use super::{
    store::{Observation, ObservationContext, SeriesStore},
    subject::EntityAttributes,
};
use crate::{
    OwnedValue,
    reading::{Cadence, Labels},
};

/// The id of the subject that is not a GPU: the ids of GPUs begin with 1.
const SUBJECT: u32 = 0;

/// The passes of a source.
pub(super) struct ScrapeStats(EntityAttributes);

impl ScrapeStats {
    /// Returns the passes of the source with this name.
    pub(super) fn of(source: &str) -> Self {
        let name = OwnedValue::from(source);
        Self(Arc::new([(&attribute::PULSETRAIN_SOURCE_NAME, name)]))
    }

    /// Records a successful pass that began at this time.
    pub(super) fn record(&self, store: &mut SeriesStore, began_unix_nanos: UnixNanos, took: Duration) {
        let place = |metric| ObservationContext {
            subject: SUBJECT,
            carried: &self.0,
            metric,
            labels: Labels::default(),
            texts: [None; 2],
            time_unix_nanos: began_unix_nanos,
            driver_unix_nanos: UnixNanos::UNKNOWN,
            // The time of the last success stays valid until the next one.
            cadence: Cadence::Once,
        };
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
