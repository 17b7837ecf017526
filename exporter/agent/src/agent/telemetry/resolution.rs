//! The resolution of the agent's own durations.

use opentelemetry_sdk::metrics::{Aggregation, Instrument, Stream};
use pulsetrain_semconv::metric;

/// The maximum number of buckets; beyond it, neighbours are merged (the default of OpenTelemetry's SDKs).
const BUCKETS: u32 = 160;
/// The finest scale of Prometheus, whose native histograms have schemas up to 8.
const FINEST_SCALE: i8 = 8;

/// Selects exponential buckets for durations: a delivery takes microseconds to the page, and up to a minute to a
/// Collector that is down. Exponential buckets cover both with an error of a few percent. The duration of a reading keeps
/// its bounds, because sources write that metric too.
pub(super) fn view_for(instrument: &Instrument) -> Option<Stream> {
    if instrument.name() != metric::PULSETRAIN_EXPORT_DURATION.name {
        return None;
    }
    let aggregation = Aggregation::Base2ExponentialHistogram {
        max_size: BUCKETS,
        max_scale: FINEST_SCALE,
        record_min_max: true,
    };
    Stream::builder().with_aggregation(aggregation).build().ok()
}
