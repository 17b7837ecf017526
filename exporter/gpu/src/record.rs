//! The recorder: turns driver events into series. It never calls the driver.
//!
//! `subject` has the attributes of series. `store` keeps the series and ends those that are not read any more. `counter` makes
//! the driver's counters monotonic. `hw_semconv` has the standard names, `facts` and `health` have the properties and the state
//! of a GPU. `events` counts its XID errors and other events. `scrape_stats` has the metrics of the passes themselves, `imex` has
//! the state of IMEX.

mod counter;
mod events;
mod facts;
mod health;
mod hw_semconv;
mod imex;
mod known;
mod scrape_stats;
mod store;
mod subject;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, Encoded, Envelope, LogsWriter},
};
use pulsetrain_semconv::{SCHEMA_URL, attribute, metric};

use self::{
    imex::Imex,
    known::{GpuState, Ids},
    scrape_stats::ScrapeStats,
    store::{Key, SeriesStore},
};
use crate::{
    DriverState, GpuAttribution, GpuConfig, GpuNotice, GpuSemconv, Inventory, MissingMetric, Reason,
    driver::{DriverEvent, GpuEvent, Tick},
    imex::ImexReading,
};

/// The instrumentation scope, and the service name of the GPUs of a host.
const SCOPE: &str = "pulsetrain.gpu";
const SERVICE: &str = "pulsetrain-gpu";
/// The file with the name of the host.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// The name of the source that reads the driver.
pub(super) const SOURCE: &str = "nvml";

/// Turns driver events into series, log records and notices.
pub(super) struct EventRecorder {
    semconv: GpuSemconv,
    envelope: Envelope,
    attribution: Box<dyn GpuAttribution>,
    store: SeriesStore,
    logs: LogsWriter,
    gpus: BTreeMap<String, GpuState>,
    ids: Ids,
    scrape_stats: ScrapeStats,
    imex: Imex,
    inventory: Arc<Inventory>,
    notices: Vec<GpuNotice>,
    last_unix_nanos: UnixNanos,
}

impl EventRecorder {
    /// Creates a recorder whose series carry the attributes of `attribution`.
    pub(super) fn new(config: &GpuConfig, attribution: Box<dyn GpuAttribution>) -> Self {
        Self {
            semconv: config.semconv,
            envelope: envelope(&config.resource),
            attribution,
            store: SeriesStore::new(config.interval),
            logs: LogsWriter::default(),
            gpus: BTreeMap::new(),
            ids: Ids::default(),
            scrape_stats: ScrapeStats::new(SOURCE),
            imex: Imex::default(),
            inventory: Arc::default(),
            notices: Vec::new(),
            last_unix_nanos: UnixNanos::UNKNOWN,
        }
    }

    /// Returns the current inventory of GPUs.
    pub(super) fn inventory(&self) -> &Arc<Inventory> {
        &self.inventory
    }

    /// Takes the notices for the operator.
    pub(super) fn take_notices(&mut self) -> Vec<GpuNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Records an event of the driver.
    pub(super) fn on_event(&mut self, event: DriverEvent, now_unix_nanos: UnixNanos) {
        match event {
            DriverEvent::Tick(tick) => self.record_tick(&tick),
            DriverEvent::Gpu(event) => self.record_gpu_event(&event),
            DriverEvent::Absent(problem) => {
                self.forget_gpus(now_unix_nanos);
                self.set_driver(DriverState::Absent(problem), now_unix_nanos);
            }
        }
    }

    /// Records the state of IMEX.
    pub(super) fn on_imex(&mut self, reading: ImexReading, now_unix_nanos: UnixNanos) {
        self.imex
            .record(reading, &mut self.store, now_unix_nanos, &mut self.notices);
    }

