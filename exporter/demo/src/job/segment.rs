//! Segments: intervals of time in which all ranks have the same activity.

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::UnixNanos;

use super::{curves::StepValues, timing::Phase};
use crate::faults::Effects;

/// An activity of all ranks in an interval of time.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The number of restarts of the run before the segment.
    pub(crate) attempt: i64,
    /// The start time.
    pub(crate) start_unix_nanos: UnixNanos,
    /// The end time.
    pub(crate) end_unix_nanos: UnixNanos,
    /// The activity of the ranks.
    pub(crate) activity: Activity,
    /// The effects of the faults in this interval.
    pub(crate) effects: Arc<Effects>,
}

/// An activity of the job.
#[derive(Clone, Debug)]
pub(crate) enum Activity {
    /// Sets up the run.
    Init,
    /// Compiles the model.
    Compile,
    /// Reads the checkpoint of a step.
    Load {
        /// The step.
        step: u64,
    },
    /// Does a step.
    Step(Box<StepRun>),
    /// Writes a checkpoint after a step.
    Save {
        /// The step.
        step: u64,
    },
    /// Evaluates after a step.
    Eval {
        /// The step.
        step: u64,
        /// The loss on held-out data.
        loss: f64,
    },
    /// Does nothing.
    Stalled,
    /// Waits in a collective that never ends.
    Hanging {
        /// The rank whose GPU is lost.
        lost: Option<usize>,
    },
    /// Does not run: killed, and not restarted yet.
    Down {
        /// The rank whose GPU is lost.
        lost: Option<usize>,
    },
}

/// A step of all ranks.
#[derive(Clone, Debug)]
pub(crate) struct StepRun {
    /// The number of the step.
    pub(crate) step: u64,
    /// The ranks.
    pub(crate) ranks: Vec<RankStep>,
    /// The values of the training metrics.
    pub(crate) values: StepValues,
    /// The samples that the step trained on; `None` if they are not generated.
    pub(crate) rollout: Option<RolloutStep>,
}

/// A step of one rank.
#[derive(Clone, Debug)]
pub(crate) struct RankStep {
    /// The start time.
    pub(crate) start_unix_nanos: UnixNanos,
    /// The end time.
    pub(crate) end_unix_nanos: UnixNanos,
    /// The phases with their end times. The first phase begins with the step, every other one at the end of the phase before.
    pub(crate) phases: Vec<(Phase, UnixNanos)>,
}

/// The samples of a step.
#[derive(Clone, Debug)]
pub(crate) struct RolloutStep {
    /// The time that training waited for the samples.
    pub(crate) wait: Duration,
    /// The samples in the pool after those of the step were removed.
    pub(crate) pool_size: f64,
    /// The limit of samples in the pool.
    pub(crate) pool_limit: f64,
    /// The capacity of inference in samples per second.
    pub(crate) infer_capacity: f64,
    /// The capacity of training in samples per second.
    pub(crate) train_capacity: f64,
    /// The duration of the generation of the samples of a step.
    pub(crate) generation: Duration,
}

impl RankStep {
    /// Returns the phases with start and end.
    pub(crate) fn phases(&self) -> impl Iterator<Item = (Phase, UnixNanos, UnixNanos)> {
        let mut start = self.start_unix_nanos;
        self.phases.iter().map(move |(phase, end)| {
            let phase = (*phase, start, *end);
            start = *end;
            phase
        })
    }
}
