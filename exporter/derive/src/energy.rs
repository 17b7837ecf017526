//! Energy and GPU activity of each training step.
//!
//! `gpu_readings` keeps the readings of GPU metrics. Spans `train.step` are deferred (`pending`) until the energy counters of their
//! GPUs (`assignment`) were read after the end of the step. `step_energy` then reads the counters (`energy_counter`) at the start and
//! the end of the step. `run_energy` has the energy between steps. The result is written to the span and to metrics (`recorder`), under the
//! ack of the step's batch. `reading_log` keeps the readings on disk for steps that are replayed after a kill.

mod assignment;
mod attributed;
mod delta_total;
mod energy_counter;
mod gpu_readings;
mod pending;
mod reading_log;
mod readings;
mod recorder;
mod reporters;
mod resolution;
mod run_energy;
mod step_energy;
mod totals;
mod window;

use std::{fmt, io, path::Path, time::Duration};

use pulsetrain_otlp::{Signal, view::Span};
use pulsetrain_pipeline::{
    Batch, Stage,
    clock::{self, Instant},
};
use pulsetrain_run::{RunOrigin, SeriesPoint};
use pulsetrain_semconv::metric;

use self::{
    assignment::GpuAssignment,
    gpu_readings::{GpuReadings, Quantity},
    pending::{PendingSteps, SpanFacts, Step, StepSource},
    reading_log::ReadingLog,
    recorder::{Phase, Recorder},
    reporters::StepReporters,
    step_energy::StepEnergy,
    totals::Totals,
    window::Window,
};
use crate::{
    points,
    spans::{self, ExtractedSpan},
    steps::assembler::{handle, resource_bytes},
};

/// The limits of the stage: the wait of steps, and the number of steps and readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyConfig {
    /// The time that a step waits for the next reading of its GPUs. After that it is sent with the known
    /// energy.
    pub wait: Duration,
    /// The maximum age of a step. Older readings are deleted.
    pub history: Duration,
    /// The maximum number of waiting steps. Beyond it, the oldest is sent with the known energy.
    pub max_waiting: usize,
    /// The maximum number of readings of each counter and gauge.
    pub max_readings: usize,
}

impl Default for EnergyConfig {
    /// Returns the limits for live telemetry: 5 s and 10 minutes.
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(5),
            history: Duration::from_secs(600),
            max_waiting: 4096,
            max_readings: 16_384,
        }
    }
}

impl EnergyConfig {
    /// Returns the limits for recordings, whose GPU readings are loaded before the steps: everything is kept.
    pub fn offline() -> Self {
        Self {
            wait: Duration::from_secs(24 * 3600),
            history: Duration::from_nanos(u64::MAX),
            max_waiting: 65_536,
            max_readings: 1 << 22,
        }
    }
}

/// Attributes GPU energy and activity to training steps; a [`Stage`] of the pipeline.
pub struct EnergyStage {
    config: EnergyConfig,
    gpus: GpuReadings,
    reporters: StepReporters,
    pending: PendingSteps,
    totals: Totals,
    recorder: Recorder,
    reading_log: Option<ReadingLog>,
    watcher: Option<Watcher>,
}

/// Called with every batch that the stage adds.
type Watcher = Box<dyn Fn(&Batch) + Send>;

/// The kind of data that a batch had for the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Received {
    None,
    Steps,
    Readings,
}

/// The points that the stage reads.
#[derive(Clone, Copy)]
enum Interest {
    Gpu(Quantity),
    StepDuration,
}

impl EnergyStage {
    /// Returns a stage without readings.
    pub fn new(config: EnergyConfig) -> Self {
        Self {
            config,
            gpus: GpuReadings::default(),
            reporters: StepReporters::default(),
            pending: PendingSteps::default(),
            totals: Totals::default(),
            recorder: Recorder::default(),
            reading_log: None,
            watcher: None,
        }
    }

    /// Calls `watch`, which must not block, with every batch that the stage adds.
    #[must_use]
    pub fn watched(self, watch: impl Fn(&Batch) + Send + 'static) -> Self {
        Self {
            watcher: Some(Box::new(watch)),
            ..self
        }
    }

