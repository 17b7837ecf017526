//! The GPU source on a fake driver, and the points that it sends.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use pulsetrain_gpu::{
    GpuAttribution, GpuConfig, GpuNotice, GpuSource, ImexConfig, ImexProgram, Inventory, NoAttribution,
};
use pulsetrain_pipeline::{Batch, BoxFuture, CancellationToken, Delivery, Pipeline, Sink, run_sources};
use pulsetrain_tests::{FakeNvml, wait_until};
use serde_json::Value;

/// A point or an event that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The name of the metric or the event.
    pub(crate) name: String,
    /// Its attributes.
    pub(crate) attributes: BTreeMap<String, String>,
    /// The unit of the metric.
    pub(crate) unit: String,
    /// The instrument of the metric, in the terms of the conventions; empty for an event.
    pub(crate) instrument: &'static str,
    /// The type of the value, in the terms of the conventions.
    pub(crate) value_type: &'static str,
    /// The value; the count for a histogram.
    pub(crate) value: f64,
    /// The sum of a histogram.
    pub(crate) sum: f64,
    /// The start time, in Unix nanoseconds.
    pub(crate) start: u64,
    /// The time of the measurement, in Unix nanoseconds.
    pub(crate) time: u64,
    /// Whether it only ends its series.
    pub(crate) ends: bool,
}

/// The source on a thread of its own.
pub(crate) struct Watch {
    sent: Arc<Mutex<Vec<Point>>>,
    notices: Arc<Mutex<Vec<GpuNotice>>>,
    inventory: tokio::sync::watch::Receiver<Arc<Inventory>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// The shortest interval that the performance counters allow.
pub(crate) const INTERVAL: Duration = Duration::from_millis(120);

/// Returns a configuration for this driver, with that interval.
pub(crate) fn config(fake: &FakeNvml) -> GpuConfig {
    GpuConfig {
        library: Some(fake.library()),
        interval: INTERVAL,
        // Readings between passes have separate tests.
        energy_interval: 2 * INTERVAL,
        release_for_reset: None,
        imex: ImexConfig {
            program: ImexProgram::Off,
            ..ImexConfig::default()
        },
        ..GpuConfig::default()
    }
}

impl Watch {
    pub(crate) fn start(config: GpuConfig) -> Self {
        Self::with(config, Box::new(NoAttribution))
    }

    pub(crate) fn with(config: GpuConfig, belonging: Box<dyn GpuAttribution>) -> Self {
        let (sent, notices) = (
            Arc::<Mutex<Vec<Point>>>::default(),
            Arc::<Mutex<Vec<GpuNotice>>>::default(),
        );
        let heard = Arc::clone(&notices);
        let source = GpuSource::new(config, belonging, move |notice| lock(&heard).push(notice));
        let (inventory, stop) = (source.inventory(), CancellationToken::new());
        let (sink, stopping) = (Collected(Arc::clone(&sent)), stop.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be had").block_on(async {
                let (pipeline, ingress) = Pipeline::builder().sink(Box::new(sink)).start();
                run_sources(vec![Box::new(source)], &ingress, &stopping).await;
                pipeline.drain(Duration::from_secs(10)).await;
            });
        });
        Self {
            sent,
            notices,
            inventory,
            stop,
            thread: Some(thread),
        }
    }

    /// Returns all points sent so far.
    pub(crate) fn sent(&self) -> Vec<Point> {
        lock(&self.sent).clone()
    }

    /// Returns the notices so far.
    pub(crate) fn notices(&self) -> Vec<GpuNotice> {
        lock(&self.notices).clone()
    }

    /// Returns the current GPUs.
    pub(crate) fn inventory(&self) -> Arc<Inventory> {
        Arc::clone(&self.inventory.borrow())
    }

    /// Returns the points of a metric with these attributes, in the order of sending.
    pub(crate) fn points(&self, name: &str, attributes: &[(&str, &str)]) -> Vec<Point> {
        let is = |point: &Point| point.is(name, attributes);
        lock(&self.sent)
            .iter()
            .filter(|point| is(point))
            .cloned()
            .collect()
    }

    /// Waits for a point of a metric with these attributes for which `wanted` returns true, and returns the last such point.
    pub(crate) fn wait_for(
        &self,
        name: &str,
        attributes: &[(&str, &str)],
        wanted: impl Fn(&Point) -> bool,
    ) -> Point {
        let mut found = None;
        wait_until(&format!("{name} {attributes:?} is as wanted"), || {
            found = self.points(name, attributes).into_iter().rev().find(&wanted);
            found.is_some()
        });
        found.expect("it was waited for")
    }

    /// Waits for this number of further passes of the first GPU.
    pub(crate) fn wait_passes(&self, passes: usize) {
        self.wait_passes_of(0, passes);
    }

    /// Waits for this number of further passes of a GPU. Each GPU has passes of its own.
    pub(crate) fn wait_passes_of(&self, gpu: usize, passes: usize) {
        let index = gpu.to_string();
        let of_gpu = |point: &Point| point.is("gpu.memory.used", &[("gpu.index", &index)]);
        let count = || lock(&self.sent).iter().filter(|point| of_gpu(point)).count();
        let before = count();
        wait_until("more passes were made", || count() >= before + passes);
    }

    /// Stops the source, waits for its end, and returns all points sent.
    pub(crate) fn end(mut self) -> Vec<Point> {
        self.stop.cancel();
        let thread = self.thread.take().expect("it ends once");
        thread.join().expect("the source does not panic");
        self.sent()
    }
}

