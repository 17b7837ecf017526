//! The GPU source on a fake driver, and the points that it sends.

use std::{
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
