//! The sink that fills the page's history.

use std::future::ready;

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink, clock};

use super::{PageStore, ingest};

/// The number of batches between two measurements of the history's memory use.
const BATCHES_PER_COUNT: u32 = 64;

/// Adds the telemetry of runs, ranks and GPUs to the page. It never waits, so its queue stays short.
pub struct PageSink {
    store: PageStore,
    batches: u32,
}

impl PageSink {
    /// Returns a sink that fills the history.
    pub fn new(store: PageStore) -> Self {
        Self { store, batches: 0 }
    }

    fn accept(&mut self, batch: &Batch) -> Delivery {
        let now_millis = clock::unix_now().as_millis() as i64;
        let mut history = self.store.history();
        let read = match batch.signal() {
            Signal::Metrics => ingest::metrics(&mut history, batch.bytes(), now_millis),
            Signal::Traces => ingest::spans(&mut history, batch.bytes(), now_millis),
            Signal::Logs => ingest::logs(&mut history, batch.bytes(), now_millis),
        };
        self.batches += 1;
        if self.batches.is_multiple_of(BATCHES_PER_COUNT) {
            history.keep_within_bytes(now_millis);
        }
        match read {
            Ok(()) => Delivery::Delivered,
            Err(error) => {
                history.counts.malformed += 1;
                Delivery::Refused(Problem::new(format!("the batch is not valid OTLP: {error}")))
            }
        }
    }
}

impl Sink for PageSink {
    fn name(&self) -> &str {
        "page"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(ready(self.accept(batch)))
    }
}
