//! A batch on its way through one sink task, with everything that has to be released when it is settled.

use std::sync::Arc;

use pulsetrain_otlp::split::Part;

use super::{QueuePermit, QueueSender};
use crate::{Batch, DropReason, clock::Instant, ledger::Ticket};

/// A batch between the queue and its end. Each of its methods that consume it settle it: the ledger counts the items, the
/// ack learns the outcome and the room in the queue is free again. Dropped unsettled, it counts as abandoned, or stays in
/// the disk queue that it was read from.
#[derive(Debug)]
pub(crate) struct Queued {
    batch: Batch,
    ticket: Ticket,
    /// Shared by the parts of a batch that was split; declared after the ticket, so that the ledger never counts fewer
    /// bytes than the queue holds.
    permit: Arc<QueuePermit>,
    accepted: Instant,
    /// Whether it may be dropped to make room for a newer one.
    is_evictable: bool,
}

impl Queued {
    pub(super) fn new(batch: Batch, ticket: Ticket, permit: QueuePermit, accepted: Instant) -> Self {
        Self {
            batch,
            ticket,
            permit: Arc::new(permit),
            accepted,
            is_evictable: false,
        }
    }

    pub(super) fn evictable(self, is_evictable: bool) -> Self {
        Self { is_evictable, ..self }
    }

    /// The bytes that are free when it is evicted; `None` where it must stay, or makes no room.
    pub(super) fn evictable_bytes(&self) -> Option<usize> {
        self.permit.bytes().filter(|_| self.is_evictable)
    }

    /// Removes its permit; `None` where its parts share it.
    pub(super) fn take_permit(&mut self) -> Option<QueuePermit> {
        Arc::get_mut(&mut self.permit).map(QueuePermit::take)
    }

    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The time at which the batch entered the queue.
    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// The receiver accepted all items but for `rejected`.
    pub(crate) fn delivered_except(self, rejected: u64, message: &str) {
        self.ticket.deliver_except(rejected, message);
    }

    /// Whether the batch is in the disk queue, where it stays when it is dropped unsettled.
    pub(crate) fn is_stored(&self) -> bool {
        self.ticket.is_stored()
    }

    /// All items are dropped.
    pub(crate) fn lost(self, reason: DropReason, message: &str) {
        self.ticket.lose(reason, message);
    }

    /// Moves the batch into the queue of the sink that replaces this one.
    pub(crate) fn hand_over(mut self, to: &QueueSender) {
        to.take_over(self.batch, self.ticket.take_ack());
        self.ticket.hand_over();
    }

    /// Replaces the batch by its parts, which are settled one by one. The last part accounts for the items that the others do
    /// not.
    pub(crate) fn split(mut self, parts: Vec<Part>) -> Vec<Self> {
        let mut split = Vec::with_capacity(parts.len());
        let mut parts = parts.into_iter().peekable();
        while let Some(Part { items, bytes }) = parts.next() {
            let batch = self.batch.with_contents(items, bytes);
            if parts.peek().is_none() {
                self.batch = batch;
                split.push(self);
                return split;
            }
            let ticket = self.ticket.split_off(items, batch.bytes().len());
            split.push(Self {
                batch,
                ticket,
                permit: Arc::clone(&self.permit),
                accepted: self.accepted,
                is_evictable: false,
            });
        }
        vec![self]
    }
}
