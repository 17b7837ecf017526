//! The metrics and spans that the assembler decodes, and their roles.

use std::collections::HashMap;

use pulsetrain_otlp::view::Text;
use pulsetrain_run::SeriesKey;
use pulsetrain_semconv::{Metric, metric, span};

use super::{Lifecycle, Phase, constants::CONSTANTS, values::KEPT};

/// The use of a metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interest {
    pub(crate) metric: &'static Metric,
    /// The key of its series without attributes.
    pub(crate) series: SeriesKey,
    pub(crate) role: Role,
    /// Whether a derivation sends it.
    pub(crate) is_derived: bool,
    /// The derivations that request its points, one bit each.
    pub(crate) wanted_by: u32,
}

/// The role of a metric in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    /// No role: its points go to derivations, or only its presence matters.
    Other,
    /// `train.global_step`
    Number,
    /// `train.step.duration`
    Duration,
    /// The seconds of a phase.
    Phase(Phase),
    /// A kept value with this index.
    Kept(usize),
    /// A constant of the run.
    Constant,
}

/// The role of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SpanRole {
    /// `train.step`
    Step,
    /// A child of a step.
    Child(Phase),
    /// An interval outside of steps.
    Lifecycle(Lifecycle),
}

/// The decoded metrics, by name.
#[derive(Debug)]
pub(crate) struct Interests(HashMap<&'static [u8], Interest>);

impl Interests {
    /// Returns the metrics of steps, and those that derivations send or request.
    pub(crate) fn new(
        derivations: impl Iterator<Item = (&'static [&'static Metric], &'static [&'static Metric])>,
    ) -> Self {
        let mut all = Self(HashMap::new());
        all.entry(&metric::TRAIN_GLOBAL_STEP).role = Role::Number;
        all.entry(&metric::TRAIN_STEP_DURATION).role = Role::Duration;
        for (metric, phase) in Phase::histograms() {
            all.entry(metric).role = Role::Phase(phase);
        }
        for (place, metric) in KEPT.into_iter().enumerate() {
            all.entry(metric).role = Role::Kept(place);
        }
        for metric in CONSTANTS {
            all.entry(metric).role = Role::Constant;
        }
        for (place, (sends, wants)) in derivations.enumerate() {
            for metric in sends {
                all.entry(metric).is_derived = true;
            }
            for metric in wants {
                all.entry(metric).wanted_by |= 1 << place;
            }
        }
        all
    }

    /// Returns the use of a metric with this name.
    pub(crate) fn find(&self, name: Text<'_>) -> Option<Interest> {
        self.0.get(name.as_bytes()).copied()
    }

    /// Returns the index of the kept value with this name, because span attributes have the names of metrics.
    pub(crate) fn kept(&self, name: Text<'_>) -> Option<usize> {
        match self.find(name)?.role {
            Role::Kept(place) => Some(place),
            _ => None,
        }
    }

    fn entry(&mut self, metric: &'static Metric) -> &mut Interest {
        self.0.entry(metric.name.as_bytes()).or_insert(Interest {
            metric,
            series: SeriesKey::new(metric.name.as_bytes()),
            role: Role::Other,
            is_derived: false,
            wanted_by: 0,
        })
    }
}

impl SpanRole {
    /// Returns the role of a span with this name.
    pub(crate) fn from_name(name: Text<'_>) -> Option<Self> {
        if name == span::TRAIN_STEP.name {
            return Some(Self::Step);
        }
        let child = Phase::of_span(name).map(Self::Child);
        child.or_else(|| Lifecycle::of_span(name).map(Self::Lifecycle))
    }
}
