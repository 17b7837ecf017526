//! The lease of a record that was read and is being sent: the record is finished when its batch is settled, and returned
//! to the log otherwise.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{Position, RecordCounts, inbox::Inbox};
use crate::ledger::Account;

/// The right to send one record. The parts of a split batch share it. The log receives the outcome when the last part is
/// dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    inbox: Arc<Inbox>,
    position: Position,
    counts: RecordCounts,
    account: Arc<Account>,
    /// The number of settled items.
    settled: AtomicU64,
    /// Whether a part was dropped without being settled, so that the complete record is sent again.
    is_returned: AtomicBool,
}

impl Lease {
    /// Creates a lease that returns the record unless it is [used](Self::begin).
    pub(super) fn new(
        inbox: Arc<Inbox>,
        position: Position,
        counts: RecordCounts,
        account: Arc<Account>,
    ) -> Self {
        Self {
            inbox,
            position,
            counts,
            account,
            settled: AtomicU64::new(0),
            is_returned: AtomicBool::new(true),
        }
    }

    /// Marks the lease as used: a ticket settles the record from now on.
    pub(crate) fn begin(&self) {
        self.is_returned.store(false, Ordering::Relaxed);
    }

    /// Records that these items are settled.
    pub(crate) fn settle(&self, items: u64) {
        self.settled.fetch_add(items, Ordering::Relaxed);
    }

    /// Records that a part of the record was not settled.
    pub(crate) fn give_back(&self) {
        self.is_returned.store(true, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if *self.is_returned.get_mut() {
            // The settled items are sent and counted a second time.
            self.account.accept_stored(*self.settled.get_mut());
            self.inbox.give_back(self.position, self.counts);
        } else {
            self.inbox.finish(self.position);
        }
    }
}
