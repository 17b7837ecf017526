//! Activity of a connection: its requests, and for how long it has had none.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};
use tokio::time::sleep_until;

/// How long a new connection may send no request, complete or not: no client connects long before it sends.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// How long a connection may send no further request. Exporters send every minute.
pub(super) const SILENCE: Duration = Duration::from_secs(120);

/// The requests of one connection; a clone counts with it.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    in_flight: usize,
    /// When it may be closed, while no request is in flight.
    idle_at: Instant,
}

/// A request that is being answered, until it is dropped.
pub(super) struct InFlight(Activity);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            in_flight: 0,
            idle_at: clock::later(clock::now(), FIRST_REQUEST),
        })))
    }

    pub(super) fn request(&self) -> InFlight {
        self.state().in_flight += 1;
        InFlight(self.clone())
    }

    /// Waits until the connection has been without a request for too long.
    pub(super) async fn is_idle(&self) {
        loop {
            let now = clock::now();
            let wake_at = {
                let state = self.state();
                match state.in_flight {
                    0 if now >= state.idle_at => return,
                    0 => state.idle_at,
                    _ => clock::later(now, SILENCE),
                }
            };
            sleep_until(wake_at).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight -= 1;
        state.idle_at = clock::later(clock::now(), SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_ten_seconds_after_it_began_and_two_minutes_after_a_request() {
        let began = clock::now();
        let seconds = || clock::now().duration_since(began).as_secs();
        let activity = Activity::new();
        activity.is_idle().await;
        assert_eq!(seconds(), 10);
        let request = activity.request();
        let waiting = tokio::spawn({
            let activity = activity.clone();
            async move { activity.is_idle().await }
        });
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(!waiting.is_finished(), "a request is in flight");
        drop(request);
        waiting.await.expect("it does not panic");
        assert!((430..=550).contains(&seconds()), "{}", seconds());
        drop(activity.request());
        let began = clock::now();
        activity.is_idle().await;
        assert_eq!(clock::now().duration_since(began).as_secs(), 120);
    }
}
