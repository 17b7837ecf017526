//! The FIFO of a queue in memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{QueuePermit, Queued, permit::Bounds};

/// A FIFO with any number of senders and one receiver. Its length is bounded by the permits of its batches.
#[derive(Debug, Default)]
pub(super) struct MemoryQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    batches: VecDeque<Queued>,
    is_closed: bool,
}

impl MemoryQueue {
    /// Appends a batch; returns it if the queue is closed.
    #[must_use]
    pub(super) fn push(&self, queued: Queued) -> Option<Queued> {
        let mut state = self.state();
        if state.is_closed {
            return Some(queued);
        }
        state.batches.push_back(queued);
        drop(state);
        self.changed.notify_one();
        None
    }

    /// Waits for the oldest batch. Returns `None` if the queue is closed and empty. Cancel-safe.
    pub(super) async fn next(&self) -> Option<Queued> {
        loop {
            let (oldest, is_closed) = self.pop();
            if oldest.is_some() || is_closed {
                return oldest;
            }
            self.changed.notified().await;
        }
    }

    /// Returns the oldest batch, or `None` if the queue is empty.
    pub(super) fn try_next(&self) -> Option<Queued> {
        self.pop().0
    }

    /// Closes the queue to new batches.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Evicts the minimal number of the oldest evictable batches that makes room for a batch of this size. Returns the
    /// evicted batches with a permit for the new one. Returns `None` and evicts nothing if they do not make enough room.
    pub(super) fn evict(&self, bytes: u32, bounds: &Arc<Bounds>) -> Option<(Vec<Queued>, QueuePermit)> {
        let mut state = self.state();
        let (mut places, mut freed, mut rest) = (Vec::new(), 0, None);
        for (place, queued) in state.batches.iter().enumerate() {
            let Some(held) = queued.evictable_bytes() else {
                continue;
            };
            places.push(place);
            freed += held;
            rest = bounds.try_bytes((bytes as usize).saturating_sub(freed));
            if rest.is_some() {
                break;
            }
        }
        let rest = rest?;
        let evicted = places.into_iter().rev();
        let mut evicted: Vec<Queued> = evicted.filter_map(|place| state.batches.remove(place)).collect();
        drop(state);
        evicted.reverse();
        let permits = evicted.iter_mut().filter_map(Queued::take_permit);
        let permit = bounds.reuse(bytes, rest, permits)?;
        Some((evicted, permit))
    }

    /// Removes the oldest batch, and returns it with whether the queue is closed.
    fn pop(&self) -> (Option<Queued>, bool) {
        let mut state = self.state();
        (state.batches.pop_front(), state.is_closed)
    }

    /// Locks the state; no code panics while the lock is held.
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
