//! A background task with a stop signal.

use std::time::Duration;

use pulsetrain_pipeline::{
    CancellationToken,
    clock::{self, Instant},
};
use tokio::task::JoinHandle;

/// The time a task has to end after its stop signal.
pub(super) const END: Duration = Duration::from_secs(5);

/// The task and its stop signal.
pub(super) struct Task {
    stop: CancellationToken,
    done: JoinHandle<()>,
}

impl Task {
    pub(super) fn spawn(stop: CancellationToken, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            stop,
            done: tokio::spawn(work),
        }
    }

    /// Stops the task; a task that does not end in time is abandoned.
    pub(super) async fn end(mut self) {
        self.stop();
        self.wait_until(clock::later(clock::now(), END)).await;
    }

    /// Signals the task to stop, without waiting for its end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the end of the task; after the deadline the task is abandoned.
    pub(super) async fn wait_until(&mut self, deadline: Instant) {
        if tokio::time::timeout_at(deadline, &mut self.done).await.is_err() {
            self.done.abort();
        }
    }
}
