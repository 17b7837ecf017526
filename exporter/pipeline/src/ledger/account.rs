//! The account of one sink, and the tickets that count its items.
//!
//! A batch gets a ticket at the ingress, and the ticket is settled once, when the batch ends. A ticket that is dropped
//! unsettled (a cancelled send, an aborted worker) settles itself as abandoned, so that every path is counted.

#[cfg(test)]
mod tests;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pulsetrain_otlp::{Signal, Signals};

use super::{
    DropReason, Dropped, Failure, OnDisk, SinkCounts,
    batch_ages::{BatchAges, Second},
    message,
};
use crate::{
    Ack, Problem,
    clock::{self, Instant},
    disk::{Lease, RecordCounts},
};

/// The counts of one sink under one lock, so that every snapshot is consistent.
#[derive(Debug)]
pub(crate) struct Account {
    name: String,
    number: u64,
    state: Mutex<AccountState>,
    /// Whether the sink was removed while the pipeline runs: sources do not send its losses again.
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
    /// The ack, held until the items are settled.
    ack: Option<Arc<Ack>>,
    /// The location of the items: a record of the disk queue, or the second in which a batch in memory was accepted.
    storage: Storage,
}

/// The location of the items of a ticket.
#[derive(Clone, Debug)]
enum Storage {
    Memory(Second),
    Disk(Arc<Lease>),
}

/// The level of a disk queue, except for its items.
#[derive(Clone, Debug)]
pub(crate) struct StoredLevel {
    pub(crate) folder: PathBuf,
    /// The number of batches to send.
    pub(crate) batches: u64,
    /// The size of these batches in bytes.
    pub(crate) bytes: u64,
    /// The size of the files in bytes.
    pub(crate) file_bytes: u64,
    /// The time at which the oldest batch was accepted, since 1970-01-01 UTC.
    pub(crate) oldest: Option<Duration>,
}

#[derive(Debug, Default)]
struct AccountState {
    accepted: u64,
    delivered: u64,
    queued: u64,
    queued_batches: u64,
    queued_bytes: u64,
    ages: BatchAges,
    /// The number of unsettled items in the disk queue.
    stored: u64,
    /// The number of stored items that are being sent.
    leased: u64,
    level: Option<StoredLevel>,
    disk_failure: Option<Failure>,
    /// The account of the sink that owns the disk queue now, if it is another sink.
    successor: Option<Arc<Account>>,
    /// The signals that the receiver has accepted at least once.
    supported: Signals,
    /// The losses, by reason and signal.
    dropped: [[Loss; Signal::ALL.len()]; DropReason::ALL.len()],
    retries: MessageCounter,
    warnings: MessageCounter,
    failure: Option<Failure>,
}

#[derive(Debug, Default)]
struct Loss {
    items: u64,
    message: Option<String>,
}

#[derive(Debug, Default)]
struct MessageCounter {
    count: u64,
    message: Option<String>,
}

