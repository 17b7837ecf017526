//! The sink that replaces another: it receives the batches that the other has no time to deliver.

use std::sync::{Arc, OnceLock};

use crate::{
    DropReason, Problem,
    queue::{QueueSender, Queued},
};

/// The sink that replaces this one, once there is one; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successor(Arc<OnceLock<Replacement>>);

/// The queue of a sink, and the successor of that sink.
#[derive(Debug)]
struct Replacement {
    queue: Arc<QueueSender>,
    next: Successor,
}

impl Successor {
    /// Sets the queue of the sink, and its successor for later. A sink is replaced once.
    pub(crate) fn set(&self, queue: Arc<QueueSender>, next: Self) {
        let _ = self.0.set(Replacement { queue, next });
    }

    /// Returns the queue of the first successor that accepts batches.
    fn open_queue(&self) -> Option<&QueueSender> {
        let mut next = self.0.get();
        while let Some(Replacement { queue, next: after }) = next {
            if !queue.is_closed() {
                return Some(queue);
            }
            next = after.0.get();
        }
        None
    }

    /// Hands a batch over, or drops it if no queue accepts it any more. The report of the replaced sink counts the drop,
    /// because that of its successor may already be complete.
    pub(crate) fn take_over(&self, queued: Queued, problem: impl Into<Problem>) {
        if queued.is_stored() {
            // The next reader of the disk queue sends the batch.
            return drop(queued);
        }
        match self.open_queue() {
            Some(queue) => queued.hand_over(queue),
            None => queued.lost(DropReason::DrainDeadline, problem),
        }
    }
}
