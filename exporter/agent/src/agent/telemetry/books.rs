//! What the ledger and the stores know, put into instruments: each time by how much it has changed.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter, UpDownCounter},
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{DropReason, SinkCounts};
use pulsetrain_semconv::{attribute, instruments};
use pulsetrain_sinks::PrometheusStore;

/// The instruments, and what they were told last.
pub(super) struct Books {
    dropped: Counter<u64>,
    retries: Counter<u64>,
    items: UpDownCounter<i64>,
    batches: UpDownCounter<i64>,
    size: UpDownCounter<i64>,
    limit: UpDownCounter<i64>,
    series: UpDownCounter<i64>,
    series_limit: UpDownCounter<i64>,
    /// The limit of the queue of each sink, in bytes.
    queue_limits: BTreeMap<String, i64>,
    told: BTreeMap<String, Told>,
    stores: BTreeMap<String, PrometheusStore>,
}

/// What was told of one sink.
#[derive(Debug, Default)]
struct Told {
    account: u64,
    dropped: BTreeMap<(DropReason, Signal), u64>,
    retries: u64,
    levels: [i64; LEVELS],
}

/// The levels of each sink: items, batches and bytes in its queue, and its limit; of one that keeps series these and their
/// limit.
const LEVELS: usize = 6;
const OF_QUEUE: usize = 4;

impl Books {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            dropped: instruments::pulsetrain_dropped_items(meter),
            retries: instruments::pulsetrain_retries(meter),
            items: instruments::pulsetrain_queue_items(meter),
            batches: instruments::pulsetrain_queue_length(meter),
            size: instruments::pulsetrain_queue_size(meter),
            limit: instruments::pulsetrain_queue_limit(meter),
            series: instruments::pulsetrain_series_active(meter),
            series_limit: instruments::pulsetrain_series_limit(meter),
            queue_limits: BTreeMap::new(),
            told: BTreeMap::new(),
            stores: BTreeMap::new(),
        }
    }

    /// Counts the series of a sink from now on.
    pub(super) fn watch_series(&mut self, sink: &str, store: PrometheusStore) {
        self.stores.insert(sink.to_owned(), store);
    }

    /// Reports this limit of the queue of a sink from now on.
    pub(super) fn note_queue_limit(&mut self, queue: &str, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.queue_limits.insert(queue.to_owned(), bytes);
    }

    /// Tells what is new.
    pub(super) fn record(&mut self, sinks: &[SinkCounts]) {
        let names: BTreeSet<&str> = sinks.iter().map(|counts| counts.name.as_str()).collect();
        let gone: Vec<String> = self
            .told
            .keys()
            .filter(|name| !names.contains(name.as_str()))
            .cloned()
            .collect();
        for name in gone {
            let mut told = self.told.remove(&name).unwrap_or_default();
            self.stores.remove(&name);
            self.queue_limits.remove(&name);
            self.levels(&name, &mut told, [0; LEVELS]);
        }
        for counts in sinks {
            let mut told = self.told.remove(&counts.name).unwrap_or_default();
            if told.account != counts.account {
                // A sink that took the place of another counts from zero.
                told = Told {
                    account: counts.account,
                    levels: told.levels,
                    ..Told::default()
                };
            }
            self.sums(counts, &mut told);
            let series = self.stores.get(&counts.name).map(PrometheusStore::counts);
            let (series, series_limit) =
                series.map_or((0, 0), |counts| (counts.series as i64, counts.limit as i64));
            let on_disk = counts.on_disk.as_ref();
            let levels = [
                (counts.queued + on_disk.map_or(0, |on_disk| on_disk.items)) as i64,
                (counts.queued_batches + on_disk.map_or(0, |on_disk| on_disk.batches)) as i64,
                (counts.queued_bytes + on_disk.map_or(0, |on_disk| on_disk.bytes)) as i64,
                self.queue_limits.get(&counts.name).copied().unwrap_or_default(),
                series,
                series_limit,
            ];
            self.levels(&counts.name, &mut told, levels);
            self.told.insert(counts.name.clone(), told);
        }
    }

    fn sums(&self, counts: &SinkCounts, told: &mut Told) {
        let sink = KeyValue::new(attribute::PULSETRAIN_SINK_NAME.name, counts.name.clone());
        for dropped in &counts.dropped {
            let key = (dropped.reason, dropped.signal);
            let before = told.dropped.insert(key, dropped.items).unwrap_or_default();
            let attributes = [
                sink.clone(),
                KeyValue::new(attribute::PULSETRAIN_SIGNAL.name, dropped.signal.as_str()),
                KeyValue::new(attribute::PULSETRAIN_DROP_REASON.name, dropped.reason.as_str()),
            ];
            self.dropped
                .add(dropped.items.saturating_sub(before), &attributes);
        }
        self.retries
            .add(counts.retries.saturating_sub(told.retries), &[sink]);
        told.retries = counts.retries;
    }

    fn levels(&self, sink: &str, told: &mut Told, now: [i64; LEVELS]) {
        let sink = [KeyValue::new(
            attribute::PULSETRAIN_SINK_NAME.name,
            sink.to_owned(),
        )];
        let instruments = [
            &self.items,
            &self.batches,
            &self.size,
            &self.limit,
            &self.series,
            &self.series_limit,
        ];
        for (place, instrument) in instruments.into_iter().enumerate() {
            let (now, before) = (now[place], std::mem::replace(&mut told.levels[place], now[place]));
            if place < OF_QUEUE || now != before {
                instrument.add(now - before, &sink);
            }
        }
    }
}
