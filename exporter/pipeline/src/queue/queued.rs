//! A batch in a sink task, with everything that has to be released when it is settled.

use std::sync::Arc;

use pulsetrain_otlp::split::Part;

use super::{QueuePermit, QueueSender};
use crate::{Batch, DropReason, Problem, clock::Instant, ledger::Ticket};

/// A batch between the queue and its end. Each of its methods that consume it settle it: the ledger counts the items, the
/// ack receives the outcome and the room in the queue is released. If it is dropped unsettled, it counts as abandoned, or
/// stays in the disk queue that it was read from.
#[derive(Debug)]
pub(crate) struct Queued {
    batch: Batch,
    ticket: Ticket,
    /// The permit, which the parts of a split batch share. It is declared after the ticket, so that the ledger never
    /// counts fewer bytes than the queue holds.
    permit: Arc<QueuePermit>,
    accepted: Instant,
    /// Whether the batch may be dropped to make room for a newer one.
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

    /// Returns the bytes that an eviction frees, or `None` if the batch must stay or frees nothing.
    pub(super) fn evictable_bytes(&self) -> Option<usize> {
        self.permit.bytes().filter(|_| self.is_evictable)
    }

    /// Removes the permit. Returns `None` if the parts of the batch share it.
    pub(super) fn take_permit(&mut self) -> Option<QueuePermit> {
        Arc::get_mut(&mut self.permit).map(QueuePermit::take)
    }

    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Returns the time at which the batch entered the queue.
    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// Settles the batch: the receiver accepted all items except for `rejected`.
    pub(crate) fn delivered_except(self, rejected: u64, problem: impl Into<Problem>) {
        self.ticket.deliver_except(rejected, problem);
    }

    /// Returns whether the batch is in the disk queue, where it stays when it is dropped unsettled.
    pub(crate) fn is_stored(&self) -> bool {
        self.ticket.is_stored()
    }

    /// Settles the batch: all items are dropped.
    pub(crate) fn lost(self, reason: DropReason, problem: impl Into<Problem>) {
        self.ticket.lose(reason, problem);
    }

    /// Moves the batch into the queue of the sink that replaces this one.
    pub(crate) fn hand_over(mut self, to: &QueueSender) {
        to.take_over(self.batch, self.ticket.take_ack());
        self.ticket.hand_over();
    }

    /// Replaces the batch by its parts, which are settled one by one. The last part accounts for the items that the other
    /// parts do not contain.
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
