//! The phases of a step: child spans by name, or histograms of seconds.

use pulsetrain_otlp::view::Text;
use pulsetrain_semconv::{Metric, Span, metric, span};

/// A phase of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Fetching data.
    Data,
    /// Waiting for enough samples for a step.
    DispatchWait,
    /// Forward pass.
    Forward,
    /// Backward pass, with the gradient reduction that overlaps it.
    Backward,
    /// Forward and backward together, if the trainer does not separate them.
    ForwardBackward,
    /// Update of the parameters.
    Optimizer,
    /// Device time of forward, backward and optimizer together (histogram only).
    Compute,
    /// A complete step that reads its data from a queue, without the wait for samples (histogram only).
    QueueStep,
    /// RL: generation of samples.
    Rollout,
    /// RL: the reference model.
    ReferenceInference,
    /// RL: the actor before its update.
    OldActorInference,
    /// RL: advantages.
    Advantage,
    /// RL: training of the actor.
    ActorTrain,
    /// RL: training of the critic.
    CriticTrain,
    /// RL: transfer of new weights to the inference engines.
    WeightSync,
    /// RL: waiting in a queue.
    Queue,
    /// RL: the environment.
    Environment,
}

/// The number of phases.
const COUNT: usize = 17;

const SPANS: [(&Span, Phase); 15] = [
    (&span::PERF_DATA, Phase::Data),
    (&span::PERF_DISPATCH_WAIT, Phase::DispatchWait),
    (&span::PERF_FORWARD, Phase::Forward),
    (&span::PERF_BACKWARD, Phase::Backward),
    (&span::PERF_FORWARD_BACKWARD, Phase::ForwardBackward),
    (&span::PERF_OPTIMIZER, Phase::Optimizer),
    (&span::RL_ROLLOUT, Phase::Rollout),
    (&span::RL_REFERENCE_INFERENCE, Phase::ReferenceInference),
    (&span::RL_OLD_ACTOR_INFERENCE, Phase::OldActorInference),
    (&span::RL_ADVANTAGE, Phase::Advantage),
    (&span::RL_ACTOR_TRAIN, Phase::ActorTrain),
    (&span::RL_CRITIC_TRAIN, Phase::CriticTrain),
    (&span::RL_WEIGHT_SYNC, Phase::WeightSync),
    (&span::RL_QUEUE, Phase::Queue),
    (&span::RL_ENVIRONMENT, Phase::Environment),
];

const HISTOGRAMS: [(&Metric, Phase); 12] = [
    (&metric::PERF_DATA_TIME, Phase::Data),
    (&metric::PERF_DISPATCH_WAIT, Phase::DispatchWait),
    (&metric::PERF_FORWARD_TIME, Phase::Forward),
    (&metric::PERF_BACKWARD_TIME, Phase::Backward),
    (&metric::PERF_OPTIMIZER_TIME, Phase::Optimizer),
    (&metric::PERF_COMPUTE_TIME, Phase::Compute),
    (&metric::PERF_STEP_TIME, Phase::QueueStep),
    (&metric::PERF_ROLLOUT_TIME, Phase::Rollout),
    (&metric::PERF_REFER_INFERENCE_TIME, Phase::ReferenceInference),
    (&metric::PERF_OLD_ACTOR_INFERENCE_TIME, Phase::OldActorInference),
    (&metric::PERF_ACTOR_TRAIN_TIME, Phase::ActorTrain),
    (&metric::PERF_WEIGHT_SYNC_TIME, Phase::WeightSync),
];

impl Phase {
    /// Returns the phase of a child span with this name.
    pub(crate) fn of_span(name: Text<'_>) -> Option<Self> {
        let found = SPANS.iter().find(|(span, _)| name == span.name)?;
        Some(found.1)
    }

    /// Returns the histograms whose observations are phases.
    pub(crate) fn histograms() -> impl Iterator<Item = (&'static Metric, Self)> {
        HISTOGRAMS.iter().copied()
    }
}

/// Seconds by phase of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    /// NaN without a span.
    spans: [f64; COUNT],
    /// NaN without an observation.
    observed: [f64; COUNT],
}

impl Default for Phases {
    fn default() -> Self {
        Self {
            spans: [f64::NAN; COUNT],
            observed: [f64::NAN; COUNT],
        }
    }
}

impl Phases {
    /// Returns the seconds of a phase: the sum of its spans, or of its observations without a span.
    pub(crate) fn get(&self, phase: Phase) -> Option<f64> {
        let place = phase as usize;
        [self.spans[place], self.observed[place]]
            .into_iter()
            .find(|secs| !secs.is_nan())
    }

    /// Returns whether the seconds of a phase come from a child span.
    pub(crate) fn has_span(&self, phase: Phase) -> bool {
        !self.spans[phase as usize].is_nan()
    }

    /// Adds the duration of a child span.
    pub(crate) fn add_span(&mut self, phase: Phase, secs: f64) {
        add(&mut self.spans[phase as usize], secs);
    }

    /// Adds an observation.
    pub(crate) fn observe(&mut self, phase: Phase, secs: f64) {
        add(&mut self.observed[phase as usize], secs);
    }

    /// Adds the phases of another part of the same step.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mine = self.spans.iter_mut().chain(&mut self.observed);
        for (mine, theirs) in mine.zip(other.spans.iter().chain(&other.observed)) {
            add(mine, *theirs);
        }
    }
}

/// Adds seconds; NaN on either side counts as absent.
fn add(sum: &mut f64, secs: f64) {
    if sum.is_nan() {
        *sum = secs;
    } else if !secs.is_nan() {
        *sum += secs;
    }
}
