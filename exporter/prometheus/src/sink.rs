//! The sink: adds batches and returns the number of rejected points.

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};

use super::{
    PrometheusConfig, PrometheusCounts, PrometheusStore, Rejection,
    ingest::{Ingest, RejectedPoints},
};

/// The minimum interval between two sweeps for stale targets.
const SWEEP_EVERY_MILLIS: u64 = 5_000;

/// Keeps the last value of every series of its batches. Spans and log records are ignored.
pub struct PrometheusSink {
    store: PrometheusStore,
    ingest: Ingest,
    swept_millis: u64,
}

impl PrometheusSink {
    /// Returns a sink without series.
    pub fn new(config: &PrometheusConfig) -> Self {
        Self::filling(PrometheusStore::new(config))
    }

    /// Returns a sink that continues to fill this store.
    pub fn filling(store: PrometheusStore) -> Self {
        Self {
            ingest: Ingest::new(store.clone()),
            store,
            swept_millis: 0,
        }
    }

    /// Returns the store, for the server and for telemetry. Clones share it.
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
            Err(error) => Delivery::Refused(Problem::new(format!("the batch is not OTLP: {error}"))),
        }
    }

    /// A scrape sweeps too. This sweep is for stores without a scraper.
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

/// Adds warnings to a delivery about points that were stored, but not as sent.
fn with_warnings(delivery: Delivery, before: &PrometheusCounts, now: &PrometheusCounts) -> Delivery {
    let (mut rejected, mut messages) = (0, Vec::new());
    match delivery {
        Delivery::Delivered => {}
        Delivery::Partial {
            rejected: points,
            problem,
        } => {
            rejected = points;
            messages.push(problem.to_string());
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
            "{evicted} series without points for 5 minutes were evicted at the limit; raise series_limit or max_bytes, or \
             send fewer attribute values"
        ));
    }
    match messages.is_empty() {
        true => Delivery::Delivered,
        false => Delivery::Partial {
            rejected,
            problem: Problem::new(messages.join("; ")),
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
        problem: Problem::new(parts.join("; ")),
    }
}
