//! The settings of a disk queue.

use std::{path::PathBuf, time::Duration};

/// Where a disk queue is, and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskQueueConfig {
    /// The folder, which no other queue may use.
    pub folder: PathBuf,
    /// The most bytes of its files. A full queue pushes back on the sources of a required sink.
    pub max_bytes: u64,
    /// The age from which a batch is dropped while its sink fails; `None` keeps it.
    pub max_age: Option<Duration>,
    /// When what was appended is made to survive a failure of the machine. A kill of the process loses nothing in any case.
    pub sync: SyncPolicy,
}

/// When a disk queue calls `fsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before a batch is acknowledged, once for all batches that arrived meanwhile.
    Always,
    /// This often. Receivers are answered before it; the checkpoints of followed logs move after it.
    Interval(Duration),
    /// Never: the operating system decides.
    Never,
}

impl DiskQueueConfig {
    /// A queue of 1 GiB that keeps every batch and syncs once a second.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            max_bytes: 1 << 30,
            max_age: None,
            sync: SyncPolicy::Interval(Duration::from_secs(1)),
        }
    }

    /// The length of a segment: an eighth of the queue, so that room is free again before all is sent.
    pub(super) fn segment_bytes(&self) -> u64 {
        (self.max_bytes / 8).clamp(64 << 10, 16 << 20)
    }
}