impl Account {
    pub(crate) fn new(name: impl Into<String>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            name: name.into(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::default(),
            is_leaving: AtomicBool::new(false),
        })
    }

    /// Returns the name of the sink.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Counts the items of a batch as accepted, and as queued until the ticket is settled.
    pub(crate) fn accept(self: &Arc<Self>, signal: Signal, items: u32, bytes: usize) -> Ticket {
        let (items, bytes) = (u64::from(items), bytes as u64);
        let mut state = self.state();
        state.accepted += items;
        state.queued += items;
        state.queued_batches += 1;
        state.queued_bytes += bytes;
        let second = state.ages.accept();
        Ticket {
            account: Arc::clone(self),
            signal,
            items,
            bytes,
            is_settled: false,
            ack: None,
            storage: Storage::Memory(second),
        }
    }

    /// Counts items that are in the disk queue as accepted.
    pub(crate) fn accept_stored(&self, items: u64) {
        let mut state = self.state();
        if let Some(successor) = state.successor.clone() {
            drop(state);
            return successor.accept_stored(items);
        }
        state.accepted += items;
        state.stored += items;
    }

    /// Counts items of the disk queue that cannot be read as lost.
    pub(crate) fn lose_stored(&self, lost: RecordCounts, problem: impl Into<Problem>) {
        let mut state = self.state();
        if let Some(successor) = state.successor.clone() {
            drop(state);
            return successor.lose_stored(lost, problem);
        }
        let problem = problem.into();
        for (signal, items) in Signal::ALL.into_iter().zip(lost.items) {
            let items = items.min(state.stored - state.leased);
            state.stored -= items;
            state.lose(DropReason::Unreadable, signal, items, &problem);
        }
    }

    /// Moves the items of the disk queue to the account of the sink that owns the queue now. Items that are being sent
    /// are moved when they are returned.
    pub(crate) fn move_stored(&self, successor: &Arc<Self>) {
        let mut state = self.state();
        let items = state.stored - state.leased;
        state.stored -= items;
        state.accepted -= items;
        let level = state.level.take();
        state.successor = Some(Arc::clone(successor));
        drop(state);
        if let Some(level) = level {
            successor.record_stored(level);
        }
        successor.accept_stored(items);
    }

    /// Records the level of the disk queue.
    pub(crate) fn record_stored(&self, level: StoredLevel) {
        self.state().level = Some(level);
    }

    /// Records the start and the problem of a failure of the disk queue, or `None` when the disk works.
    pub(crate) fn report_disk_failure(&self, failure: Option<(Instant, &Problem)>) {
        self.state().disk_failure = failure.map(|(since, problem)| Failure {
            since,
            problem: message::bounded_parts(problem),
        });
    }

    /// Returns a ticket for the next record of the disk queue to send, in the account that counts the record.
    pub(crate) fn lease(self: &Arc<Self>, signal: Signal, items: u32, bytes: usize, lease: Lease) -> Ticket {
        let mut state = self.state();
        if let Some(successor) = state.successor.clone() {
            drop(state);
            return successor.lease(signal, items, bytes, lease);
        }
        let items = u64::from(items);
        state.leased += items;
        drop(state);
        lease.begin();
        Ticket {
            account: Arc::clone(self),
            signal,
            items,
            bytes: bytes as u64,
            is_settled: false,
            ack: None,
            storage: Storage::Disk(Arc::new(lease)),
        }
    }

    /// Records that the sink was removed while the pipeline runs.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Records that the sink asked for a retry.
    pub(crate) fn report_retry(&self, problem: impl Into<Problem>) {
        let (problem, mut state) = (problem.into(), self.state());
        state.retries.record(&problem);
        state.fail(&problem);
    }

    /// Records a warning of the receiver, which accepted all items.
    pub(crate) fn report_warning(&self, problem: impl Into<Problem>) {
        self.state().warnings.record(&problem.into());
    }

    pub(crate) fn counts(&self) -> SinkCounts {
        let state = self.state();
        SinkCounts {
            name: self.name.clone(),
            account: self.number,
            accepted: state.accepted,
            delivered: state.delivered,
            supported: state.supported,
            queued: state.queued,
            queued_batches: state.queued_batches,
            queued_bytes: state.queued_bytes,
            oldest_age: state.ages.oldest_age(),
            on_disk: state.on_disk(),
            dropped: state.losses(),
            retries: state.retries.count,
            retry_message: state.retries.message.clone(),
            failure: state.failure.clone(),
            warnings: state.warnings.count,
            warning_message: state.warnings.message.clone(),
        }
    }

    /// Returns the age of the oldest batch in memory, with a resolution of a second, or `None` without a batch.
    pub(crate) fn oldest_age(&self) -> Option<Duration> {
        self.state().ages.oldest_age()
    }

    /// Locks the counts; no code panics while the lock is held.
    fn state(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Sets the ack, which receives the outcome of the items.
    pub(crate) fn with_ack(mut self, ack: Option<Arc<Ack>>) -> Self {
        self.ack = ack;
        self
    }

    /// Removes the ack, for the ticket of the successor.
    pub(crate) fn take_ack(&mut self) -> Option<Arc<Ack>> {
        self.ack.take()
    }

    /// Counts all items as delivered, except for `rejected`, which are dropped.
    pub(crate) fn deliver_except(mut self, rejected: u64, problem: impl Into<Problem>) {
        let (items, problem) = (self.settle(), problem.into());
        let rejected = rejected.min(items);
        let mut state = self.account.state();
        state.settle(items, self.bytes, &self.storage);
        state.delivered += items - rejected;
        if rejected == 0 || rejected < items {
            state.failure = None;
        } else {
            state.fail(&problem);
        }
        state.supported.insert(self.signal);
        state.lose(DropReason::Rejected, self.signal, rejected, &problem);
    }

    /// Removes all items from this account, because the account of another sink has accepted them.
    pub(crate) fn hand_over(mut self) {
        let items = self.settle();
        let mut state = self.account.state();
        state.settle(items, self.bytes, &self.storage);
        state.accepted -= items;
    }

    /// Counts the items as stored in the disk queue. Returns the ack, which may have to wait for a sync.
    pub(crate) fn store(mut self) -> Option<Arc<Ack>> {
        let items = self.settle();
        let mut state = self.account.state();
        state.settle(items, self.bytes, &self.storage);
        match state.successor.clone() {
            // The sum changes in one step, so that no reader sees the accepted items decrease.
            None => state.stored += items,
            Some(successor) => {
                state.accepted -= items;
                drop(state);
                successor.accept_stored(items);
            }
        }
        self.ack.take()
    }

    /// Returns whether the items are in the disk queue.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.storage, Storage::Disk(_))
    }

    /// Moves these items and bytes to another ticket, because their batch is sent in parts.
    pub(crate) fn split_off(&mut self, items: u32, bytes: usize) -> Self {
        let items = u64::from(items).min(self.items);
        let bytes = (bytes as u64).min(self.bytes);
        self.items -= items;
        self.bytes -= bytes;
        if let Storage::Memory(second) = self.storage {
            let mut state = self.account.state();
            state.queued_batches += 1;
            state.ages.accept_again(second);
        }
        Self {
            account: Arc::clone(&self.account),
            signal: self.signal,
            items,
            bytes,
            is_settled: false,
            ack: self.ack.clone(),
            storage: self.storage.clone(),
        }
    }

    /// Counts all items as dropped.
    pub(crate) fn lose(mut self, reason: DropReason, problem: impl Into<Problem>) {
        self.settle_lost(reason, &problem.into());
    }

    fn settle(&mut self) -> u64 {
        self.is_settled = true;
        if let Storage::Disk(lease) = &self.storage {
            lease.settle(self.items);
        }
        self.items
    }

    /// Leaves the items in the disk queue.
    fn leave_stored(&mut self, lease: &Lease) {
        self.is_settled = true;
        let mut state = self.account.state();
        state.leased -= self.items;
        if let Some(successor) = state.successor.clone() {
            state.stored -= self.items;
            state.accepted -= self.items;
            drop(state);
            successor.accept_stored(self.items);
        }
        lease.give_back();
    }

    fn settle_lost(&mut self, reason: DropReason, problem: &Problem) {
        let items = self.settle();
        let mut state = self.account.state();
        state.settle(items, self.bytes, &self.storage);
        state.lose(reason, self.signal, items, problem);
        let is_failure = match reason {
            DropReason::Refused | DropReason::SinkPanicked => true,
            // A receiver that supports another signal works.
            DropReason::UnsupportedSignal => state.supported.is_empty(),
            _ => false,
        };
        if is_failure {
            state.fail(problem);
        }
        drop(state);
        let is_cut_off = reason.is_caused_by_shutdown() && !self.account.is_leaving.load(Ordering::Relaxed);
        if let Some(ack) = self.ack.take().filter(|_| is_cut_off) {
            ack.cut_off();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        match self.storage.clone() {
            Storage::Disk(lease) => self.leave_stored(&lease),
            Storage::Memory(_) => self.settle_lost(DropReason::Abandoned, &Problem::default()),
        }
    }
}

