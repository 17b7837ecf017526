//! The account of one sink, and the tickets by which items enter and leave it.
//!
//! A ticket is drawn when a batch comes to the door and settled once, wherever the batch ends. One that is dropped
//! unsettled (a cancelled send, an aborted worker) settles itself as abandoned, so no path can forget to count.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::{DropReason, Dropped, SinkCounts, Trouble, message};
use crate::{Receipt, clock};

/// The counts of one sink. One short lock a batch, so that every picture of it is of one moment.
#[derive(Debug)]
pub(crate) struct Account {
    name: String,
    books: Mutex<Books>,
    /// The sink is taken out, and the pipeline goes on without it: what it did not take is nobody's to bring again.
    is_leaving: AtomicBool,
}

/// Items that are accepted and not settled yet.
#[derive(Debug)]
pub(crate) struct Ticket {
    account: Arc<Account>,
    items: u64,
    bytes: u64,
    is_settled: bool,
    /// Held until the items are settled.
    receipt: Option<Arc<Receipt>>,
}

#[derive(Debug, Default)]
struct Books {
    accepted: u64,
    delivered: u64,
    queued: u64,
    queued_batches: u64,
    queued_bytes: u64,
    dropped: [Loss; DropReason::ALL.len()],
    retries: Remarks,
    warnings: Remarks,
    trouble: Option<Trouble>,
}

#[derive(Debug, Default)]
struct Loss {
    items: u64,
    message: Option<String>,
}

#[derive(Debug, Default)]
struct Remarks {
    count: u64,
    message: Option<String>,
}

impl Account {
    pub(crate) fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            books: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        })
    }

    /// Accepts the items of a batch of so many bytes: from here on they are queued, until the ticket is settled.
    pub(crate) fn accept(self: &Arc<Self>, items: u32, bytes: usize) -> Ticket {
        let (items, bytes) = (u64::from(items), bytes as u64);
        let mut books = self.books();
        books.accepted += items;
        books.queued += items;
        books.queued_batches += 1;
        books.queued_bytes += bytes;
        Ticket {
            account: Arc::clone(self),
            items,
            bytes,
            is_settled: false,
            receipt: None,
        }
    }

    /// From now on, what is lost is lost with the sink and not with the pipeline.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Notes that the sink asked for a later delivery.
    pub(crate) fn note_retry(&self, message: &str) {
        let mut books = self.books();
        books.retries.note(message);
        books.fail(message);
    }

    /// Notes that the receiver took everything but had something to say.
    pub(crate) fn note_warning(&self, message: &str) {
        self.books().warnings.note(message);
    }

    pub(crate) fn counts(&self) -> SinkCounts {
        let books = self.books();
        SinkCounts {
            name: self.name.clone(),
            accepted: books.accepted,
            delivered: books.delivered,
            queued: books.queued,
            queued_batches: books.queued_batches,
            queued_bytes: books.queued_bytes,
            dropped: books.losses(),
            retries: books.retries.count,
            retry_message: books.retries.message.clone(),
            trouble: books.trouble.clone(),
            warnings: books.warnings.count,
            warning_message: books.warnings.message.clone(),
        }
    }

    /// The books; nothing panics while it holds them, and numbers stay true even if something did.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// The same ticket, which tells `receipt` what becomes of the items.
    pub(crate) fn with_receipt(mut self, receipt: Option<Arc<Receipt>>) -> Self {
        self.receipt = receipt;
        self
    }

    /// All items arrived but for `rejected`, which are lost.
    pub(crate) fn deliver_except(mut self, rejected: u64, message: &str) {
        let items = self.settle();
        let rejected = rejected.min(items);
        let mut books = self.account.books();
        books.settle(items, self.bytes);
        books.delivered += items - rejected;
        if rejected == 0 || rejected < items {
            books.trouble = None;
        } else {
            books.fail(message);
        }
        books.lose(DropReason::Rejected, rejected, message);
    }

    /// All items are lost.
    pub(crate) fn lose(mut self, reason: DropReason, message: &str) {
        self.settle_lost(reason, message);
    }

    fn settle(&mut self) -> u64 {
        self.is_settled = true;
        self.items
    }

    fn settle_lost(&mut self, reason: DropReason, message: &str) {
        let items = self.settle();
        let mut books = self.account.books();
        books.settle(items, self.bytes);
        books.lose(reason, items, message);
        if matches!(reason, DropReason::Refused | DropReason::SinkPanicked) {
            books.fail(message);
        }
        drop(books);
        let is_cut_off = reason.is_of_the_end() && !self.account.is_leaving.load(Ordering::Relaxed);
        if let Some(receipt) = self.receipt.take().filter(|_| is_cut_off) {
            receipt.cut_off();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_settled {
            self.settle_lost(DropReason::Abandoned, "");
        }
    }
}

