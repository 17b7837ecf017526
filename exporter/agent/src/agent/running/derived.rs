//! Counts the derived signals.

use std::sync::{Arc, OnceLock};

use pulsetrain_pipeline::Batch;

/// Counts the derived signals as soon as a counter is set. The counter is set later, because telemetry uses the pipeline
/// that it counts.
#[derive(Clone, Default)]
pub(super) struct Derived(Arc<OnceLock<Counting>>);

type Counting = Box<dyn Fn(&Batch) + Send + Sync>;

impl Derived {
    pub(super) fn watch(&self) -> impl Fn(&Batch) + Clone + Send + 'static {
        let counter = Arc::clone(&self.0);
        move |batch| {
            if let Some(count) = counter.get() {
                count(batch);
            }
        }
    }

    pub(super) fn count_by(&self, count: impl Fn(&Batch) + Send + Sync + 'static) {
        // Set once, at the start.
        let _ = self.0.set(Box::new(count));
    }
}
