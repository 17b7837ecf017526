//! What goes to the sinks: the telemetry of the job, and the signals that are derived from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pulsetrain_demo::{DemoCounts, SeriesCounter};
use pulsetrain_pipeline::Batch;

/// Counts batches; a clone counts into the same place.
#[derive(Clone, Default)]
pub(super) struct SentCounter(Arc<Mutex<SentCounts>>);

/// What was counted.
#[derive(Default)]
pub(super) struct SentCounts {
    /// Items and bytes.
    pub(super) counts: DemoCounts,
    /// Series.
    pub(super) series: SeriesCounter,
}

impl SentCounter {
    /// Counts a batch.
    pub(super) fn add(&self, batch: &Batch) {
        let mut counted = self.lock();
        counted.counts.add(batch);
        counted.series.observe(batch);
    }

    /// Returns what was counted so far.
    pub(super) fn lock(&self) -> MutexGuard<'_, SentCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
