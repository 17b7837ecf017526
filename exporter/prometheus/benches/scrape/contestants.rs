//! The same series in three libraries.

use std::{
    future::Future,
    pin::pin,
    sync::{Mutex, OnceLock, atomic::AtomicU64},
    task::{Context, Poll, Waker},
};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
        number_data_point,
    },
};
use prometheus::{Encoder, GaugeVec, Opts, Registry, TextEncoder};
use prometheus_client::metrics::{family::Family, gauge};
use prost::Message;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusSink, PrometheusStore};

use crate::{SERIES, load::BATCH, thread_nanos};

const NAME: &str = "train_loss_component";
const KEYS: [&str; 4] = ["train_run_id", "train_rank", "train_component", "host_name"];

/// A library that holds all series.
pub(crate) trait Contestant: Sync {
    fn name(&self) -> &'static str;
    /// Writes the page into a reused buffer, so that no page of memory is new to the kernel.
    fn scrape(&self);
    /// Returns the bytes of the last page, and the number of bytes that begin labels.
    fn page(&self) -> (usize, usize);
    /// Adds the batch of that number: new values of this number of series.
    fn take(&self, batch: usize);
}

/// Our sink and its store.
pub(crate) struct Ours {
    sink: Mutex<PrometheusSink>,
    store: PrometheusStore,
    batches: OnceLock<Vec<Batch>>,
    page: Mutex<Vec<u8>>,
}

/// `prometheus`.
pub(crate) struct Official {
    registry: Registry,
    gauges: GaugeVec,
    page: Mutex<Vec<u8>>,
}

/// `prometheus-client`.
pub(crate) struct Client {
    registry: prometheus_client::registry::Registry,
    gauges: Family<Vec<(&'static str, String)>, gauge::Gauge<f64, AtomicU64>>,
    page: Mutex<String>,
}

fn labels(series: usize) -> [String; 4] {
    [
        "llama-3-8b-20260101".to_owned(),
        (series % 512).to_string(),
        format!("component_{}", series / 512),
        format!("node-{:04}", series % 512 / 8),
    ]
}

/// Returns loss-like values with all digits, different in each batch.
fn value(series: usize, batch: usize) -> f64 {
    2.0 + ((series * 31 + batch * 17) as f64 * 0.618_033_988_749_895).fract()
}

/// Returns the series of a batch.
fn series_of(batch: usize) -> impl Iterator<Item = usize> {
    let first = batch * BATCH % SERIES;
    first..first + BATCH
}

impl Ours {
    pub(crate) fn new() -> Self {
        let sink = PrometheusSink::new(&PrometheusConfig::default());
        let ours = Self {
            store: sink.store(),
            sink: Mutex::new(sink),
            batches: OnceLock::new(),
            page: Mutex::default(),
        };
        (0..SERIES / BATCH).for_each(|number| ours.deliver(&batch(number)));
        ours
    }

    /// Returns the CPU time for one point.
    pub(crate) fn nanos_per_point(&self) -> f64 {
        let batches = self.batches();
        let start = thread_nanos();
        batches.iter().for_each(|batch| self.deliver(batch));
        (thread_nanos() - start) as f64 / SERIES as f64
    }

    /// Returns batches for every series, created before any measurement.
    fn batches(&self) -> &[Batch] {
        self.batches
            .get_or_init(|| (1..=SERIES / BATCH).map(batch).collect())
    }

    fn deliver(&self, batch: &Batch) {
        let mut sink = self.sink.lock().unwrap();
        let mut delivery = pin!(sink.deliver(batch));
        let polled = delivery.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Delivery::Delivered));
    }
}

impl Contestant for Ours {
    fn name(&self) -> &'static str {
        "pulsetrain"
    }

    fn scrape(&self) {
        let mut page = self.page.lock().unwrap();
        page.clear();
        self.store.write_text(&mut page);
    }

    fn page(&self) -> (usize, usize) {
        sizes(&self.page.lock().unwrap())
    }

    fn take(&self, number: usize) {
        let batches = self.batches();
        self.deliver(&batches[number % batches.len()]);
    }
}

impl Official {
    pub(crate) fn new() -> Self {
        let gauges = GaugeVec::new(Opts::new(NAME, "Loss."), &KEYS).unwrap();
        let registry = Registry::new();
        registry.register(Box::new(gauges.clone())).unwrap();
        let official = Self {
            registry,
            gauges,
            page: Mutex::default(),
        };
        (0..SERIES / BATCH).for_each(|number| official.take(number));
        official
    }
}

impl Contestant for Official {
    fn name(&self) -> &'static str {
        "prometheus 0.14"
    }

    fn scrape(&self) {
        let mut page = self.page.lock().unwrap();
        page.clear();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut *page)
            .unwrap();
    }

    fn page(&self) -> (usize, usize) {
        sizes(&self.page.lock().unwrap())
    }

    fn take(&self, number: usize) {
        for series in series_of(number) {
            let labels = labels(series);
            self.gauges
                .with_label_values(&labels.each_ref().map(String::as_str))
                .set(value(series, number));
        }
    }
}

impl Client {
    pub(crate) fn new() -> Self {
        let mut registry = prometheus_client::registry::Registry::default();
        let gauges = Family::default();
        registry.register(NAME, "Loss", gauges.clone());
        let client = Self {
            registry,
            gauges,
            page: Mutex::default(),
        };
        (0..SERIES / BATCH).for_each(|number| client.take(number));
        client
    }
}

impl Contestant for Client {
    fn name(&self) -> &'static str {
        "prometheus-client 0.25"
    }

    fn scrape(&self) {
        let mut page = self.page.lock().unwrap();
        page.clear();
        prometheus_client::encoding::text::encode(&mut *page, &self.registry).unwrap();
    }

    fn page(&self) -> (usize, usize) {
        sizes(self.page.lock().unwrap().as_bytes())
    }

    fn take(&self, number: usize) {
        for series in series_of(number) {
            let labels = KEYS.into_iter().zip(labels(series)).collect::<Vec<_>>();
            self.gauges.get_or_create(&labels).set(value(series, number));
        }
    }
}

fn sizes(page: &[u8]) -> (usize, usize) {
    (page.len(), page.iter().filter(|byte| **byte == b'{').count())
}

/// Returns a batch as a source would send it.
fn batch(number: usize) -> Batch {
    let attribute = |key: &str, value: String| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value)),
        }),
        ..KeyValue::default()
    };
    let point = |series| NumberDataPoint {
        attributes: KEYS
            .into_iter()
            .zip(labels(series))
            .map(|(key, value)| attribute(key, value))
            .collect(),
        value: Some(number_data_point::Value::AsDouble(value(series, number))),
        ..NumberDataPoint::default()
    };
    let metric = Metric {
        name: NAME.to_owned(),
        data: Some(Data::Gauge(Gauge {
            data_points: series_of(number).map(point).collect(),
        })),
        ..Metric::default()
    };
    let scope = ScopeMetrics {
        metrics: vec![metric],
        ..ScopeMetrics::default()
    };
    let data = MetricsData {
        resource_metrics: vec![ResourceMetrics {
            scope_metrics: vec![scope],
            ..ResourceMetrics::default()
        }],
    };
    Batch::new(Signal::Metrics, BATCH as u32, data.encode_to_vec())
}
