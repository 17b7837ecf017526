//! Counts the items of a source at its ingress.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry::{KeyValue, metrics::Counter};
use pulsetrain_otlp::{Signal, UnixNanos};
use pulsetrain_pipeline::{Batch, Ingress, clock};
use pulsetrain_semconv::attribute;
use pulsetrain_tail::{LogStatus, TailStatus};

use super::newest::newest;

/// The time of the last batch of a source, and the age of its newest item then; zero before the first batch.
#[derive(Debug, Default)]
pub(super) struct SourceGauges {
    newest_unix_nanos: AtomicU64,
    lag_nanos: AtomicU64,
    last_unix_nanos: AtomicU64,
    logs: OnceLock<Arc<TailStatus>>,
}

impl SourceGauges {
    /// Returns the age of the newest item at the arrival of the last batch, or `None` if no item had a time.
    pub(super) fn lag(&self) -> Option<Duration> {
        read(&self.newest_unix_nanos)?;
        Some(Duration::from_nanos(self.lag_nanos.load(Ordering::Relaxed)))
    }

    /// Returns the time of the last batch.
    pub(super) fn last_success(&self) -> Option<Duration> {
        read(&self.last_unix_nanos)
    }

    /// Sets the status of the logs that the source follows.
    pub(super) fn watch_logs(&self, logs: Arc<TailStatus>) {
        // A source has one follower.
        let _ = self.logs.set(logs);
    }

    /// Returns the logs that the source follows, or `None` for a source of another kind.
    pub(super) fn logs(&self) -> Option<Vec<LogStatus>> {
        self.logs.get().map(|logs| logs.logs())
    }

    fn record(&self, batch: &Batch) {
        let newest = newest(batch).unwrap_or_default();
        let before = self.newest_unix_nanos.fetch_max(newest.0, Ordering::Relaxed);
        let newest = newest.max(UnixNanos(before));
        let now = clock::unix_nanos();
        self.lag_nanos.store(now.nanos_since(newest), Ordering::Relaxed);
        self.last_unix_nanos.store(now.0, Ordering::Relaxed);
    }
}

fn read(nanos: &AtomicU64) -> Option<Duration> {
    let nanos = nanos.load(Ordering::Relaxed);
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Returns an ingress that counts its batches.
pub(super) fn ingress(
    ingress: &Ingress,
    source: &str,
    accepted: Counter<u64>,
    gauges: Arc<SourceGauges>,
) -> Ingress {
    ingress.watched(watch(source, accepted, gauges))
}

/// Returns a callback that updates the gauges without counting.
#[cfg(test)]
pub(super) fn noting(gauges: Arc<SourceGauges>) -> impl Fn(&Batch) {
    move |batch| gauges.record(batch)
}

/// Returns a callback that counts the batches.
pub(super) fn watch(
    source: &str,
    accepted: Counter<u64>,
    gauges: Arc<SourceGauges>,
) -> impl Fn(&Batch) + Send + Sync + 'static {
    let attributes = Signal::ALL.map(|signal| {
        [
            KeyValue::new(attribute::PULSETRAIN_SOURCE_NAME.name, source.to_owned()),
            KeyValue::new(attribute::PULSETRAIN_SIGNAL.name, signal.as_str()),
        ]
    });
    move |batch| {
        if let Some(place) = Signal::ALL.iter().position(|signal| *signal == batch.signal()) {
            accepted.add(u64::from(batch.items()), &attributes[place]);
        }
        gauges.record(batch);
    }
}
