//! The settings of a disk queue.

use std::{path::PathBuf, time::Duration};

/// The folder, the limits and the sync policy of a disk queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskQueueConfig {
    /// The folder, which no other queue may use.
    pub folder: PathBuf,
    /// The maximum size of the files in bytes. A full queue pushes back on the sources of a required sink.
    pub max_bytes: u64,
    /// The age from which a batch is dropped while its sink fails; `None` never drops a batch for its age.
    pub max_age: Option<Duration>,
    /// The sync policy, which decides when appended batches survive a failure of the machine. A kill of the process loses
    /// nothing in any case.
    pub sync: SyncPolicy,
}

/// When a disk queue calls `fsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before a batch is acknowledged, once for all batches that arrived in the meantime.
    Always,
    /// At this interval. Receivers are answered before the sync; the checkpoints of followed logs move after it.
    Interval(Duration),
    /// Never: the operating system decides.
    Never,
}

impl DiskQueueConfig {
    /// Creates the settings of a queue of 1 GiB that keeps every batch and syncs once a second.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            max_bytes: 1 << 30,
            max_age: None,
            sync: SyncPolicy::Interval(Duration::from_secs(1)),
        }
    }

    /// Returns the size of a segment: an eighth of the queue, so that room is freed before the complete queue is sent.
    pub(super) fn segment_bytes(&self) -> u64 {
        (self.max_bytes / 8).clamp(64 << 10, 16 << 20)
    }
}