impl Point {
    /// Returns whether it belongs to that metric and has all of these attributes.
    pub(crate) fn is(&self, name: &str, attributes: &[(&str, &str)]) -> bool {
        let has = |(key, value): &(&str, &str)| self.attributes.get(*key).is_some_and(|own| own == value);
        self.name == name && attributes.iter().all(has)
    }

    /// Returns an identifier of its series.
    pub(crate) fn series(&self) -> String {
        format!("{} {:?}", self.name, self.attributes)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A sink that keeps all points.
struct Collected(Arc<Mutex<Vec<Point>>>);

impl Sink for Collected {
    fn name(&self) -> &str {
        "collected"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let mut json = Vec::new();
        pulsetrain_otlp::json::encode(batch.signal(), batch.bytes(), &mut json).expect("a batch is OTLP");
        let message: Value = serde_json::from_slice(&json).expect("OTLP/JSON is JSON");
        let points = points_of(&message);
        assert_eq!(points.len(), batch.items() as usize, "every item is counted");
        lock(&self.0).extend(points);
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}

fn points_of(message: &Value) -> Vec<Point> {
    let mut points = Vec::new();
    for resource in each(&message["resourceMetrics"]) {
        for metric in each(&resource["scopeMetrics"]).flat_map(|scope| each(&scope["metrics"])) {
            for kind in ["gauge", "sum", "histogram"] {
                let instrument = match (kind, metric[kind]["isMonotonic"] == true) {
                    ("sum", true) => "counter",
                    ("sum", false) => "updowncounter",
                    (kind, _) => kind,
                };
                points.extend(each(&metric[kind]["dataPoints"]).map(|point| Point {
                    unit: text(&metric["unit"]),
                    instrument,
                    ..point_of(text(&metric["name"]), point)
                }));
            }
        }
    }
    for resource in each(&message["resourceLogs"]) {
        for record in each(&resource["scopeLogs"]).flat_map(|scope| each(&scope["logRecords"])) {
            points.push(point_of(text(&record["eventName"]), record));
        }
    }
    points
}

/// The name of a series, its attributes and its value.
type SeriesRow<'t> = (&'t str, Vec<(&'t str, &'t str)>, f64);

/// Parses a table with one series a line into names, attributes and values: `gpu.power{gpu.power.reading=instant} 500`.
pub(crate) fn parse_series(table: &str) -> Vec<SeriesRow<'_>> {
    fn row(line: &str) -> SeriesRow<'_> {
        let (series, value) = line.rsplit_once(' ').expect("a line ends with a value");
        let (name, attributes) = series.split_once('{').unwrap_or((series, ""));
        let attributes = attributes
            .trim_end_matches('}')
            .split(", ")
            .filter(|pair| !pair.is_empty());
        let pairs = attributes.map(|pair| pair.split_once('=').expect("an attribute has a value"));
        (name, pairs.collect(), value.parse().expect("a value is a number"))
    }
    table.lines().map(row).collect()
}

fn point_of(name: String, point: &Value) -> Point {
    let attribute = |attribute: &Value| {
        let value = attribute["value"]
            .as_object()
            .and_then(|value| value.values().next());
        (text(&attribute["key"]), value.map(text).unwrap_or_default())
    };
    let value = ["asDouble", "asInt", "count"]
        .iter()
        .find_map(|field| point.get(*field));
    Point {
        name,
        attributes: each(&point["attributes"]).map(attribute).collect(),
        unit: String::new(),
        instrument: "",
        value_type: match (point.get("asInt"), point.get("asDouble")) {
            (Some(_), _) => "int",
            (_, Some(_)) => "double",
            _ => "",
        },
        value: value
            .map(text)
            .and_then(|value| value.parse().ok())
            .unwrap_or(f64::NAN),
        sum: point["sum"].as_f64().unwrap_or(f64::NAN),
        start: text(&point["startTimeUnixNano"]).parse().unwrap_or_default(),
        time: text(&point["timeUnixNano"]).parse().unwrap_or_default(),
        ends: point["flags"] == 1,
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
