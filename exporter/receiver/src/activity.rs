//! Tracks the requests of a connection, to close idle connections.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_net::ConnectionSlots;
use pulsetrain_pipeline::clock::{self, Instant};
use tokio::time::sleep_until;

/// The idle timeout of a connection before its first request.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// The idle timeout after a request. Exporters send every minute.
pub(super) const SILENCE: Duration = Duration::from_secs(120);

/// The idle timeout before the first request while other connections are rejected.
const CROWDED_FIRST_REQUEST: Duration = Duration::from_secs(1);
/// The idle timeout after a request while other connections are rejected.
const CROWDED_SILENCE: Duration = Duration::from_secs(10);

/// The requests of one connection. Clones share the count.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<ActivityState>>);

#[derive(Debug)]
struct ActivityState {
    in_flight: usize,
    /// The time from which the connection counts as idle if no request is in flight.
    idle_at: Instant,
    /// The time from which it counts as idle while other connections are rejected.
    yields_at: Instant,
}

/// A request in flight, until it is dropped.
pub(super) struct InFlight(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        let now = clock::now();
        Self(Arc::new(Mutex::new(ActivityState {
            in_flight: 0,
            idle_at: clock::later(now, FIRST_REQUEST),
            yields_at: clock::later(now, CROWDED_FIRST_REQUEST),
        })))
    }

    pub(super) fn request(&self) -> InFlight {
        self.state().in_flight += 1;
        InFlight(self.clone())
    }

    /// Waits until the connection is idle while another one is rejected.
    pub(super) async fn wait_until_idle_and_slot_needed(&self, slots: &ConnectionSlots) {
        loop {
            slots.exhausted().await;
            let state = self.state();
            if state.in_flight == 0 && clock::now() >= state.yields_at {
                return;
            }
        }
    }

    /// Waits until the connection is idle.
    pub(super) async fn is_idle(&self) {
        while let Some(later) = self.wake_at(clock::now()) {
            sleep_until(later).await;
        }
    }

    /// Returns the time of the next check, or `None` if the connection is idle.
    fn wake_at(&self, now: Instant) -> Option<Instant> {
        let state = self.state();
        match state.in_flight {
            0 => (now < state.idle_at).then_some(state.idle_at),
            _ => Some(clock::later(now, SILENCE)),
        }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight -= 1;
        let now = clock::now();
        state.idle_at = clock::later(now, SILENCE);
        state.yields_at = clock::later(now, CROWDED_SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_timeout_is_ten_seconds_for_new_connections_and_two_minutes_after_a_request() {
        let activity = Activity::new();
        let began = clock::now();
        let is_idle_after = |seconds| {
            let now = clock::later(began, Duration::from_secs(seconds));
            activity.wake_at(now).is_none()
        };
        assert_eq!([9, 11].map(is_idle_after), [false, true]);
        let requests = [activity.request(), activity.request()];
        assert_eq!([11, 1000].map(is_idle_after), [false, false]);
        let [first, second] = requests;
        drop(first);
        assert!(!is_idle_after(1000), "one is in flight");
        drop(second);
        assert_eq!([119, 1000].map(is_idle_after), [false, true]);
    }
}
