//! Wakes a follower: on a change that the system reports, or to stop.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

/// A condition that any thread notifies and the thread of one follower waits for.
#[derive(Debug, Default)]
pub(super) struct Wakeup {
    reasons: Mutex<WakeReasons>,
    notified: Condvar,
}

/// The reasons to wake since the last wait.
#[derive(Debug, Default)]
pub(super) struct WakeReasons {
    /// Files that may have changed.
    pub(super) changed: HashSet<PathBuf>,
    /// Whether files were created, removed or renamed.
    pub(super) rescan: bool,
    /// Whether the follower is to stop.
    pub(super) stop: bool,
}

impl Wakeup {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn notify_stop(&self) {
        self.reasons().stop = true;
        self.notified.notify_all();
    }

    pub(super) fn notify_change(&self, paths: Vec<PathBuf>) {
        self.reasons().changed.extend(paths);
        self.notified.notify_all();
    }

    pub(super) fn notify_rescan(&self) {
        self.reasons().rescan = true;
        self.notified.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.reasons().stop
    }

    /// Waits for a notification, at most until `deadline`. Returns the reasons and clears all but `stop`.
    pub(super) fn wait(&self, deadline: Instant) -> WakeReasons {
        let is_idle = |reasons: &WakeReasons| !reasons.stop && !reasons.rescan && reasons.changed.is_empty();
        let mut reasons = self.wait_while(deadline, is_idle);
        WakeReasons {
            changed: std::mem::take(&mut reasons.changed),
            rescan: std::mem::take(&mut reasons.rescan),
            stop: reasons.stop,
        }
    }

    /// Waits until `deadline` or until the follower is to stop. Returns whether it is.
    pub(super) fn pause(&self, deadline: Instant) -> bool {
        self.wait_while(deadline, |reasons| !reasons.stop).stop
    }

    fn wait_while(
        &self,
        deadline: Instant,
        is_waiting: impl Fn(&WakeReasons) -> bool,
    ) -> MutexGuard<'_, WakeReasons> {
        let mut reasons = self.reasons();
        while is_waiting(&reasons) {
            let left = deadline.saturating_duration_since(clock::now());
            if left == Duration::ZERO {
                break;
            }
            (reasons, _) = self
                .notified
                .wait_timeout(reasons, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        reasons
    }

    fn reasons(&self) -> MutexGuard<'_, WakeReasons> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
