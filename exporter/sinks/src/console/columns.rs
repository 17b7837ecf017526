//! The columns of the status line, in order. Only this table names metrics.
//!
//! Columns that a run does not report are computed from hidden columns, if it reports those.

use pulsetrain_semconv::{Metric, metric};

/// A column of the line.
pub(super) struct Column {
    /// The metric of the column.
    pub(super) metric: &'static Metric,
    /// The format of the column.
    pub(super) show: Show,
}

/// The format of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// The number of the step. A new number starts a new line.
    Step,
    /// The completed fraction of the run.
    Progress,
    /// The epoch, shown if the progress of the run is unknown.
    Epoch,
    /// A value with an arrow for its trend.
    Trend(&'static str),
    /// A value, marked if it is far above its average.
    Spike(&'static str),
    /// A small number, in scientific notation.
    Exponent(&'static str),
    /// A rate, in thousands per second.
    PerSecond(&'static str),
    /// Seconds, shown as milliseconds.
    Millis,
    /// A hidden sum. Divided by the step duration it is a rate.
    Sum,
    /// A hidden rate: the throughput at the hardware's peak.
    Expected,
    /// A ratio, shown as percent.
    Percent(&'static str),
    /// Remaining seconds.
    Eta,
}

/// The columns of the line.
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

/// The throughput relative to the peak of the run's GPUs.
pub(super) const SOL: Show = Show::Percent("sol");

const fn column(metric: &'static Metric, show: Show) -> Column {
    Column { metric, show }
}

/// Returns the index of a metric's column.
pub(super) fn place(name: &str) -> Option<usize> {
    COLUMNS.iter().position(|column| column.metric.name == name)
}

/// Returns the index of the column with this format.
pub(super) fn column_with_format(show: Show) -> Option<usize> {
    COLUMNS.iter().position(|column| column.show == show)
}
