//! Which metrics and spans the assembler reads, and what each is to it.

use std::collections::HashMap;

use pulsetrain_otlp::view::Text;
use pulsetrain_semconv::{Metric, metric, span};

use super::{Lifecycle, Phase, constants::CONSTANTS, values::KEPT};

/// What a metric is to the assembler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest {
    pub(crate) metric: &'static Metric,
    pub(crate) role: Role,
    /// Whether a derivation sends it.
    pub(crate) is_derived: bool,
    /// The derivations that want its points: one bit each.
    pub(crate) wanted_by: u32,
}

/// The part of a metric in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    /// None: its points go to derivations, or it is only watched for.
    Other,
    /// `train.global_step`
    Number,
    /// `train.step.duration`
    Duration,
    /// The seconds of a phase.
    Phase(Phase),
    /// A kept value, at this place.
    Kept(usize),
    /// A constant of the run.
    Constant,
}

/// What a span is to the assembler.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SpanRole {
    /// `train.step`
    Step,
    /// A child of a step.
    Child(Phase),
    /// An interval outside of steps.
    Lifecycle(Lifecycle),
}

/// The metrics that are read, by name.
#[derive(Debug)]
pub(crate) struct Interests(HashMap<&'static [u8], Interest>);

impl Interests {
    /// Returns the metrics that make steps, and those that derivations send or want.
    pub(crate) fn new(
        derivations: impl Iterator<Item = (&'static [&'static Metric], &'static [&'static Metric])>,
    ) -> Self {
        let mut all = Self(HashMap::new());
        all.of(&metric::TRAIN_GLOBAL_STEP).role = Role::Number;
        all.of(&metric::TRAIN_STEP_DURATION).role = Role::Duration;
        for (metric, phase) in Phase::histograms() {
            all.of(metric).role = Role::Phase(phase);
        }
        for (place, metric) in KEPT.into_iter().enumerate() {
            all.of(metric).role = Role::Kept(place);
        }
        for metric in CONSTANTS {
            all.of(metric).role = Role::Constant;
        }
        for (place, (sends, wants)) in derivations.enumerate() {
            for metric in sends {
                all.of(metric).is_derived = true;
            }
            for metric in wants {
                all.of(metric).wanted_by |= 1 << place;
            }
        }
        all
    }

    /// Returns what a metric with this name is.
    pub(crate) fn find(&self, name: Text<'_>) -> Option<Interest> {
        self.0.get(name.as_bytes()).copied()
    }

    /// Returns the place of the kept value with this name: span attributes have the names of metrics.
    pub(crate) fn kept(&self, name: Text<'_>) -> Option<usize> {
        match self.find(name)?.role {
            Role::Kept(place) => Some(place),
            _ => None,
        }
    }

    fn of(&mut self, metric: &'static Metric) -> &mut Interest {
        self.0.entry(metric.name.as_bytes()).or_insert(Interest {
            metric,
            role: Role::Other,
            is_derived: false,
            wanted_by: 0,
        })
    }
}

impl SpanRole {
    /// Returns what a span with this name is.
    pub(crate) fn of(name: Text<'_>) -> Option<Self> {
        if name == span::TRAIN_STEP.name {
            return Some(Self::Step);
        }
        let child = Phase::of_span(name).map(Self::Child);
        child.or_else(|| Lifecycle::of_span(name).map(Self::Lifecycle))
    }
}
