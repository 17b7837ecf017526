//! What a source brings, counted at its ingress.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry::{KeyValue, metrics::Counter};
use pulsetrain_otlp::{Signal, UnixNanos};
use pulsetrain_pipeline::{Batch, Ingress, clock};
use pulsetrain_semconv::attribute;

use super::newest::newest;

/// When a source brought something last, and how old that was then; zero where it has brought nothing yet.
#[derive(Debug, Default)]
pub(super) struct SourceGauges {
    newest_unix_nanos: AtomicU64,
    lag_nanos: AtomicU64,
    last_unix_nanos: AtomicU64,
}

impl SourceGauges {
    /// How old the newest item was when the last batch arrived; `None` where no item had a time.
    pub(super) fn lag(&self) -> Option<Duration> {
        read(&self.newest_unix_nanos)?;
        Some(Duration::from_nanos(self.lag_nanos.load(Ordering::Relaxed)))
    }

    /// When the last batch came.
    pub(super) fn last_success(&self) -> Option<Duration> {
        read(&self.last_unix_nanos)
    }

    fn note(&self, batch: &Batch) {
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

/// An ingress that counts what goes through it.
pub(super) fn ingress(
    ingress: &Ingress,
    source: &str,
    accepted: Counter<u64>,
    gauges: Arc<SourceGauges>,
) -> Ingress {
    ingress.watched(watch(source, accepted, gauges))
}

/// Notes what it is shown, without counting it.
#[cfg(test)]
pub(super) fn noting(gauges: Arc<SourceGauges>) -> impl Fn(&Batch) {
    move |batch| gauges.note(batch)
}

/// Counts what it is shown.
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
        gauges.note(batch);
    }
}
