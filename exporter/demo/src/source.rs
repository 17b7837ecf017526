//! The demo as a source of the pipeline: the past at once, then in real time.

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::{BoxFuture, CancellationToken, Ingress, Problem, Source, clock};
use tokio::runtime::Handle;

use crate::{Demo, DemoConfig, DemoCounts, SeriesCounter, Truth, batch_sender::BatchSender};

/// Runs a job whose simulated time is that of the clock.
///
/// Telemetry from before the start of the source is sent as fast as the sinks accept it; the rest is sent at its own time. A slow
/// sink is waited for. A sink that does not recover delays the others only for a limited time, and loses its own data.
pub struct DemoSource {
    config: DemoConfig,
    on_progress: Box<dyn FnMut(DemoProgress) + Send>,
}

/// The progress of the job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemoProgress {
    /// The counts of the telemetry so far.
    pub counts: DemoCounts,
    /// The number of series so far.
    pub series: u64,
    /// The faults so far.
    pub truth: Vec<Truth>,
    /// Whether the job has ended, or was stopped.
    pub is_over: bool,
}

impl DemoSource {
    /// Returns a source of a job; `on_progress` is called after every step and at the end.
    pub fn new(config: DemoConfig, on_progress: impl FnMut(DemoProgress) + Send + 'static) -> Self {
        Self {
            config,
            on_progress: Box::new(on_progress),
        }
    }

    /// Runs the job on a thread that may block.
    fn run_blocking(
        mut self,
        ingress: &Ingress,
        stop: &CancellationToken,
        runtime: &Handle,
    ) -> Result<(), Problem> {
        let mut demo = Demo::new(self.config).map_err(|error| Problem::new(error.to_string()))?;
        let started_unix_nanos = clock::unix_nanos();
        let (mut counts, mut series) = (DemoCounts::default(), SeriesCounter::default());
        let mut sender = BatchSender::new(ingress.clone());
        let mut report = |demo: &Demo, counts, series: &SeriesCounter, is_over| {
            (self.on_progress)(DemoProgress {
                counts,
                series: series.series(),
                truth: demo.truth().to_vec(),
                is_over,
            });
        };
        while let Some((time_unix_nanos, batches)) = demo.next_batches() {
            let is_live = time_unix_nanos > started_unix_nanos;
            if stop.is_cancelled() || is_live && !runtime.block_on(wait_until(time_unix_nanos, stop)) {
                break;
            }
            if !sender.send(&batches, is_live, stop) {
                break;
            }
            for batch in &batches {
                counts.add(batch);
                series.observe(batch);
            }
            if demo.counts().steps > counts.steps {
                counts.steps = demo.counts().steps;
                report(&demo, counts, &series, false);
            }
        }
        report(&demo, counts, &series, true);
        Ok(())
    }
}

impl Source for DemoSource {
    fn name(&self) -> &str {
        "demo"
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        let runtime = Handle::current();
        Box::pin(async move {
            let job = tokio::task::spawn_blocking(move || self.run_blocking(&ingress, &stop, &runtime));
            job.await.unwrap_or_else(|error| {
                let what = format!("the simulation stopped before its end: {error}");
                Err(Problem::new(what))
            })
        })
    }
}

/// Waits until a time. Returns whether it was reached before the stop.
async fn wait_until(time_unix_nanos: UnixNanos, stop: &CancellationToken) -> bool {
    let wait = time_unix_nanos.saturating_duration_since(clock::unix_nanos());
    if wait.is_zero() {
        return true;
    }
    tokio::select! {
        () = tokio::time::sleep(wait) => true,
        () = stop.cancelled() => false,
    }
}
