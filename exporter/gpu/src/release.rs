//! Releases the driver, so that a GPU can be reset, split or unloaded, and opens it again.
//!
//! The kernel refuses all of these while a process has the driver open. The thread that reads the driver shuts NVML down when a
//! release is requested, and loads it again when the time is over or `resume` is called.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
    time::Duration,
};

use pulsetrain_pipeline::clock;
use tokio::sync::watch;

/// Whether the process has the driver open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverUse {
    /// No source reads the driver.
    #[default]
    NotWatched,
    /// NVML is loaded, or about to be.
    Open,
    /// NVML was shut down, until the release ends.
    Released,
}

/// A handle to release the driver; a clone is the same handle.
#[derive(Clone, Debug, Default)]
pub struct DriverRelease(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<ReleaseState>,
    driver_use: watch::Sender<DriverUse>,
}

#[derive(Debug, Default)]
struct ReleaseState {
    request: Option<Request>,
    requests: u64,
    /// The thread that reads the driver.
    thread: Option<Thread>,
}

/// A request to release the driver.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// The time for which the driver is released, from the end of the last call on.
    pub(super) time: Duration,
    /// The reason, for the log.
    pub(super) why: String,
    number: u64,
}

impl DriverRelease {
    /// Requests that the driver is released for a time. A later request replaces an earlier one.
    pub fn request(&self, time: Duration, cause: &str) {
        let why = format!("the driver is released for {} s: {cause}", time.as_secs());
        let mut state = self.state();
        state.requests += 1;
        state.request = Some(Request {
            time,
            why,
            number: state.requests,
        });
        state.wake();
    }

    /// Ends a release before its time is over.
    pub fn resume(&self) {
        let mut state = self.state();
        state.request = None;
        state.wake();
    }

    /// Waits until the driver is not open, and returns its state.
    pub async fn released(&self) -> DriverUse {
        let mut driver_use = self.0.driver_use.subscribe();
        let not_open = driver_use.wait_for(|state| *state != DriverUse::Open).await;
        not_open.map(|state| *state).unwrap_or_default()
    }

    /// Returns whether the driver is open.
    pub fn driver_use(&self) -> DriverUse {
        *self.0.driver_use.borrow()
    }

    /// Returns the request in force.
    pub(super) fn requested(&self) -> Option<Request> {
        self.state().request.clone()
    }

    /// Waits until the time of a request is over, or another or none is in force, or `is_ending`.
    pub(super) fn wait_for_end(&self, request: &Request, is_ending: impl Fn() -> bool) {
        let is_same = |other: &Request| other.number == request.number;
        let end = clock::later(clock::now(), request.time);
        while !is_ending() && self.requested().as_ref().is_some_and(is_same) {
            let left = end.saturating_duration_since(clock::now());
            if left.is_zero() {
                self.state().request.take_if(|other| is_same(other));
                return;
            }
            thread::park_timeout(left);
        }
    }

    /// Records that the present thread reads the driver.
    pub(super) fn begin(&self) {
        self.state().thread = Some(thread::current());
        self.0.driver_use.send_replace(DriverUse::Open);
    }

    pub(super) fn set_use(&self, driver_use: DriverUse) {
        self.0.driver_use.send_replace(driver_use);
    }

    /// Records that the present thread has shut NVML down and ends. After a reload another thread may read the driver.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if state
            .thread
            .as_ref()
            .is_some_and(|thread| thread.id() == thread::current().id())
        {
            state.thread = None;
            self.0.driver_use.send_replace(DriverUse::NotWatched);
        }
    }

    fn state(&self) -> MutexGuard<'_, ReleaseState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReleaseState {
    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}
