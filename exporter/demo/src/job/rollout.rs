//! The sample pool of reinforcement learning: inference fills it, training empties it, and waits if it has too few samples.

use std::time::Duration;

use super::segment::RolloutStep;
use crate::{config::DemoConfig, faults::Effects, random::Random};

/// Samples of a step of one rank.
pub(crate) const SAMPLES_PER_RANK: u64 = 16;
/// The limit of the pool, in the samples of a step.
const LIMIT: f64 = 4.0;
/// The size of the pool at the start, in the samples of a step.
const FILLED: f64 = 2.0;
/// Capacity of inference in a healthy job, as a multiple of the capacity of training.
const INFERENCE: f64 = 1.15;
/// The random stream.
const STREAM: u64 = 0xb0;

/// The pool.
pub(super) struct SamplePool {
    size: f64,
    batch: f64,
    step_seconds: f64,
    random: Random,
    inference: f64,
}

impl SamplePool {
    pub(super) fn new(config: &DemoConfig) -> Self {
        let batch = (SAMPLES_PER_RANK * u64::from(config.ranks)) as f64;
        Self {
            size: FILLED * batch,
            batch,
            step_seconds: config.step_time.as_secs_f64(),
            random: Random::new(config.seed, STREAM),
            inference: 1.0,
        }
    }

    /// Removes the samples of a step from the pool, after the wait for missing samples.
    pub(super) fn begin_step(&mut self, effects: &Effects) -> RolloutStep {
        let train_capacity = self.batch / self.step_seconds;
        let infer_capacity = INFERENCE * train_capacity * effects.inference * self.random.factor(0.03);
        self.inference = infer_capacity;
        let missing = (self.batch - self.size).max(0.0);
        let wait = missing / infer_capacity;
        self.size += wait * infer_capacity - self.batch;
        // Engines with capacity to spare replace the samples of the batch while it is handed over.
        let spare = (effects.inference - 1.0).max(0.0) * self.batch;
        self.size = (self.size + spare).min(LIMIT * self.batch);
        RolloutStep {
            wait: Duration::from_nanos((wait * 1e9) as u64),
            pool_size: self.size,
            pool_limit: LIMIT * self.batch,
            infer_capacity,
            train_capacity,
            generation: Duration::from_nanos((self.batch / infer_capacity * 1e9) as u64),
        }
    }

    /// Adds the samples that were generated during the step.
    pub(super) fn end_step(&mut self, step: &RolloutStep, duration: Duration) {
        let training = duration.saturating_sub(step.wait).as_nanos() as f64 / 1e9;
        self.size = (self.size + training * self.inference).min(step.pool_limit);
    }
}
