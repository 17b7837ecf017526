//! Progress of a connection: how long ago its reader last took something.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

/// When a connection last moved; a clone sees the same.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    began: Instant,
    moved_millis: Arc<AtomicU64>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            began: clock::now(),
            moved_millis: Arc::default(),
        }
    }

    /// Notes that the connection moves now.
    pub(super) fn note(&self) {
        let since = clock::now().saturating_duration_since(self.began).as_millis();
        self.moved_millis
            .store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Waits until the connection has not moved for `limit`.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            let moved = Duration::from_millis(self.moved_millis.load(Ordering::Relaxed));
            let end = clock::later(self.began, moved + limit);
            if clock::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}
