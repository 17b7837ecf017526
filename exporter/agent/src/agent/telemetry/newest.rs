//! The time of the newest item of a batch.

use pulsetrain_otlp::{Signal, UnixNanos, walk};
use pulsetrain_pipeline::Batch;

/// Returns the time of the newest item, or `None` if no item has a time. Invalid items count as without time.
pub(super) fn newest(batch: &Batch) -> Option<UnixNanos> {
    let bytes = batch.bytes();
    let newest = match batch.signal() {
        Signal::Metrics => of_points(bytes),
        Signal::Traces => {
            let spans = walk::spans(bytes).flatten().flat_map(|resource| resource.items());
            spans
                .flatten()
                .map(|span| UnixNanos(span.end_time_unix_nano))
                .max()
        }
        Signal::Logs => {
            let records = walk::records(bytes)
                .flatten()
                .flat_map(|resource| resource.items());
            records
                .flatten()
                .map(|record| UnixNanos(record.time_unix_nano))
                .max()
        }
    };
    newest.filter(|time| time.is_known())
}

fn of_points(bytes: &[u8]) -> Option<UnixNanos> {
    let mut newest = None;
    for metric in walk::metrics(bytes)
        .flatten()
        .flat_map(|resource| resource.items())
        .flatten()
    {
        // An invalid point ends its metric.
        let _ = metric.each_point(|point| newest = newest.max(Some(point.time())));
    }
    newest
}
