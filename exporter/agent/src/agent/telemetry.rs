//! The agent's own telemetry: the typed instruments of the registry over the OpenTelemetry SDK.
//!
//! `instrumented_source` counts the batches of sources, `instrumented_sink` the deliveries of sinks, `ledger_metrics` the
//! counts of the ledger, `series` the series in the stores of Prometheus sinks. `exporter` passes the collected metrics
//! of the SDK to the pipeline, so that they reach the same sinks as all telemetry: the page of Prometheus and OTLP.

mod exporter;
mod instrumented_sink;
mod instrumented_source;
mod ledger_metrics;
mod levels;
mod newest;
mod resolution;
mod series;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider},
};
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use pulsetrain_pipeline::{Batch, Ingress, Ledger, Sink, clock};
use pulsetrain_prometheus::PrometheusStore;
use pulsetrain_semconv::{attribute, instruments};
use pulsetrain_tail::{PollReport, TailStatus};
use tokio::task::JoinHandle;

pub(super) use self::instrumented_sink::NamedSink;
use self::{exporter::IngressExporter, instrumented_source::SourceGauges, ledger_metrics::LedgerMetrics};
use super::health::SourceLag;
use crate::{
    config::{AGENT_SOURCE, TelemetryConfig},
    import::resource::Resource,
};

/// The reader's interval, which practically disables it: the agent triggers each collection itself, right after it has
/// read the ledger.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// The agent's own telemetry.
pub(super) struct Telemetry {
    shared: Arc<Shared>,
    ticking: JoinHandle<()>,
}

struct Shared {
    provider: SdkMeterProvider,
    accepted: Counter<u64>,
    delivered: Counter<u64>,
    export_duration: Histogram<f64>,
    source_duration: Histogram<f64>,
    skipped: Counter<u64>,
    exporter: IngressExporter,
    last_reload_succeeded: AtomicBool,
    sources: Mutex<BTreeMap<String, Arc<SourceGauges>>>,
    ledger_metrics: Mutex<LedgerMetrics>,
    ledger: Ledger,
}

impl Telemetry {
    /// Starts the collection, and sends the metrics through `ingress`, as this service with these attributes.
    pub(super) fn start(
        config: &TelemetryConfig,
        resource: &Resource,
        ledger: Ledger,
        ingress: &Ingress,
    ) -> Self {
        let gauges = Arc::<SourceGauges>::default();
        let exporter = IngressExporter::new(resource);
        let reader = PeriodicReader::builder(exporter.clone())
            .with_interval(NEVER)
            .build();
        let provider = SdkMeterProvider::builder()
            .with_reader(reader)
            .with_view(resolution::view_for)
            .build();
        let meter = provider.meter("pulsetrain");
        let shared = Arc::new(Shared::new(provider, exporter.clone(), &meter, ledger));
        shared
            .sources()
            .insert(AGENT_SOURCE.to_owned(), Arc::clone(&gauges));
        exporter.set_ingress(instrumented_source::ingress(
            &ingress.of_source(AGENT_SOURCE),
            AGENT_SOURCE,
            shared.accepted.clone(),
            gauges,
        ));
        let ticking = tokio::spawn(tick(Arc::clone(&shared), config.interval.0));
        Self { shared, ticking }
    }

    /// Changes the collection interval.
    pub(super) fn change_interval(&mut self, interval: Duration) {
        self.ticking.abort();
        self.ticking = tokio::spawn(tick(Arc::clone(&self.shared), interval));
    }

    /// Returns the sink under its name, with its deliveries counted and timed.
    pub(super) fn measure(
        &self,
        name: &str,
        sink: Box<dyn Sink>,
        series: Option<PrometheusStore>,
    ) -> Box<dyn Sink> {
        if let Some(series) = series {
            self.shared.ledger_metrics().series().watch(name, series);
        }
        let (delivered, duration) = (self.shared.delivered.clone(), self.shared.export_duration.clone());
        Box::new(instrumented_sink::InstrumentedSink::new(
            NamedSink::new(name, sink),
            delivered,
            duration,
        ))
    }

    /// Reports this limit of the queue of a sink, in bytes.
    pub(super) fn record_queue_limit(&self, queue: &str, bytes: usize) {
        self.shared.ledger_metrics().record_queue_limit(queue, bytes);
    }

