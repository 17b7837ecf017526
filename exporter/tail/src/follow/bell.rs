//! What wakes a follower: a change that the system told of, or the word to stop.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

/// Rung by whoever sees something, heard by the one thread of a follower.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<Rung>,
    heard: Condvar,
}

/// What happened since the last look.
#[derive(Debug, Default)]
pub(super) struct Rung {
    /// These files may have changed.
    pub(super) changed: HashSet<PathBuf>,
    /// Files came, went or changed names.
    pub(super) look_everywhere: bool,
    /// The follower is to end.
    pub(super) stop: bool,
}

impl Bell {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn ring_for_stop(&self) {
        self.rung().stop = true;
        self.heard.notify_all();
    }

    pub(super) fn ring_for_change(&self, paths: Vec<PathBuf>) {
        self.rung().changed.extend(paths);
        self.heard.notify_all();
    }

    pub(super) fn ring_to_look_everywhere(&self) {
        self.rung().look_everywhere = true;
        self.heard.notify_all();
    }

    pub(super) fn is_stop(&self) -> bool {
        self.rung().stop
    }

    /// Waits until something happens, or until the time has come.
    pub(super) fn wait(&self, until: Instant) -> Rung {
        let is_silent = |rung: &Rung| !rung.stop && !rung.look_everywhere && rung.changed.is_empty();
        let mut rung = self.wait_while(until, is_silent);
        Rung {
            changed: std::mem::take(&mut rung.changed),
            look_everywhere: std::mem::take(&mut rung.look_everywhere),
            stop: rung.stop,
        }
    }

    /// Lets the time pass, whatever happens but the word to stop; says whether that came.
    pub(super) fn pause(&self, until: Instant) -> bool {
        self.wait_while(until, |rung| !rung.stop).stop
    }

    fn wait_while(&self, until: Instant, goes_on: impl Fn(&Rung) -> bool) -> MutexGuard<'_, Rung> {
        let mut rung = self.rung();
        while goes_on(&rung) {
            let left = until.saturating_duration_since(clock::now());
            if left == Duration::ZERO {
                break;
            }
            (rung, _) = self
                .heard
                .wait_timeout(rung, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
        rung
    }

    fn rung(&self) -> MutexGuard<'_, Rung> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
