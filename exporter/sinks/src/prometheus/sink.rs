//! The sink: adds batches and returns how many of their points it refused.

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

use super::{
    PrometheusConfig, PrometheusCounts, PrometheusStore, Rejection,
    ingest::{Ingest, RejectedPoints},
};

/// Series are looked through for silent targets no more often than this.
const SWEEP_EVERY_MILLIS: u64 = 5_000;

/// Keeps the last value of every series of the batches that are delivered to it; spans and log records pass unread.
pub struct PrometheusSink {
    store: PrometheusStore,
    ingest: Ingest,
    swept_millis: u64,
}

impl PrometheusSink {
    /// A sink without series.
    pub fn new(config: &PrometheusConfig) -> Self {
        Self::filling(PrometheusStore::new(config))
    }

    /// A sink that continues where the last one to fill this store has ended.
    pub fn filling(store: PrometheusStore) -> Self {
        Self {
            ingest: Ingest::new(store.clone()),
            store,
            swept_millis: 0,
        }
    }

    /// The series, for the server and for telemetry; a clone sees the same ones.
    pub fn store(&self) -> PrometheusStore {
        self.store.clone()
    }

    fn take(&mut self, batch: &Batch) -> Delivery {
        if batch.signal() != Signal::Metrics {
            return Delivery::Delivered;
        }
        self.sweep();
        let before = self.store.counts();
        self.store.make_room();
        match self.ingest.batch(batch.bytes()) {
            Ok(refused) => with_warnings(delivery(&refused), &before, &self.store.counts()),
            Err(error) => Delivery::Refused {
                message: format!("the batch is no OTLP: {error}"),
            },
        }
    }

    /// A scrape sweeps too; this is for stores that nobody scrapes.
    fn sweep(&mut self) {
        let now = self.store.now_millis();
        if now.saturating_sub(self.swept_millis) >= SWEEP_EVERY_MILLIS {
            self.swept_millis = now;
            self.store.sweep();
            self.store.forget_empty_families();
            self.ingest.forget_families();
        }
    }
}

impl Sink for PrometheusSink {
    fn name(&self) -> &str {
        "prometheus"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(std::future::ready(self.take(batch)))
    }
}

/// Adds to a delivery what its sender may want to change, although no point is lost by it.
fn with_warnings(delivery: Delivery, before: &PrometheusCounts, now: &PrometheusCounts) -> Delivery {
    let (mut rejected, mut messages) = (0, Vec::new());
    match delivery {
        Delivery::Delivered => {}
        Delivery::Partial {
            rejected: points,
            message,
        } => {
            rejected = points;
            messages.push(message);
        }
        other => return other,
    }
    let ahead = now.ahead - before.ahead;
    if ahead > 0 {
        messages.push(format!(
            "{ahead} points are more than a minute ahead of the clock here and get the time of their arrival; check the clock of \
             their sender"
        ));
    }
    let evicted = now.evicted - before.evicted;
    if evicted > 0 {
        messages.push(format!(
            "{evicted} series ended to make room: nothing was sent for them for 5 minutes; raise series_limit or max_bytes, or \
             send fewer attribute values"
        ));
    }
    match messages.is_empty() {
        true => Delivery::Delivered,
        false => Delivery::Partial {
            rejected,
            message: messages.join("; "),
        },
    }
}

pub(super) fn delivery(refused: &RejectedPoints) -> Delivery {
    let parts: Vec<String> = Rejection::ALL
        .iter()
        .zip(refused)
        .filter(|(_, points)| **points > 0)
        .map(|(rejection, points)| format!("{points} points: {rejection}"))
        .collect();
    if parts.is_empty() {
        return Delivery::Delivered;
    }
    Delivery::Partial {
        rejected: refused.iter().sum(),
        message: parts.join("; "),
    }
}
