//! Readings of GPUs that do not come from a driver: a simulation, or a recording that is played back.
//!
//! [`GpuRecorder`] turns them into series exactly as [`GpuSource`](crate::GpuSource) does with those of the driver: the table of
//! rows has the metrics and their cadence, and a GPU that is lost ends its series.

use std::{collections::BTreeMap, sync::Arc, sync::OnceLock, time::Duration};

use pulsetrain_otlp::{UnixNanos, write::Encoded};
use pulsetrain_semconv::{Attribute, Metric};

use crate::{
    Driver, Gpu, GpuAttribution, GpuConfig,
    driver::{DriverEvent, GpuEvent, GpuEventKind, GpuTick, Tick},
    nvml::rows,
    reading::{Cadence, INFREQUENT_INTERVAL, Labels, Readings, Sample},
    record::EventRecorder,
};

/// Records passes over simulated GPUs.
pub struct GpuRecorder {
    recording: EventRecorder,
    driver: Arc<Driver>,
    gpus: BTreeMap<String, Arc<Gpu>>,
    last_infrequent_unix_nanos: UnixNanos,
}

/// The readings of a GPU in one pass.
#[derive(Debug, Default)]
pub struct GpuReadings {
    readings: Readings,
    skips_infrequent: bool,
}

impl GpuRecorder {
    /// Returns a recorder of GPUs with this driver, whose series carry the attributes of `attribution`.
    pub fn new(config: &GpuConfig, driver: Driver, attribution: Box<dyn GpuAttribution>) -> Self {
        Self {
            recording: EventRecorder::new(config, attribution),
            driver: Arc::new(driver),
            gpus: BTreeMap::new(),
            last_infrequent_unix_nanos: UnixNanos::UNKNOWN,
        }
    }

    /// Records one pass at `time_unix_nanos`. `read` fills the readings of one GPU; it is not called for a lost GPU.
    pub fn record_pass(
        &mut self,
        time_unix_nanos: UnixNanos,
        took: Duration,
        gpus: impl IntoIterator<Item = Gpu>,
        mut read: impl FnMut(&Gpu, &mut GpuReadings),
    ) {
        let since = time_unix_nanos.saturating_duration_since(self.last_infrequent_unix_nanos);
        let skips_infrequent = since < INFREQUENT_INTERVAL;
        if !skips_infrequent {
            self.last_infrequent_unix_nanos = time_unix_nanos;
        }
        let ticks = gpus.into_iter().map(|gpu| {
            let gpu = self.known(gpu);
            let mut readings = GpuReadings {
                skips_infrequent,
                ..GpuReadings::default()
            };
            if gpu.trouble.is_none() {
                read(&gpu, &mut readings);
            }
            GpuTick::new(&gpu, Some(readings.readings.all), time_unix_nanos)
        });
        let gpus = ticks.collect();
        let tick = Tick {
            driver: Arc::clone(&self.driver),
            gpus,
            time_unix_nanos,
            took,
        };
        self.recording
            .on_event(DriverEvent::Tick(Box::new(tick)), time_unix_nanos);
    }

    /// Records an XID error of a GPU that a pass has shown.
    pub fn record_xid(&mut self, uuid: &str, code: u64, time_unix_nanos: UnixNanos) {
        let event = GpuEvent {
            uuid: uuid.to_owned(),
            kind: GpuEventKind::Xid(code),
            gpu_instance_id: None,
            time_unix_nanos,
        };
        self.recording.on_event(DriverEvent::Gpu(event), time_unix_nanos);
    }

    /// Returns the batches so far.
    pub fn flush(&mut self, now_unix_nanos: UnixNanos) -> Vec<Encoded> {
        self.recording.take_notices();
        self.recording.flush(now_unix_nanos).collect()
    }

    /// Returns the same allocation as long as the GPU does not change. The recorder detects a change by the allocation.
    fn known(&mut self, gpu: Gpu) -> Arc<Gpu> {
        let known = self.gpus.entry(gpu.uuid.clone()).or_default();
        if **known != gpu {
            *known = Arc::new(gpu);
        }
        Arc::clone(known)
    }
}

impl GpuReadings {
    /// Adds the present value of a metric.
    pub fn now(&mut self, metric: &'static Metric, labels: GpuLabels, value: f64) {
        self.put(metric, Labels::fixed(labels), Sample::Now(value));
    }

    /// Adds the present value of one of several parts of the GPU, such as a link.
    pub fn now_of(
        &mut self,
        metric: &'static Metric,
        labels: GpuLabels,
        (attribute, number): (&'static Attribute, u32),
        value: f64,
    ) {
        self.put(
            metric,
            Labels::numbered(labels, attribute, number),
            Sample::Now(value),
        );
    }

    /// Adds the raw value of a 64-bit counter of the driver; `scale` converts it to the unit of the metric.
    pub fn total(&mut self, metric: &'static Metric, labels: GpuLabels, raw: u64, scale: f64) {
        let wraps = false;
        self.put(metric, Labels::fixed(labels), Sample::Total { raw, scale, wraps });
    }

    /// Adds the raw value of a 64-bit counter of one of several parts of the GPU, such as a link.
    pub fn total_of(
        &mut self,
        metric: &'static Metric,
        labels: GpuLabels,
        (attribute, number): (&'static Attribute, u32),
        raw: u64,
        scale: f64,
    ) {
        let wraps = false;
        self.put(
            metric,
            Labels::numbered(labels, attribute, number),
            Sample::Total { raw, scale, wraps },
        );
    }

    /// Adds the state of a state set.
    pub fn state(&mut self, metric: &'static Metric, attribute: &'static Attribute, state: &'static str) {
        self.put(metric, Labels::default(), Sample::State(attribute, state));
    }

    fn put(&mut self, metric: &'static Metric, labels: Labels, value: Sample) {
        let Some(cadence) = cadence(metric) else {
            debug_assert!(false, "{} has no row in the table of NVML", metric.name);
            return;
        };
        if cadence == Cadence::Infrequent && self.skips_infrequent {
            return;
        }
        self.readings.cadence = cadence;
        self.readings.put(metric, labels, value, UnixNanos::UNKNOWN);
    }
}

/// Fixed attributes with their values, which identify a series of its metric.
pub type GpuLabels = &'static [(&'static Attribute, &'static str)];

/// Returns the cadence of a metric, by the first row that fills it.
fn cadence(metric: &Metric) -> Option<Cadence> {
    static CADENCES: OnceLock<BTreeMap<u16, Cadence>> = OnceLock::new();
    let cadences = CADENCES.get_or_init(|| {
        let mut cadences = BTreeMap::new();
        for row in rows::of_gpu() {
            for metric in row.metrics() {
                cadences.entry(metric.ordinal).or_insert(row.cadence);
            }
        }
        cadences
    });
    cadences.get(&metric.ordinal).copied()
}