impl AccountState {
    /// Removes the items of one batch from the queued items, or from those of the disk queue.
    fn settle(&mut self, items: u64, bytes: u64, storage: &Storage) {
        let Storage::Memory(second) = storage else {
            self.stored -= items;
            self.leased -= items;
            return;
        };
        self.ages.settle(*second);
        self.queued -= items;
        self.queued_batches -= 1;
        self.queued_bytes -= bytes;
    }

    fn on_disk(&self) -> Option<OnDisk> {
        let level = self.level.as_ref().filter(|_| self.successor.is_none())?;
        Some(OnDisk {
            folder: level.folder.clone(),
            items: self.stored,
            batches: level.batches,
            bytes: level.bytes,
            file_bytes: level.file_bytes,
            oldest_age: level
                .oldest
                .map(|oldest| clock::unix_now().saturating_sub(oldest)),
            failure: self.disk_failure.clone(),
        })
    }

    fn lose(&mut self, reason: DropReason, signal: Signal, items: u64, problem: &Problem) {
        let loss = &mut self.dropped[reason as usize][signal as usize];
        loss.items += items;
        if items > 0
            && let Some(message) = message::bounded(&problem.to_string())
        {
            loss.message = Some(message);
        }
    }

    /// Records a failed delivery.
    fn fail(&mut self, problem: &Problem) {
        let since = self
            .failure
            .take()
            .map_or_else(clock::now, |failure| failure.since);
        let problem = message::bounded_parts(problem);
        self.failure = Some(Failure { since, problem });
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

impl MessageCounter {
    fn record(&mut self, problem: &Problem) {
        self.count += 1;
        self.message = message::bounded(&problem.to_string());
    }
}