    /// Counts derived signals like the batches of a source of that name.
    pub(super) fn watch_derived(&self, source: &str) -> impl Fn(&Batch) + Send + Sync + 'static {
        instrumented_source::watch(source, self.shared.accepted.clone(), Arc::default())
    }

    /// Returns the ingress for a source, which counts the batches.
    pub(super) fn watch(&self, source: &str, ingress: &Ingress) -> Ingress {
        let gauges = Arc::<SourceGauges>::default();
        self.shared
            .sources()
            .insert(source.to_owned(), Arc::clone(&gauges));
        instrumented_source::ingress(ingress, source, self.shared.accepted.clone(), gauges)
    }

    /// Reports the logs of a watched source.
    pub(super) fn watch_logs(&self, source: &str, logs: Arc<TailStatus>) {
        if let Some(gauges) = self.shared.sources().get(source) {
            gauges.watch_logs(logs);
        }
    }

    /// Returns a function that reads the lag of each source.
    pub(super) fn source_lags(&self) -> impl Fn() -> BTreeMap<String, SourceLag> + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            let lag = |gauges: &SourceGauges| SourceLag {
                lag: gauges.lag(),
                last_batch: gauges.last_success(),
            };
            let sources = shared.sources();
            sources
                .iter()
                .map(|(name, gauges)| (name.clone(), lag(gauges)))
                .collect()
        }
    }

    /// Returns the callback that records every reading of a source.
    pub(super) fn measure_source(&self, source: &str) -> impl FnMut(PollReport) + Send + 'static {
        let source = KeyValue::new(attribute::PULSETRAIN_SOURCE_NAME.name, source.to_owned());
        let shared = Arc::clone(&self.shared);
        move |reading| {
            let mut attributes = vec![source.clone()];
            if let Some(error) = reading.error {
                let error = error.to_string().replace(' ', "_");
                attributes.push(KeyValue::new(attribute::ERROR_TYPE.name, error));
            }
            shared
                .source_duration
                .record(reading.duration.as_secs_f64(), &attributes);
            for (reason, count) in reading.skipped {
                let reason = KeyValue::new(attribute::PULSETRAIN_SKIP_REASON.name, reason.as_str());
                shared.skipped.add(count, &[source.clone(), reason]);
            }
        }
    }

    /// Records whether the last configuration that was read is active.
    pub(super) fn record_reload(&self, has_succeeded: bool) {
        self.shared
            .last_reload_succeeded
            .store(has_succeeded, Ordering::Relaxed);
    }

    /// Removes a source, and with it the series of its lag.
    pub(super) fn forget_source(&self, source: &str) {
        self.shared.sources().remove(source);
    }

    /// Sends the last collection.
    pub(super) async fn end(&self) {
        self.ticking.abort();
        let shared = Arc::clone(&self.shared);
        // The SDK blocks its thread while it waits, so the flush runs on a blocking thread.
        let _ = tokio::task::spawn_blocking(move || {
            shared.record();
            shared.provider.shutdown()
        })
        .await;
    }
}

async fn tick(shared: Arc<Shared>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let shared = Arc::clone(&shared);
        // Metrics that could not be sent are in the ledger; the SDK has nothing to add.
        let _ = tokio::task::spawn_blocking(move || {
            shared.record();
            shared.provider.force_flush()
        })
        .await;
    }
}

impl Shared {
    fn new(provider: SdkMeterProvider, exporter: IngressExporter, meter: &Meter, ledger: Ledger) -> Self {
        Self {
            provider,
            accepted: instruments::pulsetrain_accepted_items(meter),
            delivered: instruments::pulsetrain_delivered_items(meter),
            export_duration: instruments::pulsetrain_export_duration(meter),
            source_duration: instruments::pulsetrain_source_duration(meter),
            skipped: instruments::pulsetrain_skipped_records(meter),
            exporter,
            last_reload_succeeded: AtomicBool::new(true),
            sources: Mutex::default(),
            ledger_metrics: Mutex::new(LedgerMetrics::new(meter)),
            ledger,
        }
    }

    /// Records the values that are read instead of counted.
    fn record(&self) {
        let sinks = self.ledger.snapshot();
        self.ledger_metrics().record(&sinks);
        let sources = self.sources();
        let sources = sources.iter().map(|(name, gauges)| (name, &**gauges));
        let has_reloaded = self.last_reload_succeeded.load(Ordering::Relaxed);
        self.exporter
            .levels()
            .read(&sinks, sources, has_reloaded, clock::unix_now());
    }

    fn ledger_metrics(&self) -> MutexGuard<'_, LedgerMetrics> {
        self.ledger_metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SourceGauges>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
