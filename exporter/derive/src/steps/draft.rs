//! An open step.

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::{Batch, clock::Instant};

use super::{Phases, Values, assembler::handle, group::Group};

/// An open step.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The time until which it may stay open.
    pub(crate) deadline: Instant,
    /// The batch with the newest part, without its contents.
    pub(crate) batch: Batch,
    /// Start and end of the span `train.step`.
    pub(crate) span: Option<(UnixNanos, UnixNanos)>,
    /// The time of the newest points.
    pub(crate) points: Option<UnixNanos>,
    /// The observation of `train.step.duration`, with its time.
    pub(crate) observed: Option<(UnixNanos, f64)>,
    pub(crate) phases: Phases,
    /// Values of points.
    pub(crate) values: Values,
    /// Values of span attributes. Points have precedence.
    pub(crate) span_values: Values,
}

impl Draft {
    /// Returns a step without data.
    pub(crate) fn new(batch: &Batch, deadline: Instant) -> Self {
        Self {
            deadline,
            batch: handle(batch),
            span: None,
            points: None,
            observed: None,
            phases: Phases::default(),
            values: Values::default(),
            span_values: Values::default(),
        }
    }

    /// Adds points.
    pub(crate) fn add_points(&mut self, group: &Group) {
        let time = group.time_unix_nanos;
        if group.is_step() {
            self.points = self.points.max(Some(time));
        }
        if let Some(secs) = group.duration_secs {
            self.observed = Some((time, secs));
        }
        self.phases.merge(&group.phases);
        self.values.merge(&group.values);
    }

    /// Returns the start of the step, if known, and its end.
    pub(crate) fn window(&self) -> (Option<UnixNanos>, UnixNanos) {
        match (self.span, self.observed) {
            (Some((start, end)), _) => (Some(start), end),
            (None, Some((end, secs))) => (Some(end.minus_secs(secs)), end),
            (None, None) => (None, self.points.unwrap_or_default()),
        }
    }
}
