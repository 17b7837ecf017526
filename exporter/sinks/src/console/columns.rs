//! What the step line shows: one row a column, in the order of the line. The only place that names metrics.
//!
//! What a run does not report itself is computed from what it does report: those rows are remembered and not shown.

use pulsetrain_semconv::{Metric, metric};

/// A column of the line.
pub(super) struct Column {
    /// Whose value it shows.
    pub(super) metric: &'static Metric,
    /// How.
    pub(super) show: Show,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// The number of the step: a new one is a new line.
    Step,
    /// A part of the run.
    Progress,
    /// How often the data was gone through, where the progress of the run is not known.
    Epoch,
    /// A value with the direction that it moves in.
    Trend(&'static str),
    /// A value with a mark where it is far above what it was.
    Spike(&'static str),
    /// A small number.
    Exponent(&'static str),
    /// Thousands a second.
    PerSecond(&'static str),
    /// Seconds as milliseconds.
    Millis,
    /// A sum that is not shown: by the time that a step took, it is what went through in a second.
    Sum,
    /// Not shown: what would go through in a second if nothing held it up.
    Expected,
    /// A ratio as percent.
    Percent(&'static str),
    /// Seconds that are left.
    Eta,
}

/// The line.
pub(super) const COLUMNS: [Column; 13] = [
    column(&metric::TRAIN_GLOBAL_STEP, Show::Step),
    column(&metric::TRAIN_PROGRESS, Show::Progress),
    column(&metric::TRAIN_EPOCH, Show::Epoch),
    column(&metric::TRAIN_LOSS, Show::Trend("loss")),
    column(&metric::TRAIN_GRAD_NORM, Show::Spike("norm")),
    column(&metric::TRAIN_LEARNING_RATE, Show::Exponent("lr")),
    column(&metric::TRAIN_THROUGHPUT_TOKENS, Show::PerSecond("tps")),
    column(&metric::TRAIN_TOKENS, Show::Sum),
    column(&metric::TRAIN_EXPECTED_THROUGHPUT, Show::Expected),
    column(&metric::TRAIN_STEP_DURATION, Show::Millis),
    column(&metric::TRAIN_MFU, Show::Percent("mfu")),
    column(&metric::TRAIN_SOL, SOL),
    column(&metric::TRAIN_ETA, Show::Eta),
];

/// How near a run is to what is expected of its GPUs.
pub(super) const SOL: Show = Show::Percent("sol");

const fn column(metric: &'static Metric, show: Show) -> Column {
    Column { metric, show }
}

/// The column of a metric.
pub(super) fn place(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.metric.name == name)
}

/// The column that is shown in this way.
pub(super) fn shown_as(show: Show) -> Option<usize> {
    COLUMNS.iter().position(|column| column.show == show)
}
