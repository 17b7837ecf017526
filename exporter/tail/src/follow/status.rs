//! Gauges of a follower and the state of each of its logs, for health checks and telemetry.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

/// The status of a [`TailSource`](super::TailSource).
#[derive(Debug, Default)]
pub struct TailStatus {
    files: AtomicU64,
    unread_bytes: AtomicU64,
    logs: Mutex<Vec<LogStatus>>,
}

/// The status of a followed log, at most one poll interval old.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStatus {
    /// The log.
    pub path: PathBuf,
    /// The state of the follower.
    pub state: LogState,
    /// The last problem, if it persists.
    pub error: Option<String>,
    /// The number of bytes that were written and not read yet.
    pub unread_bytes: u64,
    pub(super) caught_up: Option<Instant>,
}

/// The state of the follower of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// The log does not exist, or its bytes do not identify a run yet.
    Waiting,
    /// All records are read and sent.
    UpToDate,
    /// More bytes are to be read, or records wait until the sinks have room.
    Lagging,
    /// The last poll failed.
    Failing,
}

impl LogStatus {
    /// Returns the time since the last poll after which all records were read and sent, or `None` before the first such poll.
    /// It also grows while the follower waits for room in a queue.
    pub fn lag(&self) -> Option<Duration> {
        let now = clock::now();
        self.caught_up.map(|time| now.saturating_duration_since(time))
    }
}

impl LogState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::UpToDate, Self::Lagging, Self::Failing];

    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::UpToDate => "up_to_date",
            Self::Lagging => "lagging",
            Self::Failing => "failing",
        }
    }
}

impl TailStatus {
    /// Returns the number of followed runs.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that were written and not read yet.
    pub fn unread_bytes(&self) -> u64 {
        self.unread_bytes.load(Ordering::Relaxed)
    }

    /// Returns the status of each log, in the order in which the logs were found.
    pub fn logs(&self) -> Vec<LogStatus> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, files: u64, unread_bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.unread_bytes.store(unread_bytes, Ordering::Relaxed);
    }

    pub(super) fn set_logs(&self, logs: Vec<LogStatus>) {
        *self.logs.lock().unwrap_or_else(PoisonError::into_inner) = logs;
    }
}
