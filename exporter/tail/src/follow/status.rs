//! Gauges of a follower, for health checks and telemetry.

use std::sync::atomic::{AtomicU64, Ordering};

/// The gauges of a [`TailSource`](super::TailSource).
#[derive(Debug, Default)]
pub struct TailStatus {
    files: AtomicU64,
    unread_bytes: AtomicU64,
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

    pub(super) fn set(&self, files: u64, unread_bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.unread_bytes.store(unread_bytes, Ordering::Relaxed);
    }
}
