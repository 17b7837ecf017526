//! The thread that does all I/O of one disk queue, so that a hanging file system blocks nothing else.
//!
//! The thread works in passes: finish and return records that were sent, append new batches, sync, confirm, read for the
//! sink, save the cursor. The work of a pass stays in the fields of the thread until it is done, so that a panic loses
//! none of it.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use super::{
    DiskQueueConfig, Notice, Position, RecordCounts, SegmentLog, SyncPolicy,
    disk_budget::DiskBudget,
    inbox::{Append, Inbox, IoState, Leased, Read, Request, Work},
    lease::Lease,
};
use crate::{
    Ack, DropReason, Problem,
    clock::{self, Instant},
    ledger::{Account, StoredLevel},
    panic,
};

#[cfg(test)]
mod tests;

/// The size in bytes of one read for a sink.
const READ_BYTES: u64 = 1 << 20;
const READ_RECORDS: usize = 256;

/// The maximum time from a change until the cursor is written.
const CURSOR_INTERVAL: Duration = Duration::from_millis(100);

/// The backoff of a failed write: the first interval and the longest one.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// The state of the thread.
pub(super) struct IoThread {
    log: SegmentLog,
    inbox: Arc<Inbox>,
    room: Arc<DiskBudget>,
    config: DiskQueueConfig,
    report: Box<dyn Fn(&Notice) + Send>,
    account: Option<Arc<Account>>,
    /// The batches that are not appended yet.
    pending: VecDeque<Append>,
    /// The batches that are in the log and not confirmed yet.
    appended: VecDeque<(Position, Append)>,
    finished: Vec<Position>,
    /// The returned records, with the counts of each.
    returned: Vec<(Position, RecordCounts)>,
    request: Option<Request>,
    /// The acks of the batches that were appended since the last sync.
    unsynced: Vec<(Position, Arc<Ack>)>,
    /// The acks of the batches that a failed sync may not have written; each is settled when its batch is sent.
    unsafe_receipts: Vec<(Position, Arc<Ack>)>,
    failure: Option<Failure>,
    /// The running operation, which shows what a panic interrupted.
    operation: Operation,
    next_sync: Option<Instant>,
    next_cursor: Option<Instant>,
    is_stopping: bool,
}

/// The failure of a disk.
struct Failure {
    /// The operations that failed and have not succeeded since.
    operations: BTreeSet<Operation>,
    /// The first problem.
    problem: Problem,
    since: Instant,
    wait: Duration,
    next_try: Instant,
}

/// A disk operation whose success ends its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    /// The creation of the folder after it was deleted.
    Reopen,
    Append,
    Read,
    SaveCursor,
    /// Every other part of a pass; it can only fail by a panic.
    Other,
}

impl IoThread {
    pub(super) fn new(
        log: SegmentLog,
        inbox: Arc<Inbox>,
        room: Arc<DiskBudget>,
        config: DiskQueueConfig,
        report: Box<dyn Fn(&Notice) + Send>,
    ) -> Self {
        Self {
            log,
            inbox,
            room,
            config,
            report,
            account: None,
            pending: VecDeque::new(),
            appended: VecDeque::new(),
            finished: Vec::new(),
            returned: Vec::new(),
            request: None,
            unsynced: Vec::new(),
            unsafe_receipts: Vec::new(),
            failure: None,
            operation: Operation::Other,
            next_sync: None,
            next_cursor: None,
            is_stopping: false,
        }
    }

    /// Runs until it is stopped. A panic counts as a failure of the disk: nothing in memory is lost, and the operation
    /// that panicked is retried.
    pub(super) fn run(mut self) {
        while !self.is_stopping {
            let work = self.inbox.wait(self.patience(), self.io_state());
            self.accept(work);
            self.catch_panic(Self::pass);
        }
        self.end();
    }

    fn accept(&mut self, work: Work) {
        self.is_stopping = work.is_stopping;
        if let Some(config) = work.config {
            self.config = config;
        }
        if let Some(account) = work.account {
            self.account = Some(account);
            self.report_failure();
        }
        self.request = work.request.or(self.request.take());
        self.finished.extend(work.finished);
        self.returned.extend(work.returned);
        self.pending.extend(work.appends);
    }

