//! How finely the agent's own durations are told.

use opentelemetry_sdk::metrics::{Aggregation, Instrument, Stream};
use pulsetrain_semconv::metric;

/// So many buckets are kept; where they do not reach, two become one (the size that OpenTelemetry's SDKs start from).
const BUCKETS: u32 = 160;
/// The finest that Prometheus knows: its native histograms have the schemas up to 8.
const FINEST_SCALE: i8 = 8;

/// A delivery takes microseconds to the page and a minute to a Collector that is down: buckets that grow exponentially tell
/// both to within a few percent. The time of a reading keeps its bounds, because sources write that metric too.
pub(super) fn of(instrument: &Instrument) -> Option<Stream> {
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
