//! What to follow, and how.

use std::{path::PathBuf, time::Duration};

use crate::RunOptions;

/// What a [`TailSource`](super::TailSource) follows.
#[derive(Clone, Debug)]
pub struct TailConfig {
    /// Files, directories (the files in them) and patterns with `*`, `?`, `[...]` and `**`. What is not there yet is
    /// waited for.
    pub inputs: Vec<PathBuf>,
    /// What the user says of the runs. A run id that is given here is kept when a run begins again, as its next attempt.
    pub options: RunOptions,
    /// How often files are looked at without being told of a change: on network file systems nobody tells.
    pub poll_interval: Duration,
    /// Whether the system is asked to tell of changes, where it can.
    pub watch: bool,
    /// The least time between two looks at a file that is being written: what is written in between goes in one batch.
    pub flush_interval: Duration,
    /// What to do with what is not complete when the source is told to stop.
    pub at_stop: AtStop,
}

/// What becomes of a record that is not complete when the source is told to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtStop {
    /// It stays unread: the files are still being written, and the next start reads it whole.
    #[default]
    Leave,
    /// It is taken as it is: whoever wrote the files has ended.
    Finish,
}

impl TailConfig {
    /// Follows `inputs`: every second, and at once where the system tells of changes, at most ten times a second.
    pub fn new(inputs: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            inputs: inputs.into_iter().collect(),
            options: RunOptions::default(),
            poll_interval: Duration::from_secs(1),
            watch: true,
            flush_interval: Duration::from_millis(100),
            at_stop: AtStop::default(),
        }
    }
}
