//! What the step line shows: one row a column, in the order of the line. The only place that names metrics.

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
    /// A part of the whole run.
    Progress,
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
    /// A ratio as percent.
    Percent(&'static str),
    /// Seconds that are left.
    Eta,
}

/// The line.
pub(super) const COLUMNS: [Column; 10] = [
    column(&metric::TRAIN_GLOBAL_STEP, Show::Step),
    column(&metric::TRAIN_PROGRESS, Show::Progress),
    column(&metric::TRAIN_LOSS, Show::Trend("loss")),
    column(&metric::TRAIN_GRAD_NORM, Show::Spike("norm")),
    column(&metric::TRAIN_LEARNING_RATE, Show::Exponent("lr")),
    column(&metric::TRAIN_THROUGHPUT_TOKENS, Show::PerSecond("tps")),
    column(&metric::TRAIN_STEP_DURATION, Show::Millis),
    column(&metric::TRAIN_MFU, Show::Percent("mfu")),
    column(&metric::TRAIN_SOL, Show::Percent("sol")),
    column(&metric::TRAIN_ETA, Show::Eta),
];

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
