//! `perf.bottleneck`: the bottleneck of a pipeline, by the rules of TorchSpec's documentation
//! (`docs/performance_metrics.md`, "Identifying the bottleneck").
//!
//! TorchSpec gives no numbers for ">>" and "~". Ours are in the table, and are those of the importer of
//! TorchSpec's logs.
//!
//! | state | first matching rule |
//! |---|---|
//! | `inference` | `dispatch_wait` is at least the time that training works, or `infer_capacity < 0.9 * train_capacity` |
//! | `none` | the capacities differ by less than a tenth |
//! | `data` | training is slower (or the sample pool grew over five steps) and `data > 2 * compute` |
//! | `compute` | the same and `compute > 2 * data` |
//! | `training` | the same and neither |
//!
//! A trainer without an inference side has no capacities and no pool. There the state is `data` if more than
//! a fifth of data + compute is data, the threshold of the verdict `data_starved`, otherwise `compute`.
//! Compute is `perf.compute_time`, else forward, backward and optimizer together. The states `communication`
//! and `checkpoint` need the steps of several ranks and are not derived here.

use std::collections::{HashMap, VecDeque};

use pulsetrain_semconv::{Metric, attribute, metric};

use crate::{
    signals::{Derivation, Signals},
    steps::{Phase, RankId, StepFacts},
};

/// The ratio of capacities above which they are in balance.
const BALANCED: f64 = 0.9;

/// The factor by which data and compute must differ for one of them to limit training.
const DOMINANCE_FACTOR: f64 = 2.0;

/// The share of data in a step above which data is the bottleneck, in a trainer without an inference side.
const DATA_SHARE: f64 = 0.2;

/// The number of steps over which the sample pool has to grow.
const POOL_STEPS: usize = 5;

/// Derives the bottleneck.
#[derive(Debug, Default)]
pub(super) struct Bottleneck(HashMap<RankId, History>);

/// The state of a rank, because a trainer may time only some of its steps.
#[derive(Debug, Default)]
struct History {
    data_secs: Option<f64>,
    compute_secs: Option<f64>,
    pool: VecDeque<f64>,
}

/// The inputs of the rules.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    dispatch_wait: Option<f64>,
    infer_capacity: Option<f64>,
    train_capacity: Option<f64>,
    work_secs: Option<f64>,
    data_secs: Option<f64>,
    compute_secs: Option<f64>,
    has_pool: bool,
    pool_grows: bool,
}

impl Reading {
    fn state(&self) -> Option<&'static str> {
        let is_starved = self
            .dispatch_wait
            .zip(self.work_secs)
            .is_some_and(|(wait, work)| wait > 0.0 && wait >= work);
        if is_starved {
            return Some("inference");
        }
        match (self.infer_capacity, self.train_capacity) {
            (Some(infer), Some(train)) if infer < train * BALANCED => Some("inference"),
            (Some(infer), Some(train)) if infer * BALANCED <= train => Some("none"),
            (Some(_), Some(_)) => Some(self.part_of_training()),
            _ if self.pool_grows => Some(self.part_of_training()),
            (None, None) if !self.has_pool && self.dispatch_wait.is_none() => self.of_plain_trainer(),
            _ => None,
        }
    }

    /// Returns the largest part of a step if training is the slower side.
    fn part_of_training(&self) -> &'static str {
        match (self.data_secs, self.compute_secs) {
            (Some(data), Some(compute)) if data > compute * DOMINANCE_FACTOR => "data",
            (Some(data), Some(compute)) if compute > data * DOMINANCE_FACTOR => "compute",
            _ => "training",
        }
    }

    fn of_plain_trainer(&self) -> Option<&'static str> {
        let (data, compute) = (self.data_secs?, self.compute_secs?);
        let is_data = data > DATA_SHARE * (data + compute);
        Some(if is_data { "data" } else { "compute" })
    }
}

impl History {
    fn read(&mut self, step: &StepFacts) -> Reading {
        self.data_secs = step.phase(Phase::Data).or(self.data_secs);
        self.compute_secs = compute_secs(step).or(self.compute_secs);
        if let Some(size) = step.value(&metric::PERF_SAMPLE_POOL_SIZE) {
            self.pool.push_back(size);
            if self.pool.len() > POOL_STEPS {
                self.pool.pop_front();
            }
        }
        let is_full = self.pool.len() == POOL_STEPS;
        let known = |metric| step.value(metric).filter(|value| *value > 0.0);
        Reading {
            dispatch_wait: step.phase(Phase::DispatchWait),
            infer_capacity: known(&metric::PERF_INFER_CAPACITY),
            train_capacity: known(&metric::PERF_TRAIN_CAPACITY),
            work_secs: work_secs(step),
            data_secs: self.data_secs,
            compute_secs: self.compute_secs,
            has_pool: !self.pool.is_empty(),
            pool_grows: is_full && self.pool.iter().is_sorted() && self.pool.front() < self.pool.back(),
        }
    }
}

/// Returns the known seconds of the devices' work.
fn compute_secs(step: &StepFacts) -> Option<f64> {
    const PARTS: [Phase; 6] = [
        Phase::Forward,
        Phase::Backward,
        Phase::ForwardBackward,
        Phase::Optimizer,
        Phase::ActorTrain,
        Phase::CriticTrain,
    ];
    step.phase(Phase::Compute).or_else(|| {
        let parts = PARTS.into_iter().filter_map(|phase| step.phase(phase));
        let sum: f64 = parts.sum();
        (sum > 0.0).then_some(sum)
    })
}

/// Returns the seconds that training works on a step, without waiting for samples.
fn work_secs(step: &StepFacts) -> Option<f64> {
    let wait = step.phase(Phase::DispatchWait).unwrap_or_default();
    // TorchSpec: train_capacity = global_batch_size / step_time.
    let by_capacity = || {
        let capacity = step.value(&metric::PERF_TRAIN_CAPACITY)?;
        Some(step.constants.batch_size? / capacity)
    };
    let by_rate = || Some((1.0 / step.value(&metric::TRAIN_THROUGHPUT_STEPS)? - wait).max(0.0));
    // The wait is inside the span of the step if it is a child span.
    let inside = if step.phases.has_span(Phase::DispatchWait) {
        wait
    } else {
        0.0
    };
    let by_duration = || Some((step.duration_secs()? - inside).max(0.0));
    step.phase(Phase::QueueStep)
        .or_else(by_capacity)
        .filter(|secs| secs.is_finite())
        .or_else(by_duration)
        .or_else(by_rate)
}

impl Derivation for Bottleneck {
    fn sends(&self) -> &'static [&'static Metric] {
        &[&metric::PERF_BOTTLENECK]
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let reading = self.0.entry(step.rank.id).or_default().read(step);
        if let Some(state) = reading.state() {
            out.resource(&step.rank.resource).state(
                &metric::PERF_BOTTLENECK,
                &attribute::PERF_BOTTLENECK,
                step.end,
                state,
            );
        }
    }

    fn forget(&mut self, rank: RankId) {
        self.0.remove(&rank);
    }
}

#[cfg(test)]
mod tests;
