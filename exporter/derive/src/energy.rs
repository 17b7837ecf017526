//! Energy and GPU activity of each training step.
//!
//! GPU metrics pass by and leave their readings in `fleet`; spans `train.step` are held (`steps`) until the counters of their
//! GPUs (`share`) were read after their end, then `taken` says what they took: the counter's growth between the step's own
//! times, by a straight line between the readings around them. It goes on the span, and into metrics (`recorder`), under the
//! receipt of the step's batch. `memory` keeps the readings for steps that come again after a kill.

mod fleet;
mod memory;
mod readings;
mod recorder;
mod share;
mod steps;
mod taken;
mod tellers;
mod told;
mod totals;
mod window;

use std::{fmt, io, path::Path, time::Duration};

use pulsetrain_otlp::{
    Signal,
    view::{Message, Resource, Span},
    wire::{Reader, Value},
};
use pulsetrain_pipeline::{
    Batch, Stage,
    clock::{self, Instant},
};
use pulsetrain_semconv::metric;

use self::{
    fleet::{Fleet, Quantity},
    memory::Memory,
    recorder::Recorder,
    share::Share,
    steps::{SpanFacts, Step, Told, Waiting},
    taken::Taken,
    tellers::Tellers,
    totals::Totals,
};
use crate::{
    points::{self, Point},
    spans::{self, TakenSpan},
};

/// How long steps wait, and how much is kept in mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnergyConfig {
    /// How long a step waits for the next reading of its GPUs; then it goes on with what is known.
    pub wait: Duration,
    /// How old a step may be: readings are kept for so long.
    pub history: Duration,
    /// How many steps may wait; of more the oldest goes on with what is known.
    pub max_waiting: usize,
    /// How many readings of each counter and gauge are kept.
    pub max_readings: usize,
}

impl Default for EnergyConfig {
    /// For what is read while it happens: 5 s and 10 minutes.
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(5),
            history: Duration::from_secs(600),
            max_waiting: 4096,
            max_readings: 8192,
        }
    }
}

impl EnergyConfig {
    /// For recordings that are read from disk, the GPUs' before the steps': everything is kept.
    pub fn offline() -> Self {
        Self {
            wait: Duration::from_secs(24 * 3600),
            history: Duration::from_nanos(u64::MAX),
            max_waiting: 65_536,
            max_readings: 1 << 22,
        }
    }
}

/// Says what each training step took of its GPUs; a [`Stage`] of the pipeline.
pub struct EnergyStage {
    config: EnergyConfig,
    fleet: Fleet,
    tellers: Tellers,
    waiting: Waiting,
    totals: Totals,
    recorder: Recorder,
    memory: Option<Memory>,
    watcher: Option<Watcher>,
}

/// Is shown every batch that the stage adds.
type Watcher = Box<dyn Fn(&Batch) + Send>;

/// What a batch brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    None,
    Steps,
    Readings,
}

/// A point that is of interest.
#[derive(Clone, Copy)]
enum Interest {
    Gpu(Quantity),
    StepDuration,
}

impl EnergyStage {
    /// A stage that has heard of nothing yet.
    pub fn new(config: EnergyConfig) -> Self {
        Self {
            config,
            fleet: Fleet::default(),
            tellers: Tellers::default(),
            waiting: Waiting::default(),
            totals: Totals::default(),
            recorder: Recorder::default(),
            memory: None,
            watcher: None,
        }
    }

    /// The same stage; `watch` is shown every batch that it adds, and must not wait there.
    #[must_use]
    pub fn watched(self, watch: impl Fn(&Batch) + Send + 'static) -> Self {
        Self {
            watcher: Some(Box::new(watch)),
            ..self
        }
    }