    /// Ends the series of a driver that did not answer for too long.
    pub(super) fn mark_stale(&mut self, secs: u64, now_unix_nanos: UnixNanos) {
        self.store.end(now_unix_nanos, |key, metric| {
            !events::is_event_counter(key, metric)
                && !scrape_stats::is_scrape_metric(metric)
                && !imex::is_of_imex(metric)
        });
        self.notices.push(GpuNotice::Silent { secs });
        self.set_driver(DriverState::Silent, now_unix_nanos);
    }

    /// Ends every series.
    pub(super) fn end(&mut self, now_unix_nanos: UnixNanos) {
        self.store.end(now_unix_nanos, |_, _| true);
    }

    /// Returns the points and log records to send.
    pub(super) fn flush(&mut self, now_unix_nanos: UnixNanos) -> impl Iterator<Item = Encoded> {
        self.store.flush_changed(now_unix_nanos);
        let points = self.store.finish(&self.envelope);
        let events = self.logs.finish(&self.envelope);
        points.into_iter().chain(events)
    }

    fn record_tick(&mut self, tick: &Tick) {
        let now = tick.time_unix_nanos;
        self.last_unix_nanos = now;
        self.record_answer(tick);
        // The attribution of a GPU may depend on the other GPUs, so all are queried again if one has changed.
        let has_changed = self.update_inventory(tick);
        let attributes_may_have_changed = self.attribution.attributes_may_have_changed() || has_changed;
        self.forget_gpus_without(tick);
        let mut late = BTreeSet::new();
        for event in &tick.gpus {
            let known = self.gpus.entry(event.gpu.uuid.clone()).or_default();
            let mut recorder = known::Recorder {
                semconv: self.semconv,
                driver: event.driver.as_deref().unwrap_or(&tick.driver),
                attribution: &mut *self.attribution,
                store: &mut self.store,
                ids: &mut self.ids,
                time_unix_nanos: event.time_unix_nanos,
            };
            let Some(readings) = &event.readings else {
                late.extend(known.subject_ids());
                continue;
            };
            known.update(
                &event.gpu,
                attributes_may_have_changed,
                &mut recorder,
                &mut self.notices,
            );
            if event.gpu.is_ours() {
                known.record(readings, &mut recorder);
            }
        }
        self.report_unavailable();
        self.scrape_stats.record(&mut self.store, now, tick.took);
        let newest = tick.gpus.iter().map(|gpu| gpu.time_unix_nanos).max();
        let newest = newest.unwrap_or(now).max(now);
        self.store.sweep(now, newest, |key| late.contains(&key.subject));
    }

    fn record_gpu_event(&mut self, event: &GpuEvent) {
        let Some(known) = self.gpus.get_mut(&event.uuid) else {
            return;
        };
        let mut recorder = known::Recorder {
            semconv: self.semconv,
            driver: &crate::Driver::default(),
            attribution: &mut *self.attribution,
            store: &mut self.store,
            ids: &mut self.ids,
            time_unix_nanos: event.time_unix_nanos,
        };
        events::record(known, event, self.last_unix_nanos, &mut recorder, &mut self.logs);
    }

    /// Reports a new or changed driver, and one that answers again.
    fn record_answer(&mut self, tick: &Tick) {
        match &self.inventory.driver {
            DriverState::Silent => self.notices.push(GpuNotice::Answers),
            DriverState::Present(driver) if *driver == *tick.driver && self.gpus.len() == tick.gpus.len() => {
            }
            _ => {
                let state = DriverState::Present((*tick.driver).clone());
                let gpus: Vec<_> = tick.gpus.iter().map(|event| (*event.gpu).clone()).collect();
                self.notices.extend(GpuNotice::new(&state, &gpus));
            }
        }
    }

    /// Updates the inventory. Returns whether it has changed.
    fn update_inventory(&mut self, tick: &Tick) -> bool {
        let is_same = |event: &crate::driver::GpuTick| {
            self.gpus
                .get(&event.gpu.uuid)
                .is_some_and(|known| known.is(&event.gpu))
        };
        let same_driver =
            matches!(&self.inventory.driver, DriverState::Present(driver) if *driver == *tick.driver);
        if same_driver && self.gpus.len() == tick.gpus.len() && tick.gpus.iter().all(is_same) {
            return false;
        }
        self.inventory = Arc::new(Inventory {
            driver: DriverState::Present((*tick.driver).clone()),
            gpus: tick.gpus.iter().map(|event| (*event.gpu).clone()).collect(),
            time_unix_nanos: tick.time_unix_nanos,
        });
        self.attribution.observe(&self.inventory);
        true
    }

