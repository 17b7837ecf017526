//! The report of one rank about one step, for cross-rank signals.

use super::UnixNanos;

/// A step of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RankStep {
    pub(crate) rank: i64,
    pub(crate) number: i64,
    pub(crate) start: UnixNanos,
    pub(crate) end: UnixNanos,
    /// The start of the first step that this record covers. It is before `start` if the trainer records every
    /// n-th step.
    pub(crate) covered_start: UnixNanos,
    /// The number of steps that this record covers.
    pub(crate) covered: i64,
    /// Time that the step waited for its data, in seconds.
    pub(crate) data: Option<f64>,
    /// Time that the step waited for samples of inference or rollout, in seconds.
    pub(crate) dispatch_wait: Option<f64>,
    /// Time in the forward pass, in seconds.
    pub(crate) forward: Option<f64>,
    /// Time in the backward pass with the collectives that it waits for, in seconds.
    pub(crate) backward: Option<f64>,
    /// Time of other work before the backward pass, in seconds: rollout, reference model.
    pub(crate) other_before_backward: f64,
    /// Loss, which often only rank 0 reports.
    pub(crate) loss: Option<f64>,
    /// Gradient norm.
    pub(crate) grad_norm: Option<f64>,
    /// The number of samples that wait for training.
    pub(crate) sample_pool: Option<f64>,
    /// The samples per second that inference can produce.
    pub(crate) infer_capacity: Option<f64>,
    /// The samples per second that training can consume.
    pub(crate) train_capacity: Option<f64>,
    /// The bytes allocated by the framework's allocator.
    pub(crate) framework_memory: Option<f64>,
    /// Bytes of host memory in use.
    pub(crate) host_memory: Option<f64>,
}

impl RankStep {
    /// Returns a step with its times only.
    pub(crate) fn new(rank: i64, number: i64, start: UnixNanos, end: UnixNanos) -> Self {
        Self {
            rank,
            number,
            start,
            end,
            covered_start: start,
            covered: 1,
            ..Self::default()
        }
    }

    /// Returns the duration in seconds.
    pub(crate) fn duration(&self) -> f64 {
        self.end.secs_since(self.start)
    }

    /// Returns `part` as a share of the step's duration, at most 1, or `None` for a step without a duration.
    pub(crate) fn share(&self, part: f64) -> Option<f64> {
        let duration = self.duration();
        (duration > 0.0).then(|| (part / duration).clamp(0.0, 1.0))
    }
}
