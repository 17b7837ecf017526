//! What one rank reported of one step, as far as cross-rank signals need it.

use super::UnixNanos;

/// A step of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RankStep {
    pub(crate) rank: i64,
    pub(crate) number: i64,
    pub(crate) start: UnixNanos,
    pub(crate) end: UnixNanos,
    /// When the first step began that this record covers: before `start` where the trainer records every n-th step.
    pub(crate) covered_start: UnixNanos,
    /// How many steps this record covers.
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
    /// Loss; rank 0 alone reports it most often.
    pub(crate) loss: Option<f64>,
    /// Gradient norm.
    pub(crate) grad_norm: Option<f64>,
    /// Samples that wait for training.
    pub(crate) sample_pool: Option<f64>,
    /// Samples per second that inference could give.
    pub(crate) infer_capacity: Option<f64>,
    /// Samples per second that training could use.
    pub(crate) train_capacity: Option<f64>,
    /// Bytes that the framework's allocator has handed out.
    pub(crate) framework_memory: Option<f64>,
    /// Bytes of host memory in use.
    pub(crate) host_memory: Option<f64>,
}

impl RankStep {
    /// Creates a step of which only the times are known.
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

    /// Returns `part` of the step's duration, at most 1; `None` for a step without a duration.
    pub(crate) fn share(&self, part: f64) -> Option<f64> {
        let duration = self.duration();
        (duration > 0.0).then(|| (part / duration).clamp(0.0, 1.0))
    }
}
