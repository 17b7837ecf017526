//! The sink that replaces another: it gets what the other has no time to deliver.

use std::sync::{Arc, OnceLock};

use crate::{
    DropReason,
    queue::{QueueSender, Queued},
};

/// The queue of the sink that replaces this one, once there is one; a clone is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successor(Arc<OnceLock<Arc<QueueSender>>>);

impl Successor {
    /// Sets the queue. A sink is replaced once.
    pub(crate) fn set(&self, queue: Arc<QueueSender>) {
        let _ = self.0.set(queue);
    }

    /// Hands a batch over, or drops it where no queue takes it any more. The report of the sink that is replaced counts the
    /// drop, because that of its successor may be out already.
    pub(crate) fn take_over(&self, queued: Queued, message: &str) {
        if queued.is_stored() {
            // Whoever reads the disk queue next sends it.
            return drop(queued);
        }
        match self.0.get().filter(|queue| !queue.is_closed()) {
            Some(queue) => queued.hand_over(queue),
            None => queued.lost(DropReason::DrainDeadline, message),
        }
    }
}