    fn catch_panic(&mut self, work: impl FnOnce(&mut Self)) {
        self.operation = Operation::Other;
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(self))) else {
            return self.succeeded(Operation::Other);
        };
        // The record that was being appended may be in the file in part.
        self.log.seal();
        let what = format!(
            "the disk queue {} {}, which is a defect of this program: please report it",
            self.config.folder.display(),
            panic::problem(&*panic)
        );
        self.failed(self.operation, Problem::new(what));
    }

    fn pass(&mut self) {
        let now = clock::now();
        if !self.finished.is_empty() || !self.returned.is_empty() {
            self.next_cursor.get_or_insert(clock::later(now, CURSOR_INTERVAL));
        }
        while let Some(position) = self.finished.pop() {
            self.unsafe_receipts.retain(|(of, _)| *of != position);
            self.log.finish(position);
        }
        while let Some((position, counts)) = self.returned.pop() {
            if !self.log.give_back(position)
                && let Some(account) = &self.account
            {
                account.lose_stored(counts, "its segment was deleted while it was being sent");
            }
        }
        if self.is_due() {
            self.append();
        }
        self.settle(now);
        if self.next_sync.is_some_and(|at| at <= now) {
            self.sync();
        }
        self.read();
        if self.next_cursor.is_some_and(|at| at <= now) {
            self.save_cursor();
        }
        self.operation = Operation::Other;
        self.publish();
    }

    /// Returns the wait until the next timed work is due.
    fn patience(&self) -> Option<Duration> {
        // A read is retried for a waiting sink, and the cursor at its own time.
        let is_waiting = |operation: &Operation| match operation {
            Operation::Read => self.request.is_some(),
            Operation::SaveCursor => false,
            Operation::Reopen | Operation::Append | Operation::Other => true,
        };
        let failure = (self.failure.as_ref()).filter(|failure| failure.operations.iter().any(is_waiting));
        let retry = failure.map(|failure| failure.next_try);
        let due = [self.next_sync, self.next_cursor, retry]
            .into_iter()
            .flatten()
            .min()?;
        Some(due.saturating_duration_since(clock::now()))
    }

    fn io_state(&self) -> IoState {
        IoState {
            has_unread: self.log.has_unread(),
            will_save_cursor: self.next_cursor.is_some(),
        }
    }

    /// Returns whether the disk may be used: always, or only after the backoff if it failed.
    fn is_due(&self) -> bool {
        self.is_stopping || (self.failure.as_ref()).is_none_or(|failure| failure.next_try <= clock::now())
    }

    /// Appends the pending batches in order, until the disk rejects one.
    fn append(&mut self) {
        if self.pending.is_empty() && self.failure.is_none() {
            return;
        }
        self.operation = Operation::Reopen;
        if self.log.is_gone()
            && let Err(error) = self.log.reopen()
        {
            return self.failed(Operation::Reopen, error.problem());
        }
        self.succeeded(Operation::Reopen);
        self.operation = Operation::Append;
        let has_pending = !self.pending.is_empty();
        while let Some(append) = self.pending.front() {
            match self.log.append(&append.record) {
                Ok(position) => {
                    let append = self.pending.pop_front();
                    self.appended.extend(append.map(|append| (position, append)));
                }
                Err(error) => {
                    return self.failed(Operation::Append, self.problem("write to", &error));
                }
            }
        }
        if has_pending {
            let due = clock::later(clock::now(), CURSOR_INTERVAL);
            self.next_cursor.get_or_insert(due);
            self.succeeded(Operation::Append);
        }
    }

    /// Confirms the appended batches now, or after the next sync.
    fn settle(&mut self, now: Instant) {
        if self.appended.is_empty() {
            return;
        }
        self.operation = Operation::Other;
        let mut is_held = true;
        if self.config.sync == SyncPolicy::Always {
            is_held = self.sync();
        }
        while let Some((position, append)) = self.appended.pop_front() {
            append.permit.store(&self.room);
            let ack = append.ticket.store().map(|ack| (position, ack));
            match self.config.sync {
                SyncPolicy::Always if !is_held => self.unsafe_receipts.extend(ack),
                SyncPolicy::Interval(interval) => {
                    self.next_sync.get_or_insert(clock::later(now, interval));
                    self.unsynced.extend(ack);
                }
                SyncPolicy::Always | SyncPolicy::Never => {}
            }
            if let Some(confirmation) = append.confirmation.filter(|_| is_held) {
                // The client may have disconnected.
                let _ = confirmation.send(());
            }
        }
        if self.config.sync == SyncPolicy::Never {
            self.log.skip_sync();
        }
    }

    /// Syncs, and settles the acks that waited for the sync. Returns `false` if the sync fails.
    fn sync(&mut self) -> bool {
        self.operation = Operation::Other;
        let synced = self.log.sync();
        self.next_sync = None;
        if let Err(error) = &synced {
            let problem = self.problem("write to", error);
            self.unsafe_receipts.append(&mut self.unsynced);
            self.report(&Notice::NotSynced {
                path: self.config.folder.clone(),
                problem,
            });
        }
        self.unsynced.clear();
        synced.is_ok()
    }

    /// Reads for the sink if it waits for records.
    fn read(&mut self) {
        self.operation = Operation::Read;
        self.request.take_if(|request| request.answer.is_closed());
        let is_failing =
            (self.failure.as_ref()).is_some_and(|failure| failure.operations.contains(&Operation::Read));
        let Some(request) = &self.request else {
            return;
        };
        if is_failing && !self.is_due() {
            return;
        }
        let (account, is_closed) = (Arc::clone(&request.account), request.is_closed());
        let (mut read, mut bytes, mut has_failed) = (Vec::new(), 0, false);
        while bytes < READ_BYTES && read.len() < READ_RECORDS {
            match self.log.next() {
                Ok(Some(stored)) => {
                    bytes += stored.record.bytes.len() as u64;
                    let lease = Lease::new(
                        Arc::clone(&self.inbox),
                        stored.position,
                        stored.record.counts(),
                        Arc::clone(&account),
                    );
                    read.push(Leased {
                        record: stored.record,
                        lease,
                    });
                }
                Ok(None) => break,
                Err(error) => {
                    self.failed(Operation::Read, self.problem("read", &error));
                    has_failed = true;
                    break;
                }
            }
        }
        if !has_failed {
            self.succeeded(Operation::Read);
        }
        let is_end = is_closed && self.pending.is_empty() && !has_failed;
        if (!read.is_empty() || is_end || self.is_stopping)
            && let Some(request) = self.request.take()
        {
            // If the sink is gone, dropping the records returns them.
            let is_last = !self.log.has_unread();
            let _ = request.answer.send(Read {
                records: read,
                is_last,
            });
        }
    }

    /// Saves the cursor, and retries later if that fails.
    fn save_cursor(&mut self) {
        self.operation = Operation::SaveCursor;
        match self.log.save_cursor() {
            Ok(()) => {
                self.next_cursor = None;
                self.succeeded(Operation::SaveCursor);
            }
            Err(error) => self.failed(Operation::SaveCursor, self.problem("write to", &error)),
        }
    }

    /// Publishes the level of the queue.
    fn publish(&mut self) {
        let contents = self.log.contents();
        self.room.set_stored(contents.file_bytes);
        let notices = self.log.take_notices();
        if !notices.is_empty() {
            // The cursor has the losses, so that the next start does not count them again; and it frees their segments.
            let due = clock::later(clock::now(), CURSOR_INTERVAL);
            self.next_cursor.get_or_insert(due);
        }
        if let Some(account) = &self.account {
            account.record_stored(StoredLevel {
                folder: self.config.folder.clone(),
                batches: contents.records,
                bytes: contents.bytes,
                file_bytes: contents.file_bytes,
                oldest: self.log.oldest(),
            });
            for notice in &notices {
                account.lose_stored(notice.lost(), notice.to_string());
            }
        }
        notices.iter().for_each(|notice| self.report(notice));
    }

    /// Records that an operation failed: the queue has no room until the operation succeeds. The first failure is
    /// reported.
    fn failed(&mut self, operation: Operation, problem: Problem) {
        let now = clock::now();
        let is_new = self.failure.is_none();
        let failure = self.failure.get_or_insert_with(|| Failure {
            operations: BTreeSet::new(),
            problem: problem.clone(),
            since: now,
            wait: FIRST_RETRY / 2,
            next_try: now,
        });
        failure.operations.insert(operation);
        if failure.next_try <= now {
            failure.wait = (failure.wait * 2).min(LAST_RETRY);
            failure.next_try = clock::later(now, failure.wait);
        }
        let next_try = failure.next_try;
        self.next_sync = self.next_sync.map(|at| at.max(next_try));
        if operation == Operation::SaveCursor {
            self.next_cursor = Some(next_try);
        }
        if is_new {
            self.room.set_stalled(true);
            self.report_failure();
            self.report(&Notice::Stalled { problem });
        }
    }

    /// Records that an operation succeeded. When no other operation fails, the queue has room again and this is reported.
    fn succeeded(&mut self, operation: Operation) {
        let Some(failure) = &mut self.failure else {
            return;
        };
        failure.operations.remove(&operation);
        if failure.operations.is_empty() {
            self.failure = None;
            self.room.set_stalled(false);
            self.report_failure();
            self.report(&Notice::Resumed {
                path: self.config.folder.clone(),
            });
        }
    }

    /// Sets or clears the failure in the counts of the sink.
    fn report_failure(&self) {
        if let Some(account) = &self.account {
            let failure = self.failure.as_ref();
            account.report_disk_failure(failure.map(|failure| (failure.since, &failure.problem)));
        }
    }

    /// Reports a notice. A panic of the listener is not a failure of the disk.
    fn report(&self, notice: &Notice) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.report)(notice)));
    }

    fn problem(&self, action: &str, error: &io::Error) -> Problem {
        let folder = self.config.folder.display();
        Problem::new(format!("cannot {action} the disk queue {folder}: {error}"))
            .with_remedy(super::error::remedy(error))
    }

    /// Runs the last pass: batches that cannot be written now are lost.
    fn end(mut self) {
        let work = self.inbox.wait(Some(Duration::ZERO), IoState::default());
        self.accept(work);
        self.catch_panic(Self::pass);
        for append in std::mem::take(&mut self.pending) {
            append.ticket.lose(
                DropReason::DrainDeadline,
                "it could not be written to the disk queue",
            );
        }
        self.catch_panic(|thread| {
            if thread.config.sync != SyncPolicy::Never {
                thread.sync();
            }
            thread.save_cursor();
            thread.publish();
        });
        // The source replays the batches that may not be on the disk.
        for (_, ack) in &self.unsafe_receipts {
            ack.cut_off();
        }
    }
}
