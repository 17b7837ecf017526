//! The kept values of a step: a fixed table of metrics, so that a step has a fixed size.

use pulsetrain_semconv::{Metric, metric};

/// The kept metrics.
pub(crate) const KEPT: [&Metric; 26] = [
    &metric::TRAIN_LOSS,
    &metric::TRAIN_GRAD_NORM,
    &metric::TRAIN_LEARNING_RATE,
    &metric::TRAIN_EPOCH,
    &metric::TRAIN_PROGRESS,
    &metric::TRAIN_TOKENS,
    &metric::TRAIN_REAL_TOKENS,
    &metric::TRAIN_SAMPLES,
    &metric::TRAIN_STEPS,
    &metric::TRAIN_SKIPPED_STEPS,
    &metric::TRAIN_TOTAL_WEIGHTS,
    &metric::TRAIN_THROUGHPUT_TOKENS,
    &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
    &metric::TRAIN_THROUGHPUT_SAMPLES,
    &metric::TRAIN_THROUGHPUT_STEPS,
    &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE,
    &metric::TRAIN_FLOPS_PER_STEP_PER_DEVICE,
    &metric::TRAIN_MFU,
    &metric::TRAIN_SOL,
    &metric::PERF_TRAIN_CAPACITY,
    &metric::PERF_INFER_CAPACITY,
    &metric::PERF_SAMPLE_POOL_SIZE,
    &metric::PERF_THROUGHPUT,
    &metric::MEMORY_FRAMEWORK_ALLOCATED,
    &metric::MEMORY_FRAMEWORK_RESERVED,
    &metric::MEMORY_HOST_USED,
];

/// The values of one step. NaN is a value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Values([Option<f64>; KEPT.len()]);

impl Values {
    /// Returns the value of a metric, or `None` if it was not recorded with the step.
    ///
    /// A metric that is not in [`KEPT`] never has one.
    pub(crate) fn get(&self, metric: &'static Metric) -> Option<f64> {
        let is_it = |kept: &&Metric| kept.ordinal == metric.ordinal;
        self.0[KEPT.iter().position(is_it)?]
    }

    /// Sets the value of an index.
    pub(crate) fn set(&mut self, place: usize, value: f64) {
        self.0[place] = Some(value);
    }

    /// Sets the value of an index unless it has one.
    pub(crate) fn set_missing(&mut self, place: usize, value: f64) {
        self.0[place].get_or_insert(value);
    }

    /// Adds to the value of an index.
    pub(crate) fn add(&mut self, place: usize, value: f64) {
        *self.0[place].get_or_insert(0.0) += value;
    }

    /// Merges the values of another part of the same step. The later part has precedence.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = theirs.or(*mine);
        }
    }
}
