//! Counts the telemetry that is sent to the sinks: that of the job, and the derived signals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pulsetrain_demo::{DemoCounts, SeriesCounter};
use pulsetrain_pipeline::Batch;

/// Counts batches; clones share the counts.
#[derive(Clone, Default)]
pub(super) struct SentCounter(Arc<Mutex<SentCounts>>);

/// The counts so far.
#[derive(Default)]
pub(super) struct SentCounts {
    /// The number of items and bytes.
    pub(super) counts: DemoCounts,
    /// The series.
    pub(super) series: SeriesCounter,
}

impl SentCounter {
    /// Counts a batch.
    pub(super) fn add(&self, batch: &Batch) {
        let mut counted = self.lock();
        counted.counts.add(batch);
        counted.series.observe(batch);
    }

    /// Locks and returns the counts so far.
    pub(super) fn lock(&self) -> MutexGuard<'_, SentCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
