//! The configuration of a follower.

use std::{path::PathBuf, time::Duration};

use crate::RunOptions;

/// The configuration of a [`TailSource`](super::TailSource).
#[derive(Clone, Debug)]
pub struct TailConfig {
    /// Files, directories (the files in them) and patterns with `*`, `?`, `[...]` and `**`. They need not exist yet.
    pub inputs: Vec<PathBuf>,
    /// Whether links that lead out of a followed folder, or out of the folder of a pattern, are followed. A path that is no pattern
    /// may be a link itself, wherever it leads.
    pub follow_links: bool,
    /// The most files that are kept open. The others are opened when they change.
    pub open_files: usize,
    /// The user's options for the runs. A run id that is set here is kept when a run restarts, as its next attempt.
    pub options: RunOptions,
    /// The interval of polls without a report of a change; network file systems report none.
    pub poll_interval: Duration,
    /// Whether the system is asked to report changes.
    pub watch: bool,
    /// The least time between two polls of a file that is being written: one batch holds all that is written in between.
    pub flush_interval: Duration,
    /// The treatment of an incomplete record when the source stops.
    pub at_stop: AtStop,
}

/// The treatment of an incomplete record when the source stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtStop {
    /// The record stays unread: its writer still runs, and the next start reads the complete record.
    #[default]
    Leave,
    /// The record is read as it is: its writer has ended.
    Finish,
}

impl TailConfig {
    /// Follows `inputs` with a poll interval of one second, and at most ten polls a second where the system reports changes.
    pub fn new(inputs: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            inputs: inputs.into_iter().collect(),
            follow_links: false,
            open_files: 256,
            options: RunOptions::default(),
            poll_interval: Duration::from_secs(1),
            watch: true,
            flush_interval: Duration::from_millis(100),
            at_stop: AtStop::default(),
        }
    }
}
