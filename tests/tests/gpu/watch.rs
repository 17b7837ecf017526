//! The GPU source on a fake driver, and the points that it sends.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use pulsetrain_gpu::{
    GpuConfig, GpuNotice, GpuSemconv, GpuSource, GpuTrouble, ImexConfig, ImexProgram, Inventory,
    NoAttribution,
};
use pulsetrain_pipeline::{Batch, BoxFuture, CancellationToken, Delivery, Pipeline, Sink, run_sources};
use pulsetrain_tests::{FakeNvml, wait_until};
use serde_json::Value;

pub(crate) use crate::point::Point;
use crate::point::points_of;

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

/// As [`config`], with these names of metrics.
pub(crate) fn config_with(fake: &FakeNvml, semconv: GpuSemconv) -> GpuConfig {
    GpuConfig {
        semconv,
        ..config(fake)
    }
}

impl Watch {
    /// Starts a driver with a scenario and changes to it, and a source that reads it.
    pub(crate) fn scenario(scenario: &str, changes: &str) -> (FakeNvml, Self) {
        let fake = FakeNvml::with(scenario, changes);
        let watch = Self::start(config(&fake));
        (fake, watch)
    }

    /// As [`scenario`](Self::scenario), with changes to eight H100.
    pub(crate) fn of_h100(changes: &str) -> (FakeNvml, Self) {
        Self::scenario("h100x8", changes)
    }

    /// As [`scenario`](Self::scenario), with a clock that runs.
    pub(crate) fn running(scenario: &str, changes: &str) -> (FakeNvml, Self) {
        let fake = FakeNvml::with(scenario, changes);
        fake.run_from(0.0);
        let watch = Self::start(config(&fake));
        (fake, watch)
    }

    pub(crate) fn start(config: GpuConfig) -> Self {
        let (sent, notices) = (
            Arc::<Mutex<Vec<Point>>>::default(),
            Arc::<Mutex<Vec<GpuNotice>>>::default(),
        );
        let heard = Arc::clone(&notices);
        let source = GpuSource::new(config, Box::new(NoAttribution), move |notice| {
            lock(&heard).push(notice);
        });
        let (inventory, stop) = (source.inventory(), CancellationToken::new());
        let (collected, stopping) = (Arc::clone(&sent), stop.clone());
        let sink = JsonSink(move |batch: &Batch, message: Value| {
            let points = points_of(&message);
            assert_eq!(points.len(), batch.items() as usize, "every item is counted");
            lock(&collected).extend(points);
        });
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

    /// Returns the number of notices so far for which `wanted` returns true.
    pub(crate) fn count_notices(&self, wanted: impl Fn(&GpuNotice) -> bool) -> usize {
        self.notices().iter().filter(|notice| wanted(notice)).count()
    }

    /// Returns the troubles of a GPU in the notices so far.
    pub(crate) fn troubles(&self, gpu: u32) -> Vec<GpuTrouble> {
        let notices = self.notices().into_iter();
        notices
            .filter_map(|notice| match notice {
                GpuNotice::Trouble { gpu: of, trouble, .. } if of == gpu => Some(trouble),
                _ => None,
            })
            .collect()
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

    /// Waits for any point of a metric with these attributes, and returns the last one.
    pub(crate) fn wait_any(&self, name: &str, attributes: &[(&str, &str)]) -> Point {
        self.wait_for(name, attributes, |_| true)
    }

    /// Waits for a point with this value.
    pub(crate) fn wait_value(&self, name: &str, attributes: &[(&str, &str)], value: f64) -> Point {
        self.wait_for(name, attributes, |point| point.value == value)
    }

    /// Waits for the end of a series.
    pub(crate) fn wait_end(&self, name: &str, attributes: &[(&str, &str)]) -> Point {
        self.wait_for(name, attributes, |point| point.ends)
    }

    /// Waits for a value that is newer than the end of a series.
    pub(crate) fn wait_back(&self, name: &str, attributes: &[(&str, &str)], end: &Point) -> Point {
        self.wait_for(name, attributes, |point| !point.ends && point.time > end.time)
    }

    /// Waits for the reason why a metric is unavailable.
    pub(crate) fn wait_unavailable(&self, metric: &str, reason: &str) {
        let why = [("gpu.metric.name", metric), ("gpu.unavailable.reason", reason)];
        self.wait_any("gpu.metric.unavailable", &why);
    }

    /// Waits for the series of a table (see [`parse_series`]), and asserts their values. A series `gpu.*` without an index is
    /// one of the first GPU.
    #[track_caller]
    pub(crate) fn expect_all(&self, table: &str) {
        for (name, mut attributes, value) in parse_series(table) {
            if name.starts_with("gpu.") && !attributes.iter().any(|(key, _)| *key == "gpu.index") {
                attributes.push(("gpu.index", "0"));
            }
            let found = self.wait_any(name, &attributes).value;
            assert!(
                (found - value).abs() <= 1e-6 * value.abs().max(1e-15),
                "{name} {attributes:?} is {found} and not {value}"
            );
        }
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

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A sink that calls a function with each batch and its OTLP/JSON.
pub(crate) struct JsonSink<F>(pub(crate) F);

impl<F: FnMut(&Batch, Value) + Send + 'static> Sink for JsonSink<F> {
    fn name(&self) -> &str {
        "json"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let mut json = Vec::new();
        pulsetrain_otlp::json::encode(batch.signal(), batch.bytes(), &mut json).expect("a batch is OTLP");
        (self.0)(batch, serde_json::from_slice(&json).expect("OTLP/JSON is JSON"));
        Box::pin(std::future::ready(Delivery::Delivered))
    }
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
    table.lines().map(str::trim).map(row).collect()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
