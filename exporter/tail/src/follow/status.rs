//! Figures of a follower, for health checks and telemetry.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`TailSource`](super::TailSource) is at.
#[derive(Debug, Default)]
pub struct TailStatus {
    files: AtomicU64,
    unread_bytes: AtomicU64,
}

impl TailStatus {
    /// How many runs are being followed.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// By how many bytes the follower is behind the writers.
    pub fn unread_bytes(&self) -> u64 {
        self.unread_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, files: u64, unread_bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.unread_bytes.store(unread_bytes, Ordering::Relaxed);
    }
}