    /// The same stage with what is kept at `path` of the readings of GPUs, which it keeps from now on: steps that come again
    /// after a restart, and those across it, are told by the readings from before.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn remembering(mut self, path: &Path) -> io::Result<Self> {
        let (memory, kept) = Memory::open(path)?;
        for readings in kept {
            self.learn(&Batch::new(Signal::Metrics, 0, readings));
        }
        self.forget(clock::now());
        self.memory = Some(memory);
        Ok(self)
    }

    /// Takes in the readings of GPUs that a batch of metrics holds, before any step comes; says how many were
    /// of their energy.
    pub fn learn(&mut self, batch: &Batch) -> usize {
        let mut readings = 0;
        let fleet = &mut self.fleet;
        let _ = points::for_each(batch.bytes(), Quantity::of, |quantity, origin, _, point| {
            fleet.observe(quantity, origin, point);
            readings += usize::from(quantity == Quantity::Energy);
        });
        readings
    }

    /// Sees the metrics of GPUs and the durations of steps. What cannot be read is no concern of ours: it goes on as it is.
    fn observe(&mut self, batch: &Batch, now: Instant) -> News {
        let Self {
            config,
            fleet,
            tellers,
            waiting,
            ..
        } = self;
        let mut news = News::None;
        let wanted = |name: pulsetrain_otlp::view::Text<'_>| {
            let is_step = name == metric::TRAIN_STEP_DURATION.name;
            let step = is_step.then_some(Interest::StepDuration);
            step.or_else(|| Quantity::of(name).map(Interest::Gpu))
        };
        let _ = points::for_each(batch.bytes(), wanted, |interest, origin, resource, point| match (
            interest, point,
        ) {
            (Interest::Gpu(quantity), point) => {
                fleet.observe(quantity, origin, point);
                news = News::Readings;
            }
            (Interest::StepDuration, Point::Histogram(point)) if !fleet.is_empty() => {
                let sum = point.sum.unwrap_or(f64::NAN);
                if let Some(duration) = tellers.note_point(origin, now, point.count, sum) {
                    let deadline = clock::later(now, config.wait);
                    let told = (resource_of(resource).to_vec(), batch.with_contents(0, Vec::new()));
                    waiting.push(Step::of_point(origin, point, duration, told, deadline));
                    news = news.max(News::Steps);
                }
            }
            (Interest::StepDuration, _) => {}
        });
        if news == News::Readings {
            self.remember(batch);
        }
        news
    }

    /// Keeps the readings of a batch that comes only once.
    fn remember(&self, batch: &Batch) {
        if let Some(memory) = self.memory.as_ref().filter(|_| !batch.comes_again())
            && let Ok(readings) = points::only(batch.bytes(), |name| Quantity::of(name).is_some())
        {
            memory.keep(readings);
        }
    }

    /// Takes the steps out of a batch of spans; gives what is left of it.
    fn hold_steps(&mut self, batch: Batch, now: Instant) -> (Option<Batch>, News) {
        let mut facts = Vec::new();
        let wanted = |origin: &crate::origin::Origin, span: &Span<'_>| {
            let step = origin.run.as_ref().and_then(|_| SpanFacts::of(span));
            facts.extend(step);
            step.is_some()
        };
        let Ok((rest, taken)) = spans::take(&batch, wanted) else {
            return (Some(batch), News::None);
        };
        if taken.is_empty() {
            return (Some(batch), News::None);
        }
        let deadline = clock::later(now, self.config.wait);
        for (facts, span) in facts.into_iter().zip(taken) {
            self.tellers.note_span(&span.envelope.origin, now);
            self.waiting.push(Step::of_span(facts, span, deadline));
        }
        (rest, News::Steps)
    }

    /// Lets go the steps of which all is known that will be.
    fn settle(&mut self, news: News, now: Instant, out: &mut Vec<Batch>) {
        let Self {
            config,
            fleet,
            tellers,
            waiting,
            ..
        } = self;
        let ready = waiting.take_ready(fleet, tellers, *config, now, news == News::Readings);
        self.account(ready, out);
    }

    /// Forgets what no step will ask for any more.
    fn forget(&mut self, now: Instant) {
        let history = u64::try_from(self.config.history.as_nanos()).unwrap_or(u64::MAX);
        self.fleet.forget(history, self.config.max_readings);
        self.tellers.forget(now, self.config.history);
    }

    /// Says of each step what it took, and lets it go.
    fn account(&mut self, steps: Vec<Step>, out: &mut Vec<Batch>) {
        let mut told = Vec::new();
        let mut steps = steps.into_iter().peekable();
        while let Some(step) = steps.next() {
            let batch = step.batch().clone();
            told.extend(self.account_one(step));
            let is_last = |next: &Step| !next.batch().shares_receipt(&batch);
            if steps.peek().is_none_or(is_last) {
                self.attribute(&batch, out);
            }
        }
        out.extend(spans::batches(&told));
    }

    /// Lets go what was recorded of the steps of `batch`: what is derived comes again, after a kill, exactly when they do.
    fn attribute(&mut self, batch: &Batch, out: &mut Vec<Batch>) {
        for batch in self.recorder.batches(batch) {
            if let Some(watch) = &self.watcher {
                watch(&batch);
            }
            out.push(batch);
        }
    }

    /// Says what a step took; gives its span, where it has one.
    fn account_one(&mut self, mut step: Step) -> Option<TakenSpan> {
        if let Some(share) = Share::of(&self.fleet, &self.tellers, &step.origin, step.window) {
            let taken = Taken::by(&share, step.window);
            let told = taken.energy_joules.map(|_| share.keys()).unwrap_or_default();
            let complete = taken
                .energy_joules
                .filter(|_| taken.status == taken::Status::Complete);
            let per_token = complete.and_then(|joules| self.totals.add(&step, &share, joules));
            let resource = match &mut step.told {
                Told::Span(span) => {
                    taken.with_attributes(|attributes| span.append(attributes));
                    &span.envelope.resource
                }
                Told::Point { resource, .. } => resource,
            };
            self.recorder.record(resource, step.window, &taken, per_token);
            self.fleet.record_attributed(&told, step.window);
        }
        match step.told {
            Told::Span(span) => Some(span),
            Told::Point { .. } => None,
        }
    }
}

impl Stage for EnergyStage {
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
        let news = match batch.signal() {
            Signal::Metrics => {
                let news = self.observe(&batch, now);
                out.push(batch);
                news
            }
            Signal::Traces if !self.fleet.is_empty() => {
                let (rest, news) = self.hold_steps(batch, now);
                out.extend(rest);
                news
            }
            _ => {
                out.push(batch);
                News::None
            }
        };
        if news != News::None {
            self.settle(news, now, out);
        }
        if news == News::Readings {
            self.forget(now);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.waiting.due()
    }

    fn release(&mut self, now: Instant, out: &mut Vec<Batch>) {
        self.settle(News::None, now, out);
    }

    fn finish(&mut self, out: &mut Vec<Batch>) {
        let all = self.waiting.take_all(&self.tellers);
        self.account(all, out);
    }
}

/// The message of the resource inside a `ResourceMetrics`; empty where there is none.
fn resource_of(resource_metrics: &[u8]) -> &[u8] {
    let resource = Reader::new(resource_metrics)
        .map_while(Result::ok)
        .find_map(|field| match (field.number, field.value) {
            (1, Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        });
    resource
        .filter(|bytes| Resource::decode(bytes).is_ok())
        .unwrap_or_default()
}

impl fmt::Debug for EnergyStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnergyStage")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
