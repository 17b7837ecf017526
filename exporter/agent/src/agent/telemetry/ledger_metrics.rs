//! Exports the counts of the ledger as instruments, which record the changes since the last collection.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter, UpDownCounter},
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{DropReason, SinkCounts};
use pulsetrain_semconv::{attribute, instruments};

use super::series::SeriesMetrics;

/// The instruments, and the values that they recorded last.
pub(super) struct LedgerMetrics {
    dropped: Counter<u64>,
    retries: Counter<u64>,
    items: UpDownCounter<i64>,
    batches: UpDownCounter<i64>,
    size: UpDownCounter<i64>,
    limit: UpDownCounter<i64>,
    series: SeriesMetrics,
    /// The limit of the queue of each sink, in bytes.
    queue_limits: BTreeMap<String, i64>,
    sent: BTreeMap<String, LastRecorded>,
}

/// The values recorded last for one sink.
#[derive(Debug, Default)]
struct LastRecorded {
    account: u64,
    dropped: BTreeMap<(DropReason, Signal), u64>,
    retries: u64,
    levels: [i64; LEVELS],
}

/// The number of gauges for the queue of each sink: items, batches, bytes, and the limit of the bytes.
const LEVELS: usize = 4;

impl LedgerMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            dropped: instruments::pulsetrain_dropped_items(meter),
            retries: instruments::pulsetrain_retries(meter),
            items: instruments::pulsetrain_queue_items(meter),
            batches: instruments::pulsetrain_queue_length(meter),
            size: instruments::pulsetrain_queue_size(meter),
            limit: instruments::pulsetrain_queue_limit(meter),
            series: SeriesMetrics::new(meter),
            queue_limits: BTreeMap::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Returns the metrics of the series that sinks hold.
    pub(super) fn series(&mut self) -> &mut SeriesMetrics {
        &mut self.series
    }

    /// Sets the reported limit of the queue of a sink.
    pub(super) fn record_queue_limit(&mut self, queue: &str, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.queue_limits.insert(queue.to_owned(), bytes);
    }

    /// Records the changes since the last call.
    pub(super) fn record(&mut self, sinks: &[SinkCounts]) {
        let names: BTreeSet<&str> = sinks.iter().map(|counts| counts.name.as_str()).collect();
        let gone: Vec<String> = self
            .sent
            .keys()
            .filter(|name| !names.contains(name.as_str()))
            .cloned()
            .collect();
        for name in gone {
            let mut sent = self.sent.remove(&name).unwrap_or_default();
            self.series.forget(&name);
            self.queue_limits.remove(&name);
            self.levels(&name, &mut sent, [0; LEVELS]);
        }
        for counts in sinks {
            let mut sent = self.sent.remove(&counts.name).unwrap_or_default();
            if sent.account != counts.account {
                // A sink that replaced another counts from zero.
                sent = LastRecorded {
                    account: counts.account,
                    levels: sent.levels,
                    ..LastRecorded::default()
                };
            }
            self.sums(counts, &mut sent);
            self.series.record(&counts.name);
            let on_disk = counts.on_disk.as_ref();
            let levels = [
                (counts.queued + on_disk.map_or(0, |on_disk| on_disk.items)) as i64,
                (counts.queued_batches + on_disk.map_or(0, |on_disk| on_disk.batches)) as i64,
                (counts.queued_bytes + on_disk.map_or(0, |on_disk| on_disk.bytes)) as i64,
                self.queue_limits.get(&counts.name).copied().unwrap_or_default(),
            ];
            self.levels(&counts.name, &mut sent, levels);
            self.sent.insert(counts.name.clone(), sent);
        }
    }

    fn sums(&self, counts: &SinkCounts, sent: &mut LastRecorded) {
        let sink = KeyValue::new(attribute::PULSETRAIN_SINK_NAME.name, counts.name.clone());
        for dropped in &counts.dropped {
            let key = (dropped.reason, dropped.signal);
            let before = sent.dropped.insert(key, dropped.items).unwrap_or_default();
            let attributes = [
                sink.clone(),
                KeyValue::new(attribute::PULSETRAIN_SIGNAL.name, dropped.signal.as_str()),
                KeyValue::new(attribute::PULSETRAIN_DROP_REASON.name, dropped.reason.as_str()),
            ];
            self.dropped
                .add(dropped.items.saturating_sub(before), &attributes);
        }
        self.retries
            .add(counts.retries.saturating_sub(sent.retries), &[sink]);
        sent.retries = counts.retries;
    }

    fn levels(&self, sink: &str, sent: &mut LastRecorded, now: [i64; LEVELS]) {
        let sink = [KeyValue::new(
            attribute::PULSETRAIN_SINK_NAME.name,
            sink.to_owned(),
        )];
        let instruments = [&self.items, &self.batches, &self.size, &self.limit];
        for (place, instrument) in instruments.into_iter().enumerate() {
            let (now, before) = (now[place], std::mem::replace(&mut sent.levels[place], now[place]));
            instrument.add(now - before, &sink);
        }
    }
}
