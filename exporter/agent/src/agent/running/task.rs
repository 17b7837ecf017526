//! Something that runs beside the rest until it is told to end.

use std::time::Duration;

use pulsetrain_pipeline::{
    StopRaiser,
    clock::{self, Instant},
};
use tokio::task::JoinHandle;

/// How long something has to end that is told to.
pub(super) const END: Duration = Duration::from_secs(5);

/// It, and the way to tell it.
pub(super) struct Task {
    stop: StopRaiser,
    done: JoinHandle<()>,
}

impl Task {
    pub(super) fn spawn(stop: StopRaiser, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            stop,
            done: tokio::spawn(work),
        }
    }

    /// Ends it; what does not end in time is left behind.
    pub(super) async fn end(mut self) {
        self.stop();
        self.wait_until(clock::later(clock::now(), END)).await;
    }

    /// Asks it to end, and does not wait for it.
    pub(super) fn stop(&self) {
        self.stop.raise();
    }

    /// Waits for its end; what has not ended by then is left behind.
    pub(super) async fn wait_until(&mut self, deadline: Instant) {
        if tokio::time::timeout_at(deadline, &mut self.done).await.is_err() {
            self.done.abort();
        }
    }
}
