//! The drain: the signal from the pipeline to its workers that no more batches arrive, with the deadline.

use std::time::Duration;

use tokio::{sync::watch, time::sleep_until};

use crate::clock::{self, Instant};

/// The sender, held by the pipeline.
#[derive(Debug)]
pub(crate) struct DrainRaiser {
    deadline: watch::Sender<Option<Instant>>,
}

/// The receiver, held by a worker.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    deadline: watch::Receiver<Option<Instant>>,
}

impl DrainRaiser {
    pub(crate) fn new() -> Self {
        Self {
            deadline: watch::Sender::new(None),
        }
    }

    pub(crate) fn drain(&self) -> Drain {
        Drain {
            deadline: self.deadline.subscribe(),
        }
    }

    /// Starts the drain.
    pub(crate) fn raise(&self, deadline: Instant) {
        self.deadline.send_replace(Some(deadline));
    }
}

impl Drain {
    /// Waits until the drain begins, and returns its deadline. Waits forever if every sender is dropped.
    pub(crate) async fn begun(&mut self) -> Instant {
        let deadline = match self.deadline.wait_for(Option::is_some).await {
            Ok(deadline) => *deadline,
            Err(_) => None,
        };
        match deadline {
            Some(deadline) => deadline,
            None => std::future::pending().await,
        }
    }

    /// Waits until the drain begins, and returns the time at which everything must have ended: the deadline, but not
    /// before `grace` from now.
    pub(crate) async fn end(&mut self, grace: Duration) -> Instant {
        let at_least = clock::later(clock::now(), grace);
        self.begun().await.max(at_least)
    }

    /// Returns the deadline, or `None` before the drain begins.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        *self.deadline.borrow()
    }

    /// Waits until the deadline has passed.
    pub(crate) async fn passed(&mut self) {
        let deadline = self.begun().await;
        sleep_until(deadline).await;
    }
}
