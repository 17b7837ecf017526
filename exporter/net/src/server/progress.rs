//! Detects stalled connections: tracks when a reader last consumed bytes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::ConnectionSlots;

/// The time for the first request of a new connection.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// The same at the limit of connections.
const HURRIED_FIRST_REQUEST: Duration = Duration::from_secs(1);
/// The idle timeout at the limit of connections.
const HURRIED: Duration = Duration::from_secs(10);

/// The longest wait. The clock cannot represent the longest `Duration`.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The time of a connection's last progress. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct RequestProgress {
    began: Instant,
    moved_millis: Arc<AtomicU64>,
}

impl RequestProgress {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            moved_millis: Arc::default(),
        }
    }

    /// Records progress.
    pub(super) fn record(&self) {
        // At least 1, because 0 means that there was no request.
        let since = Instant::now()
            .saturating_duration_since(self.began)
            .as_millis()
            .max(1);
        self.moved_millis
            .store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Waits until the connection has been idle for `limit`.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            let end = self.end(limit.min(FIRST_REQUEST), limit);
            if Instant::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    /// Waits until another connection needs the place of this idle one.
    pub(super) async fn wait_until_slot_needed(&self, slots: &ConnectionSlots) {
        loop {
            slots.exhausted().await;
            if Instant::now() >= self.end(HURRIED_FIRST_REQUEST, HURRIED) {
                return;
            }
        }
    }

    /// Returns the deadline of an idle connection: `first` after its start without a request, else `limit`
    /// after its last progress.
    fn end(&self, first: Duration, limit: Duration) -> Instant {
        let wait = match self.moved_millis.load(Ordering::Relaxed) {
            0 => first,
            millis => limit.saturating_add(Duration::from_millis(millis)),
        };
        self.began + wait.min(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn maximum_duration_limits_do_not_panic() {
        let progress = RequestProgress::new();
        for _ in 0..2 {
            let end = progress.end(Duration::MAX, Duration::MAX);
            assert!(end > Instant::now() + Duration::from_secs(60));
            progress.record();
        }
    }
}
