//! Intervals of a run outside its steps: initialization, compilation, checkpoints, evaluation.

use std::sync::Arc;

use pulsetrain_otlp::{UnixNanos, view::Text};
use pulsetrain_semconv::{Span, span};

use super::RankInfo;

/// The kind of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// `run.init`
    Init,
    /// `run.compile`
    Compile,
    /// `train.checkpoint.save`
    CheckpointSave,
    /// `train.checkpoint.load`
    CheckpointLoad,
    /// `eval.run`
    Eval,
    /// `train.run`
    Run,
}

const SPANS: [(&Span, Lifecycle); 6] = [
    (&span::RUN_INIT, Lifecycle::Init),
    (&span::RUN_COMPILE, Lifecycle::Compile),
    (&span::TRAIN_CHECKPOINT_SAVE, Lifecycle::CheckpointSave),
    (&span::TRAIN_CHECKPOINT_LOAD, Lifecycle::CheckpointLoad),
    (&span::EVAL_RUN, Lifecycle::Eval),
    (&span::TRAIN_RUN, Lifecycle::Run),
];

impl Lifecycle {
    /// Returns the kind of a span with this name.
    pub(crate) fn of_span(name: Text<'_>) -> Option<Self> {
        let found = SPANS.iter().find(|(span, _)| name == span.name)?;
        Some(found.1)
    }
}

/// One interval of a rank. Intervals are reported as they arrive, so a step that ended earlier may close
/// later.
#[derive(Clone, Debug)]
pub(crate) struct LifecycleFacts {
    /// The rank.
    pub(crate) rank: Arc<RankInfo>,
    /// The kind.
    pub(crate) kind: Lifecycle,
    /// The start.
    pub(crate) start: UnixNanos,
    /// The end.
    pub(crate) end: UnixNanos,
    /// Its step, if the span has one.
    pub(crate) step: Option<i64>,
    /// Whether an initialization is that of the devices: `train.badput.cause` is `tpu_initialization`.
    pub(crate) is_device_init: bool,
}
