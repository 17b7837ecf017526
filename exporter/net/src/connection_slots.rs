//! The limit on connections: connections over the limit are refused with an answer, and over a second limit they are
//! closed.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The limit on connections that are open only to be refused.
const MAX_REFUSED: usize = 64;
/// How long a connection waits for a slot before it is refused, so that a burst of short requests is served completely.
const SLOT_TIMEOUT: Duration = Duration::from_millis(250);

/// The connection slots; clones share them.
#[derive(Clone, Debug)]
pub struct ConnectionSlots {
    limit: usize,
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
    exhausted: Arc<Notify>,
}

/// The slot of one connection, held until it is dropped.
#[derive(Debug)]
pub(crate) enum ConnectionSlot {
    Served { _permit: OwnedSemaphorePermit },
    Refused { _permit: OwnedSemaphorePermit },
    Closed,
}

impl ConnectionSlots {
    /// Creates `connections` slots.
    pub fn new(connections: usize) -> Self {
        Self {
            limit: connections,
            served: Arc::new(Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS))),
            refused: Arc::new(Semaphore::new(MAX_REFUSED)),
            exhausted: Arc::default(),
        }
    }

    /// Returns the number of slots.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Waits until a connection finds no free slot. An idle connection then closes, to free its slot.
    pub async fn exhausted(&self) {
        self.exhausted.notified().await;
    }

    pub(crate) async fn next(&self) -> ConnectionSlot {
        if let Ok(_permit) = Arc::clone(&self.served).try_acquire_owned() {
            return ConnectionSlot::Served { _permit };
        }
        self.exhausted.notify_waiters();
        if let Ok(Ok(_permit)) = timeout(SLOT_TIMEOUT, Arc::clone(&self.served).acquire_owned()).await {
            return ConnectionSlot::Served { _permit };
        }
        let refused = Arc::clone(&self.refused).try_acquire_owned();
        refused.map_or(ConnectionSlot::Closed, |_permit| ConnectionSlot::Refused {
            _permit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_are_served_then_refused_then_closed() {
        let slots = ConnectionSlots::new(2);
        let mut held = Vec::new();
        for _ in 0..2 + MAX_REFUSED {
            held.push(slots.next().await);
        }
        let served = |place: &&ConnectionSlot| matches!(place, ConnectionSlot::Served { .. });
        assert_eq!(held.iter().filter(served).count(), 2);
        assert!(matches!(slots.next().await, ConnectionSlot::Closed));
        held.remove(0);
        assert!(matches!(slots.next().await, ConnectionSlot::Served { .. }));
    }

    #[tokio::test(start_paused = true)]
    async fn connection_waits_for_a_slot_that_becomes_free_soon() {
        let slots = ConnectionSlots::new(1);
        let first = slots.next().await;
        let (second, ()) = tokio::join!(slots.next(), async {
            tokio::time::sleep(SLOT_TIMEOUT / 2).await;
            drop(first);
        });
        assert!(matches!(second, ConnectionSlot::Served { .. }));
    }
}
