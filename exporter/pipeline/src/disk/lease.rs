//! A record that was read and is being sent: finished when its batch is settled, given back to the log otherwise.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{Position, inbox::Inbox};
use crate::ledger::Account;

/// The right to send one record; shared by the parts of its batch where it is split. The log learns the outcome when the last
/// part is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    inbox: Arc<Inbox>,
    position: Position,
    items: u64,
    account: Arc<Account>,
    /// The items that were settled.
    settled: AtomicU64,
    /// A part was dropped without being settled: the record is sent again as one.
    is_returned: AtomicBool,
}

impl Lease {
    /// A lease that gives the record back unless it is [used](Self::begin).
    pub(super) fn new(inbox: Arc<Inbox>, position: Position, items: u32, account: Arc<Account>) -> Self {
        Self {
            inbox,
            position,
            items: items.into(),
            account,
            settled: AtomicU64::new(0),
            is_returned: AtomicBool::new(true),
        }
    }

    /// Notes that a ticket settles the record from now on.
    pub(crate) fn begin(&self) {
        self.is_returned.store(false, Ordering::Relaxed);
    }

    /// Notes that these items are settled.
    pub(crate) fn settle(&self, items: u64) {
        self.settled.fetch_add(items, Ordering::Relaxed);
    }

    /// Notes that a part of the record was not settled.
    pub(crate) fn give_back(&self) {
        self.is_returned.store(true, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if *self.is_returned.get_mut() {
            // They are sent a second time, and are counted a second time.
            self.account.accept_stored(*self.settled.get_mut());
            self.inbox.give_back(self.position, self.items);
        } else {
            self.inbox.finish(self.position);
        }
    }
}
