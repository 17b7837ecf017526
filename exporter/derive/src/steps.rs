//! Training steps as facts: the spans and points of one rank about one step.
//!
//! [`Assembler`](assembler::Assembler) decodes passing batches and builds a [`StepFacts`] of every step of
//! every rank. A trainer may describe a step by a span `train.step` with child spans, by points that share a
//! time, or by both, which the step number joins. Derivations (`signals/derivation.rs`) receive closed steps
//! in the order of their numbers.

pub(crate) mod assembler;
mod constants;
mod draft;
mod group;
mod interest;
mod lifecycle;
mod pending;
mod phase;
mod rank;
mod values;

use std::sync::Arc;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::Metric;

pub(crate) use self::{
    constants::Constants,
    interest::Interests,
    lifecycle::{Lifecycle, LifecycleFacts},
    phase::{Phase, Phases},
    rank::{RankId, RankInfo},
    values::Values,
};

/// A closed step of one rank. Nothing is added to it any more.
#[derive(Clone, Debug)]
pub(crate) struct StepFacts {
    /// The rank.
    pub(crate) rank: Arc<RankInfo>,
    /// The step number (`train.global_step`, `train.step`), or one more than the last for a trainer without
    /// numbers.
    pub(crate) number: i64,
    /// The number of steps since the previous one, more than 1 if only every n-th step is recorded. `None`
    /// for the first.
    pub(crate) done: Option<i64>,
    /// The number of steps that counters cover: since the last step with points, or since the previous step
    /// if this one has none. `None` for the first.
    pub(crate) covered: Option<i64>,
    /// The start of the step, or `None` if neither a span nor a duration is known.
    pub(crate) start: Option<UnixNanos>,
    /// The end of the step. For a step without a span it is the time of its points.
    pub(crate) end: UnixNanos,
    /// The start of the first covered step, which is the end of the step before it.
    pub(crate) previous_end: Option<UnixNanos>,
    /// Whether a step with this number or a higher one ended before in the same attempt.
    pub(crate) is_repeated: bool,
    /// Seconds by phase.
    pub(crate) phases: Phases,
    /// The values that were recorded with the step.
    pub(crate) values: Values,
    /// The constants of the run as known now.
    pub(crate) constants: Constants,
    /// The batch of the step, without its contents. Derived output has its ack.
    pub(crate) batch: Batch,
}

impl StepFacts {
    /// Returns the value of a kept metric (`values.rs`): a gauge as recorded, a counter as its growth in this
    /// record.
    pub(crate) fn value(&self, metric: &'static Metric) -> Option<f64> {
        self.values.get(metric)
    }

    /// Returns the seconds of a phase, summed over micro-batches.
    pub(crate) fn phase(&self, phase: Phase) -> Option<f64> {
        self.phases.get(phase)
    }

    /// Returns the duration of the step in seconds, from its span or its histogram observation.
    pub(crate) fn duration_secs(&self) -> Option<f64> {
        self.start.map(|start| self.end.secs_since(start))
    }

    /// Returns the seconds that this record covers: the duration of one step, or the time since the previous
    /// record for several.
    pub(crate) fn covered_secs(&self) -> Option<f64> {
        let since_previous = || Some(self.end.secs_since(self.previous_end?)).filter(|secs| *secs > 0.0);
        match self.covered {
            Some(covered) if covered > 1 => since_previous(),
            _ => self
                .duration_secs()
                .filter(|secs| *secs > 0.0)
                .or_else(since_previous),
        }
    }

    /// Returns the seconds of one step: its duration, or the mean since the previous record.
    pub(crate) fn step_secs(&self) -> Option<f64> {
        self.duration_secs().filter(|secs| *secs > 0.0).or_else(|| {
            let covered = self.covered.filter(|covered| *covered > 0)?;
            Some(self.covered_secs()? / covered as f64)
        })
    }
}
