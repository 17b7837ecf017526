//! Confirmations that a required sink holds a batch.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use crate::{Ack, NotHeld};

/// Confirms that a sink holds a batch, or has dropped it for good. It is cancelled if the end of the pipeline loses the batch.
#[derive(Debug)]
pub(crate) enum Confirmation {
    /// The batch is in the disk queue.
    Stored(oneshot::Receiver<()>),
    /// The sink has delivered the batch, or has rejected it permanently.
    Delivered(oneshot::Receiver<()>),
}

impl Confirmation {
    /// The maximum time that a source waits for a delivery. A batch that takes longer counts as held by the queue in
    /// memory, because its client would time out and send it again.
    pub(crate) const MAX_DELIVERY_WAIT: Duration = Duration::from_secs(2);

    /// Returns a confirmation of a delivery, and the ack that triggers it.
    pub(crate) fn of_delivery() -> (Arc<Ack>, Self) {
        let (confirmation, delivered) = oneshot::channel();
        let ack = Ack::new(|outcome| {
            if !outcome.is_cut_off {
                // The client may have disconnected.
                let _ = confirmation.send(());
            }
        });
        (Arc::new(ack), Self::Delivered(delivered))
    }

    /// Waits for the confirmation; for a delivery, until `deadline` at most.
    ///
    /// # Errors
    /// [`NotHeld`] if the batch was lost.
    pub(crate) async fn wait(self, deadline: Instant) -> Result<(), NotHeld> {
        match self {
            Self::Stored(stored) => stored.await.map_err(|_| NotHeld),
            Self::Delivered(delivered) => match timeout_at(deadline, delivered).await {
                Ok(delivered) => delivered.map_err(|_| NotHeld),
                Err(_) => Ok(()),
            },
        }
    }
}