impl Books {
    /// Takes the items of one batch out of those that are queued.
    fn settle(&mut self, items: u64, bytes: u64) {
        self.queued -= items;
        self.queued_batches -= 1;
        self.queued_bytes -= bytes;
    }

    fn lose(&mut self, reason: DropReason, items: u64, message: &str) {
        let loss = &mut self.dropped[reason as usize];
        loss.items += items;
        if items > 0
            && let Some(message) = message::bounded(message)
        {
            loss.message = Some(message);
        }
    }

    /// Notes a failed delivery.
    fn fail(&mut self, message: &str) {
        let since = self
            .trouble
            .take()
            .map_or_else(clock::now, |trouble| trouble.since);
        let message = message::bounded(message).unwrap_or_default();
        self.trouble = Some(Trouble { since, message });
    }

    fn losses(&self) -> Vec<Dropped> {
        DropReason::ALL
            .into_iter()
            .zip(&self.dropped)
            .filter(|(_, loss)| loss.items > 0)
            .map(|(reason, loss)| Dropped {
                reason,
                items: loss.items,
                message: loss.message.clone(),
            })
            .collect()
    }
}

impl Remarks {
    fn note(&mut self, message: &str) {
        self.count += 1;
        self.message = message::bounded(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(reason: DropReason, items: u64, message: Option<&str>) -> Dropped {
        Dropped {
            reason,
            items,
            message: message.map(str::to_owned),
        }
    }

    #[test]
    fn tickets_move_items_from_queued_to_where_they_ended() {
        let account = Account::new("test");
        let (first, second, third) = (
            account.accept(5, 10),
            account.accept(7, 20),
            account.accept(11, 30),
        );
        assert_eq!((account.counts().accepted, account.counts().queued), (23, 23));
        assert_eq!(
            (account.counts().queued_batches, account.counts().queued_bytes),
            (3, 60)
        );
        first.deliver_except(0, "");
        second.deliver_except(3, "three are too old");
        third.lose(DropReason::Refused, "no such tenant");
        let counts = account.counts();
        assert_eq!((counts.accepted, counts.delivered, counts.queued), (23, 9, 0));
        assert_eq!((counts.queued_batches, counts.queued_bytes), (0, 0));
        assert_eq!(
            counts.dropped,
            [
                dropped(DropReason::Rejected, 3, Some("three are too old")),
                dropped(DropReason::Refused, 11, Some("no such tenant")),
            ]
        );
        assert_eq!(
            (counts.dropped_items(), counts.dropped_for(DropReason::Refused)),
            (14, 11)
        );
    }

    #[test]
    fn forgotten_ticket_is_counted_as_abandoned() {
        let account = Account::new("test");
        drop(account.accept(4, 8));
        assert_eq!(account.counts().queued, 0);
        assert_eq!(
            account.counts().dropped,
            [dropped(DropReason::Abandoned, 4, None)]
        );
    }

    #[test]
    fn receiver_cannot_reject_more_than_it_was_sent() {
        let account = Account::new("test");
        account.accept(4, 8).deliver_except(u64::MAX, "all of it");
        assert_eq!(
            (account.counts().delivered, account.counts().dropped_items()),
            (0, 4)
        );
    }

    #[test]
    fn words_that_came_without_a_loss_are_not_given_for_a_later_one() {
        let account = Account::new("test");
        account.accept(4, 8).deliver_except(0, "a warning");
        account.accept(4, 8).deliver_except(1, "");
        assert_eq!(account.counts().dropped, [dropped(DropReason::Rejected, 1, None)]);
    }

    #[test]
    fn warnings_and_retries_are_noted_with_their_last_message() {
        let account = Account::new("test");
        account.note_warning("first");
        account.note_warning("second");
        account.note_retry("busy");
        let counts = account.counts();
        assert_eq!(
            (counts.warnings, counts.warning_message.as_deref()),
            (2, Some("second"))
        );
        assert_eq!(
            (counts.retries, counts.retry_message.as_deref()),
            (1, Some("busy"))
        );
    }
}
