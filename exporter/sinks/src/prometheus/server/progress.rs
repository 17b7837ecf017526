//! Progress of a connection: how long ago its reader last took something.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pulsetrain_net::Places;
use pulsetrain_pipeline::clock::{self, Instant};

/// How long a new connection may send no request.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// The same while other connections find no place.
const HURRIED_FIRST_REQUEST: Duration = Duration::from_secs(1);
/// How long a connection may move nothing while others find no place.
const HURRIED: Duration = Duration::from_secs(10);

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
        // At least 1: 0 is a connection without a request.
        let since = clock::now()
            .saturating_duration_since(self.began)
            .as_millis()
            .max(1);
        self.moved_millis
            .store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Waits until the connection has not moved for `limit`.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            let end = self.end(limit.min(FIRST_REQUEST), limit);
            if clock::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    /// Waits until another connection finds no place while this one moves nothing.
    pub(super) async fn gives_way(&self, places: &Places) {
        loop {
            places.wanted().await;
            if clock::now() >= self.end(HURRIED_FIRST_REQUEST, HURRIED) {
                return;
            }
        }
    }

    /// The end of a connection that moves nothing more: `first` from its begin if it sent no request, else `limit` after it
    /// last moved.
    fn end(&self, first: Duration, limit: Duration) -> Instant {
        match self.moved_millis.load(Ordering::Relaxed) {
            0 => clock::later(self.began, first),
            millis => clock::later(self.began, limit.saturating_add(Duration::from_millis(millis))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_limit_of_any_length_does_not_panic() {
        let progress = Progress::new();
        for _ in 0..2 {
            let end = progress.end(Duration::MAX, Duration::MAX);
            assert!(end > clock::now() + Duration::from_secs(60));
            progress.note();
        }
    }
}
