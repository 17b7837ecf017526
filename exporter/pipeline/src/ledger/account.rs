//! The account of one sink, and the tickets by which items enter and leave it.
//!
//! A ticket is drawn when a batch comes to the door and settled once, wherever the batch ends. One that is dropped
//! unsettled (a cancelled send, an aborted worker) settles itself as abandoned, so no path can forget to count.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use pulsetrain_otlp::{Signal, Signals};

use super::{DropReason, Dropped, SinkCounts, Trouble, message};
use crate::{Receipt, clock};

/// The counts of one sink. One short lock a batch, so that every picture of it is of one moment.
#[derive(Debug)]
pub(crate) struct Account {
    name: String,
    number: u64,
    books: Mutex<Books>,
    /// The sink is taken out, and the pipeline goes on without it: what it did not take is nobody's to bring again.
    is_leaving: AtomicBool,
}

/// Items that are accepted and not settled yet.
#[derive(Debug)]
pub(crate) struct Ticket {
    account: Arc<Account>,
    signal: Signal,
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
    /// The signals of which the receiver took a batch.
    supported: Signals,
    /// By reason and signal.
    dropped: [[Loss; Signal::ALL.len()]; DropReason::ALL.len()],
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
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            name: name.into(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            books: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        })
    }

    /// Accepts the items of a batch of so many bytes: from here on they are queued, until the ticket is settled.
    pub(crate) fn accept(self: &Arc<Self>, signal: Signal, items: u32, bytes: usize) -> Ticket {
        let (items, bytes) = (u64::from(items), bytes as u64);
        let mut books = self.books();
        books.accepted += items;
        books.queued += items;
        books.queued_batches += 1;
        books.queued_bytes += bytes;
        Ticket {
            account: Arc::clone(self),
            signal,
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
            account: self.number,
            accepted: books.accepted,
            delivered: books.delivered,
            supported: books.supported,
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
        books.supported.insert(self.signal);
        books.lose(DropReason::Rejected, self.signal, rejected, message);
    }

    /// Takes all items out of the books: another sink has accepted them in place of this one.
    pub(crate) fn hand_over(mut self) {
        let items = self.settle();
        let mut books = self.account.books();
        books.settle(items, self.bytes);
        books.accepted -= items;
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
        books.lose(reason, self.signal, items, message);
        let is_failure = match reason {
            DropReason::Refused | DropReason::SinkPanicked => true,
            // A receiver that supports another signal works.
            DropReason::UnsupportedSignal => books.supported.is_empty(),
            _ => false,
        };
        if is_failure {
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

    fn lose(&mut self, reason: DropReason, signal: Signal, items: u64, message: &str) {
        let loss = &mut self.dropped[reason as usize][signal as usize];
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
        let of_reason = |(reason, losses): (DropReason, &[Loss; Signal::ALL.len()])| {
            let lost = Signal::ALL
                .into_iter()
                .zip(losses)
                .filter(|(_, loss)| loss.items > 0);
            let dropped = lost.map(|(signal, loss)| Dropped {
                reason,
                signal,
                items: loss.items,
                message: loss.message.clone(),
            });
            dropped.collect::<Vec<_>>()
        };
        DropReason::ALL
            .into_iter()
            .zip(&self.dropped)
            .flat_map(of_reason)
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
            signal: Signal::Metrics,
            items,
            message: message.map(str::to_owned),
        }
    }

    #[test]
    fn tickets_move_items_from_queued_to_where_they_ended() {
        let account = Account::new("test");
        let (first, second, third) = (
            account.accept(Signal::Metrics, 5, 10),
            account.accept(Signal::Metrics, 7, 20),
            account.accept(Signal::Metrics, 11, 30),
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
    fn each_signal_has_its_own_loss_and_its_own_message() {
        let account = Account::new("test");
        for (signal, message) in [(Signal::Logs, "no logs"), (Signal::Traces, "too old")] {
            account.accept(signal, 2, 8).lose(DropReason::Refused, message);
        }
        account
            .accept(Signal::Logs, 3, 8)
            .lose(DropReason::Refused, "no logs here");
        let counts = account.counts();
        let losses: Vec<_> = (counts.dropped.iter())
            .map(|loss| (loss.signal, loss.items, loss.message.as_deref()))
            .collect();
        assert_eq!(
            losses,
            [
                (Signal::Traces, 2, Some("too old")),
                (Signal::Logs, 5, Some("no logs here"))
            ]
        );
        assert_eq!(counts.dropped_for(DropReason::Refused), 7);
    }

    #[test]
    fn unsupported_signal_is_a_loss_only_where_the_receiver_took_no_other_or_took_that_one_too() {
        let lost = |taken: &[Signal]| {
            let account = Account::new("test");
            account
                .accept(Signal::Traces, 3, 8)
                .lose(DropReason::UnsupportedSignal, "404");
            for signal in taken {
                account.accept(*signal, 1, 8).deliver_except(0, "");
            }
            let counts = account.counts();
            assert_eq!(
                counts.lost_items() + counts.unsupported().map(|drop| drop.items).sum::<u64>(),
                3
            );
            counts.lost_items()
        };
        assert_eq!(lost(&[]), 3, "nothing was taken: the endpoint is wrong");
        assert_eq!(lost(&[Signal::Metrics]), 0);
        assert_eq!(
            lost(&[Signal::Metrics, Signal::Traces]),
            3,
            "it takes traces, but not these"
        );
    }

    #[test]
    fn forgotten_ticket_is_counted_as_abandoned() {
        let account = Account::new("test");
        drop(account.accept(Signal::Metrics, 4, 8));
        assert_eq!(account.counts().queued, 0);
        assert_eq!(
            account.counts().dropped,
            [dropped(DropReason::Abandoned, 4, None)]
        );
    }

    #[test]
    fn receiver_cannot_reject_more_than_it_was_sent() {
        let account = Account::new("test");
        account
            .accept(Signal::Metrics, 4, 8)
            .deliver_except(u64::MAX, "all of it");
        assert_eq!(
            (account.counts().delivered, account.counts().dropped_items()),
            (0, 4)
        );
    }

    #[test]
    fn words_that_came_without_a_loss_are_not_given_for_a_later_one() {
        let account = Account::new("test");
        account
            .accept(Signal::Metrics, 4, 8)
            .deliver_except(0, "a warning");
        account.accept(Signal::Metrics, 4, 8).deliver_except(1, "");
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
