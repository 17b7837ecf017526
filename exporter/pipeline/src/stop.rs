//! Cancellation of sources: raised once, seen by all, never lowered.

use tokio::sync::watch;

/// The end that raises the signal; a clone raises the same one.
#[derive(Clone, Debug)]
pub struct StopRaiser {
    raised: watch::Sender<bool>,
}

/// The end that a source holds; a clone sees the same signal.
#[derive(Clone, Debug)]
pub struct Stop {
    raised: watch::Receiver<bool>,
}

impl StopRaiser {
    /// A signal that is not raised yet.
    pub fn new() -> Self {
        Self {
            raised: watch::Sender::new(false),
        }
    }

    /// Raises the signal. Raising it again changes nothing.
    pub fn raise(&self) {
        self.raised.send_replace(true);
    }

    /// The end for a source.
    pub fn stop(&self) -> Stop {
        Stop {
            raised: self.raised.subscribe(),
        }
    }
}

impl Default for StopRaiser {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// A signal that nobody raises: for sources that always read to the end of their input.
    pub fn never() -> Self {
        StopRaiser::new().stop()
    }

    /// Whether the signal is raised; cheap, for readers that look between two reads.
    pub fn is_raised(&self) -> bool {
        *self.raised.borrow()
    }

    /// Waits until the signal is raised; for ever when nobody is left who could raise it.
    pub async fn wait(&self) {
        let mut raised = self.raised.clone();
        if raised.wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn raised_signal_wakes_everyone_who_waits_and_stays_raised() {
        let raiser = StopRaiser::new();
        let (early, late) = (raiser.stop(), raiser.stop());
        let waiting = tokio::spawn(async move { early.wait().await });
        assert!(!late.is_raised());
        raiser.raise();
        raiser.raise();
        drop(raiser);
        waiting.await.expect("the waiting task ends");
        assert!(late.is_raised());
        late.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn signal_that_nobody_can_raise_is_waited_for_for_ever() {
        let stop = Stop::never();
        assert!(!stop.is_raised());
        assert!(
            tokio::time::timeout(Duration::from_secs(3600), stop.wait())
                .await
                .is_err()
        );
    }
}
