//! The drain: how the pipeline tells its workers that no more will come, and until when they may go on.

use tokio::{sync::watch, time::sleep_until};

use crate::clock::Instant;

/// The pipeline's end.
#[derive(Debug)]
pub(crate) struct DrainRaiser {
    deadline: watch::Sender<Option<Instant>>,
}

/// A worker's end.
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

    /// Begins the drain.
    pub(crate) fn raise(&self, deadline: Instant) {
        self.deadline.send_replace(Some(deadline));
    }
}

impl Drain {
    /// Waits until the drain begins, and gives its deadline; for ever when nobody is left who could begin it.
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

    /// Whether the drain has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.deadline.borrow().is_some()
    }

    /// Waits until the deadline is past.
    pub(crate) async fn passed(&mut self) {
        let deadline = self.begun().await;
        sleep_until(deadline).await;
    }

    /// Ends as soon as it is known that the deadline comes no later than `at`; otherwise never.
    pub(crate) async fn comes_before(&mut self, at: Instant) {
        if self.begun().await > at {
            std::future::pending::<()>().await;
        }
    }
}
