//! Segments: what all ranks do for a while.

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::UnixNanos;

use super::{curves::StepValues, timing::Phase};
use crate::faults::Effects;

/// What all ranks do from one time to another.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// How often the run had been restarted before.
    pub(crate) attempt: i64,
    /// When it begins.
    pub(crate) start_unix_nanos: UnixNanos,
    /// When it ends.
    pub(crate) end_unix_nanos: UnixNanos,
    /// What they do.
    pub(crate) activity: Activity,
    /// What goes wrong meanwhile.
    pub(crate) effects: Arc<Effects>,
}

/// What the job does.
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
    /// Is not there: killed, and not restarted yet.
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
    /// What training gives.
    pub(crate) values: StepValues,
    /// The samples that it trained on, where they are generated.
    pub(crate) rollout: Option<RolloutStep>,
}

/// A step of one rank.
#[derive(Clone, Debug)]
pub(crate) struct RankStep {
    /// When it begins.
    pub(crate) start_unix_nanos: UnixNanos,
    /// When it ends.
    pub(crate) end_unix_nanos: UnixNanos,
    /// Its phases, with the end of each; the first begins with the step, each other with the end of the one before.
    pub(crate) phases: Vec<(Phase, UnixNanos)>,
}

/// The samples of a step.
#[derive(Clone, Debug)]
pub(crate) struct RolloutStep {
    /// How long training waited for them.
    pub(crate) wait: Duration,
    /// How many samples wait for training after it took its own.
    pub(crate) pool_size: f64,
    /// How many samples may wait.
    pub(crate) pool_limit: f64,
    /// Samples in a second that inference could give, that training could take.
    pub(crate) infer_capacity: f64,
    /// The same of training.
    pub(crate) train_capacity: f64,
    /// How long the generation of the samples of a step takes.
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
