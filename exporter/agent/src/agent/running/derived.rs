//! What is computed on the way, counted.

use std::sync::{Arc, OnceLock};

use pulsetrain_pipeline::Batch;

/// Counts what is computed on the way, as soon as there is something to count with: telemetry goes through the pipeline
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