    /// Ends the series of GPUs that are not there any more.
    fn forget_gpus_without(&mut self, tick: &Tick) {
        let Self {
            gpus, store, notices, ..
        } = self;
        gpus.retain(|uuid, known| {
            let is_there = tick.gpus.iter().any(|event| event.gpu.uuid == *uuid);
            if !is_there {
                known.end(store, tick.time_unix_nanos);
                // A GPU without a handle is identified by its PCI address or index, and by its UUID once it answers.
                let mut answers = tick.gpus.iter().filter(|event| event.gpu.trouble.is_none());
                if known.gpu().trouble.is_some()
                    && let Some(event) = answers.find(|event| event.gpu.index == known.index())
                {
                    notices.push(GpuNotice::Back {
                        gpu: event.gpu.index,
                        uuid: event.gpu.uuid.clone(),
                    });
                }
            }
            is_there
        });
    }

    fn forget_gpus(&mut self, now_unix_nanos: UnixNanos) {
        self.store.end(now_unix_nanos, |_, metric| {
            !scrape_stats::is_scrape_metric(metric) && !imex::is_of_imex(metric)
        });
        self.gpus.clear();
    }

    fn set_driver(&mut self, driver: DriverState, now_unix_nanos: UnixNanos) {
        if self.inventory.driver == driver {
            return;
        }
        self.notices.extend(GpuNotice::new(&driver, &[]));
        let gpus = match driver {
            DriverState::Silent => self.inventory.gpus.clone(),
            _ => Vec::new(),
        };
        self.inventory = Arc::new(Inventory {
            driver,
            gpus,
            time_unix_nanos: now_unix_nanos,
        });
        self.attribution.observe(&self.inventory);
    }

    /// Adds one notice for all GPUs that lack the same metrics for the same reason.
    fn report_unavailable(&mut self) {
        let mut lacking = BTreeMap::<(Reason, Vec<MissingMetric>), Vec<u32>>::new();
        for known in self.gpus.values_mut() {
            for (reason, metrics) in known.take_unreported() {
                lacking.entry((reason, metrics)).or_default().push(known.index());
            }
        }
        for ((reason, metrics), mut gpus) in lacking {
            gpus.sort_unstable();
            self.notices.push(GpuNotice::Unavailable {
                gpus,
                reason,
                metrics,
            });
        }
    }
}

/// Returns the envelope: the GPUs of a host are a service instance. Configured resource attributes take precedence.
fn envelope(added: &[(String, String)]) -> Envelope {
    let host = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    let configured = |name: &str| {
        added
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    let host = configured(attribute::HOST_NAME.name).unwrap_or(host.trim());
    let mut resource = vec![
        (attribute::SERVICE_NAME.name, AttributeValue::Text(SERVICE)),
        (attribute::SERVICE_INSTANCE_ID.name, AttributeValue::Text(host)),
        (attribute::HOST_NAME.name, AttributeValue::Text(host)),
    ];
    for (key, value) in added {
        resource.retain(|(name, _)| name != key);
        resource.push((key, AttributeValue::Text(value)));
    }
    Envelope::new(&resource, SCOPE, env!("CARGO_PKG_VERSION"), SCHEMA_URL)
}

/// Returns whether a metric describes a GPU that does not answer.
fn survives_gpu_loss(key: &Key, metric: &pulsetrain_semconv::Metric) -> bool {
    metric.ordinal == metric::GPU_FAULT_ACTIVE.ordinal
        || metric.ordinal == metric::HW_STATUS.ordinal
        || events::is_event_counter(key, metric)
}
