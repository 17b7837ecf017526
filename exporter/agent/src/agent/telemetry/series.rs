//! The metrics of the series that the Prometheus sinks hold: their number, their memory, and the number that the store
//! ended.

use std::collections::BTreeMap;

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter, UpDownCounter},
};
use pulsetrain_prometheus::{PrometheusCounts, PrometheusStore};
use pulsetrain_semconv::{attribute, instruments};

/// The instruments, and the stores by the name of their sink.
pub(super) struct SeriesMetrics {
    active: UpDownCounter<i64>,
    limit: UpDownCounter<i64>,
    size: UpDownCounter<i64>,
    size_limit: UpDownCounter<i64>,
    ended: Counter<u64>,
    retimed: Counter<u64>,
    stores: BTreeMap<String, Recorded>,
}

/// A store with its last recorded counts.
struct Recorded {
    store: PrometheusStore,
    counts: PrometheusCounts,
}

impl SeriesMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            active: instruments::pulsetrain_series_active(meter),
            limit: instruments::pulsetrain_series_limit(meter),
            size: instruments::pulsetrain_series_size(meter),
            size_limit: instruments::pulsetrain_series_size_limit(meter),
            ended: instruments::pulsetrain_ended_series(meter),
            retimed: instruments::pulsetrain_retimed_points(meter),
            stores: BTreeMap::new(),
        }
    }

    /// Records the series of a sink from now on. A store that a reload keeps is not counted again.
    pub(super) fn watch(&mut self, sink: &str, store: PrometheusStore) {
        let known = self.stores.get(sink);
        if known.is_some_and(|known| known.store.shares_series_with(&store)) {
            return;
        }
        self.forget(sink);
        let counts = PrometheusCounts::default();
        self.stores.insert(sink.to_owned(), Recorded { store, counts });
    }

    /// Records the changes of a sink, if it holds series.
    pub(super) fn record(&mut self, sink: &str) {
        if let Some(mut recorded) = self.stores.remove(sink) {
            let counts = recorded.store.counts();
            self.add(sink, &recorded.counts, &counts);
            recorded.counts = counts;
            self.stores.insert(sink.to_owned(), recorded);
        }
    }

    /// Records the changes of a sink for the last time, because it holds no series any more.
    pub(super) fn forget(&mut self, sink: &str) {
        let Some(Recorded {
            store,
            counts: before,
        }) = self.stores.remove(sink)
        else {
            return;
        };
        let mut counts = store.counts();
        (counts.series, counts.limit, counts.bytes, counts.max_bytes) = (0, 0, 0, 0);
        self.add(sink, &before, &counts);
    }

    fn add(&self, sink: &str, before: &PrometheusCounts, now: &PrometheusCounts) {
        let sink = KeyValue::new(attribute::PULSETRAIN_SINK_NAME.name, sink.to_owned());
        let levels = [
            (&self.active, now.series, before.series),
            (&self.limit, now.limit, before.limit),
            (&self.size, now.bytes, before.bytes),
            (&self.size_limit, now.max_bytes, before.max_bytes),
        ];
        for (instrument, now, before) in levels {
            instrument.add(now as i64 - before as i64, std::slice::from_ref(&sink));
        }
        let ended = [
            ("expired", now.expired, before.expired),
            ("evicted", now.evicted, before.evicted),
            (
                "resource_ended",
                now.ended_with_resource,
                before.ended_with_resource,
            ),
        ];
        for (reason, now, before) in ended {
            let reason = KeyValue::new(attribute::PULSETRAIN_END_REASON.name, reason);
            self.ended.add(now - before, &[sink.clone(), reason]);
        }
        self.retimed.add(now.ahead - before.ahead, &[sink]);
    }
}
