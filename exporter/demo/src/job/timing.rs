//! The durations inside a step, and the barrier that all ranks wait at.
//!
//! A rank computes forward and backward on its own. The gradients are reduced over all ranks at the end of backward, so each rank
//! waits there for the slowest one: a slow rank extends the backward of the others, and the step of all ranks.

use std::time::Duration;

use pulsetrain_otlp::UnixNanos;

use super::segment::RankStep;
use crate::{
    config::{DemoConfig, Workload},
    faults::Effects,
    random::Random,
};

/// A phase of a step of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    DispatchWait,
    Data,
    ReferenceInference,
    Forward,
    Backward,
    Optimizer,
    WeightSync,
}

/// The shares of the phases in an undisturbed step.
struct Shares {
    data: f64,
    reference: f64,
    forward: f64,
    backward: f64,
    optimizer: f64,
    weight_sync: f64,
}

const SFT: Shares = Shares {
    data: 0.03,
    reference: 0.0,
    forward: 0.28,
    backward: 0.52,
    optimizer: 0.09,
    weight_sync: 0.0,
};

const RL: Shares = Shares {
    data: 0.01,
    reference: 0.10,
    forward: 0.22,
    backward: 0.44,
    optimizer: 0.08,
    weight_sync: 0.08,
};

/// The shares of the gradient reduction over all ranks, and of the host between two steps.
const REDUCTION: f64 = 0.06;
const HOST: f64 = 0.01;

/// Standard deviations of the logarithm of durations: of all ranks together, of a rank, of its data.
const COMMON_NOISE: f64 = 0.025;
const RANK_NOISE: f64 = 0.01;
const DATA_NOISE: f64 = 0.25;

/// The probability that a step is slow on all ranks (a congested network), and that a rank pauses for garbage collection.
const SLOW_STEP_CHANCE: f64 = 1.0 / 500.0;
const PAUSE_CHANCE: f64 = 1.0 / 2000.0;
/// The duration of such a pause, in steps.
const PAUSE: f64 = 0.3;

/// Extra duration of the first step of an attempt, as a share, and the number of steps in which it decays by a factor of e.
const FIRST_STEP: f64 = 0.8;
const DECAY_STEPS: f64 = 1.5;

/// The random streams: that of all ranks together, and the first one of the single ranks.
const STREAM: u64 = 0x71;
const RANK_STREAM: u64 = 0x7100;

/// Draws the durations of steps.
pub(super) struct Timing {
    shares: Shares,
    step_nanos: f64,
    common: Random,
    ranks: Vec<Random>,
    steps_of_attempt: u32,
}

impl Timing {
    pub(super) fn new(config: &DemoConfig) -> Self {
        Self {
            shares: match config.workload {
                Workload::Sft => SFT,
                Workload::Rl => RL,
            },
            step_nanos: config.step_time.as_nanos() as f64,
            common: Random::new(config.seed, STREAM),
            ranks: (0..u64::from(config.ranks))
                .map(|rank| Random::new(config.seed, RANK_STREAM + rank))
                .collect(),
            steps_of_attempt: 0,
        }
    }

    /// Begins another attempt: its first steps are slow again.
    pub(super) fn restart(&mut self) {
        self.steps_of_attempt = 0;
    }

    /// Returns a step of every rank, which starts when the rank is ready. All ranks first wait for their samples.
    pub(super) fn step(
        &mut self,
        ready_unix_nanos: &[UnixNanos],
        effects: &Effects,
        wait: Duration,
    ) -> Vec<RankStep> {
        let mut common = self.common.factor(COMMON_NOISE);
        let slow_step = 1.3 + 0.9 * self.common.uniform();
        if self.common.chance(SLOW_STEP_CHANCE) {
            common *= slow_step;
        }
        common *= 1.0 + FIRST_STEP * (-f64::from(self.steps_of_attempt) / DECAY_STEPS).exp();
        self.steps_of_attempt = self.steps_of_attempt.saturating_add(1);
        let mut ranks: Vec<RankStep> = ready_unix_nanos
            .iter()
            .enumerate()
            .map(|(rank, start)| self.compute(rank, *start, common, effects, wait))
            .collect();
        let reduction = REDUCTION * common * self.common.factor(0.1);
        let reduction = self.duration(reduction);
        let slowest = ranks
            .iter()
            .map(|rank| rank.end_unix_nanos)
            .max()
            .unwrap_or_default();
        for (rank, step) in ranks.iter_mut().enumerate() {
            self.update(rank, step, slowest.saturating_add(reduction));
        }
        ranks
    }

    /// Returns the part of a step that a rank computes alone: up to the end of its backward pass.
    fn compute(
        &mut self,
        rank: usize,
        start_unix_nanos: UnixNanos,
        common: f64,
        effects: &Effects,
        wait: Duration,
    ) -> RankStep {
        let random = &mut self.ranks[rank];
        let starved = effects.data_wait * random.factor(0.08);
        let data = self.shares.data * random.factor(DATA_NOISE) + starved;
        let slow = common * effects.slow[rank];
        let pause = if random.chance(PAUSE_CHANCE) { PAUSE } else { 0.0 };
        let forward = self.shares.forward * slow * random.factor(RANK_NOISE) + pause;
        let backward = self.shares.backward * slow * random.factor(RANK_NOISE);
        let reference = self.shares.reference * common * random.factor(RANK_NOISE);
        let mut end = start_unix_nanos;
        let mut phases = Vec::with_capacity(7);
        if self.shares.reference > 0.0 {
            end = end.saturating_add(wait);
            phases.push((Phase::DispatchWait, end));
        }
        for (phase, steps) in [
            (Phase::Data, data),
            (Phase::ReferenceInference, reference),
            (Phase::Forward, forward),
            (Phase::Backward, backward),
        ] {
            if steps > 0.0 {
                end = end.saturating_add(self.duration(steps));
                phases.push((phase, end));
            }
        }
        RankStep {
            start_unix_nanos,
            end_unix_nanos: end,
            phases,
        }
    }

    /// Adds the part of a step after the barrier.
    fn update(&mut self, rank: usize, step: &mut RankStep, barrier_unix_nanos: UnixNanos) {
        let random = &mut self.ranks[rank];
        let optimizer = self.shares.optimizer * random.factor(0.02);
        let weight_sync = self.shares.weight_sync * random.factor(0.03);
        let host = HOST * random.factor(0.2);
        if let Some((Phase::Backward, end)) = step.phases.last_mut() {
            *end = barrier_unix_nanos;
        }
        let mut end = barrier_unix_nanos.saturating_add(self.duration(optimizer));
        step.phases.push((Phase::Optimizer, end));
        if weight_sync > 0.0 {
            end = end.saturating_add(self.duration(weight_sync));
            step.phases.push((Phase::WeightSync, end));
        }
        step.end_unix_nanos = end.saturating_add(self.duration(host));
    }

    fn duration(&self, steps: f64) -> Duration {
        Duration::from_nanos((steps * self.step_nanos) as u64)
    }
}