    /// Keeps the readings of GPUs in the file at `path` and loads its content. Steps that are replayed after
    /// a restart, and steps that span it, need the earlier readings.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn with_reading_log(mut self, path: &Path) -> io::Result<Self> {
        let (reading_log, saved) = ReadingLog::open(path)?;
        for readings in saved {
            self.load_readings(&Batch::new(Signal::Metrics, 0, readings));
        }
        self.expire(clock::now());
        self.reading_log = Some(reading_log);
        Ok(self)
    }

    /// Loads the GPU readings of a batch of metrics, before the first step, and returns how many of them are of energy.
    pub fn load_readings(&mut self, batch: &Batch) -> usize {
        let mut readings = 0;
        let gpus = &mut self.gpus;
        let _ = points::for_each(
            batch.bytes(),
            Quantity::from_metric_name,
            |quantity, origin, _, point| {
                gpus.observe(quantity, origin, point);
                readings += usize::from(quantity == Quantity::Energy);
            },
        );
        readings
    }

    /// Reads the metrics of GPUs and the durations of steps. A batch that cannot be decoded is ignored here and passes unchanged.
    fn observe(&mut self, batch: &Batch, now: Instant) -> Received {
        let Self {
            config,
            gpus,
            reporters,
            pending,
            ..
        } = self;
        let mut received = Received::None;
        let wanted = |name: pulsetrain_otlp::view::Text<'_>| {
            let is_step = name == metric::TRAIN_STEP_DURATION.name;
            let step = is_step.then_some(Interest::StepDuration);
            step.or_else(|| Quantity::from_metric_name(name).map(Interest::Gpu))
        };
        let _ = points::for_each(
            batch.bytes(),
            wanted,
            |interest, origin, resource, point| match interest {
                Interest::Gpu(quantity) => {
                    gpus.observe(quantity, origin, point);
                    received = Received::Readings;
                }
                Interest::StepDuration if gpus.is_empty() => {}
                Interest::StepDuration => {
                    let point = SeriesPoint::from_point(point).filter(|point| point.count.is_some());
                    if let Some(point) = point
                        && let Some(duration) = reporters.observe_point(origin, now, &point)
                    {
                        let deadline = clock::later(now, config.wait);
                        let envelope = (resource_bytes(resource).to_vec(), handle(batch));
                        let window = Window::new(point.time.minus_secs(duration), point.time);
                        pending.push(Step::of_point(origin, window, envelope, deadline));
                        received = received.max(Received::Steps);
                    }
                }
            },
        );
        if received == Received::Readings {
            self.save_readings(batch);
        }
        received
    }

    /// Writes the readings of a batch that is not replayed to the reading log.
    fn save_readings(&self, batch: &Batch) {
        if let Some(log) = self.reading_log.as_ref().filter(|_| !batch.is_replayable())
            && let Ok(readings) =
                points::only(batch.bytes(), |name| Quantity::from_metric_name(name).is_some())
        {
            log.append(readings);
        }
    }

    /// Extracts the steps from a batch of spans and returns the rest of the batch.
    fn defer_steps(&mut self, batch: Batch, now: Instant) -> (Option<Batch>, Received) {
        let mut facts = Vec::new();
        let wanted = |origin: &RunOrigin, span: &Span<'_>| {
            let step = origin.run_id.as_ref().and_then(|_| SpanFacts::from_span(span));
            facts.extend(step);
            step.is_some()
        };
        let Ok((rest, extracted)) = spans::extract(&batch, wanted) else {
            return (Some(batch), Received::None);
        };
        if extracted.is_empty() {
            return (Some(batch), Received::None);
        }
        let deadline = clock::later(now, self.config.wait);
        for (facts, span) in facts.into_iter().zip(extracted) {
            self.reporters.observe_span(&span.envelope.origin, now);
            self.pending.push(Step::of_span(facts, span, deadline));
        }
        (rest, Received::Steps)
    }

    /// Sends the steps whose readings are complete.
    fn settle(&mut self, received: Received, now: Instant, out: &mut Vec<Batch>) {
        let Self {
            config,
            gpus,
            reporters,
            pending,
            ..
        } = self;
        let ready = pending.take_ready(gpus, reporters, *config, now, received == Received::Readings);
        self.account(ready, out);
    }

    /// Sends the energy outside of steps of the runs that ended, or of all runs.
    fn end_runs(&mut self, all: bool, out: &mut Vec<Batch>) {
        for outside in self.gpus.end_runs(all) {
            let end = Window::new(outside.unix_nanos, outside.unix_nanos);
            self.recorder
                .add_energy(&outside.resource, end, Phase::Outside, outside.joules);
        }
        self.attribute(&Batch::new(Signal::Metrics, 0, Vec::new()), out);
    }

    /// Deletes readings and reporters that are older than the history.
    fn expire(&mut self, now: Instant) {
        self.gpus.expire(self.config.history, self.config.max_readings);
        self.reporters.expire(now, self.config.history);
    }

    /// Attributes energy to each step and sends it.
    fn account(&mut self, steps: Vec<Step>, out: &mut Vec<Batch>) {
        let mut spans = Vec::new();
        let mut steps = steps.into_iter().peekable();
        while let Some(step) = steps.next() {
            let batch = step.batch().clone();
            spans.extend(self.account_one(step));
            let is_last = |next: &Step| !next.batch().can_share_batch_with(&batch);
            if steps.peek().is_none_or(is_last) {
                self.attribute(&batch, out);
            }
        }
        out.extend(spans::batches(&spans));
    }

    /// Sends the points that were recorded for the steps of `batch`: after a kill, derived points are replayed exactly when those
    /// steps are.
    fn attribute(&mut self, batch: &Batch, out: &mut Vec<Batch>) {
        for batch in self.recorder.batches(batch) {
            if let Some(watch) = &self.watcher {
                watch(&batch);
            }
            out.push(batch);
        }
    }

    /// Attributes energy to a step and returns its span, or `None` if the step was reported as a point.
    fn account_one(&mut self, mut step: Step) -> Option<ExtractedSpan> {
        let resolution = self.reporters.learn_resolution(&step.origin, step.window);
        if let Some(assignment) = GpuAssignment::new(&self.gpus, &self.reporters, &step.origin, step.window) {
            let energy = StepEnergy::new(&assignment, step.window, resolution);
            let by_gpu = assignment.keys().zip(energy.by_gpu.iter().copied());
            let by_gpu: Vec<_> = by_gpu.filter(|_| energy.energy_joules.is_some()).collect();
            let complete = energy.energy_joules.filter(|_| energy.status.is_complete());
            let per_token = complete.and_then(|joules| self.totals.add(&step, &assignment, joules));
            let resource = match &mut step.source {
                StepSource::Span(span) => {
                    energy.with_attributes(|attributes| span.append(attributes));
                    &span.envelope.resource
                }
                StepSource::Point { resource, .. } => resource,
            };
            self.recorder.record(resource, step.window, &energy, per_token);
            if let (Some(joules), Some(run)) = (energy.energy_joules, &step.origin.run_id) {
                let outside = self.gpus.record_attributed(&by_gpu, (run, resource), step.window);
                self.recorder
                    .add_energy(resource, step.window, Phase::Step, joules);
                self.recorder
                    .add_energy(resource, step.window, Phase::Outside, outside);
            }
        }
        match step.source {
            StepSource::Span(span) => Some(span),
            StepSource::Point { .. } => None,
        }
    }
}

impl Stage for EnergyStage {
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
        let received = match batch.signal() {
            Signal::Metrics => {
                let received = self.observe(&batch, now);
                out.push(batch);
                received
            }
            Signal::Traces if !self.gpus.is_empty() => {
                let (rest, received) = self.defer_steps(batch, now);
                out.extend(rest);
                received
            }
            _ => {
                out.push(batch);
                Received::None
            }
        };
        if received != Received::None {
            self.settle(received, now, out);
        }
        if received == Received::Readings {
            self.end_runs(false, out);
            self.expire(now);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.pending.due()
    }

    fn release(&mut self, now: Instant, out: &mut Vec<Batch>) {
        self.settle(Received::None, now, out);
    }

    fn finish(&mut self, out: &mut Vec<Batch>) {
        let all = self.pending.take_all(&self.reporters);
        self.account(all, out);
        self.end_runs(true, out);
    }
}

impl fmt::Debug for EnergyStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnergyStage")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
