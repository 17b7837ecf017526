//! The inbox of the I/O thread of a disk queue. Work that arrives during one pass is done in the next pass, which
//! coalesces many `fsync` calls into one and wakes the thread once.

use std::{
    collections::VecDeque,
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::oneshot;

use super::{DiskQueueConfig, Position, RecordCounts, lease::Lease, record::Record};
use crate::{
    DropReason,
    ledger::{Account, Ticket},
    queue::QueuePermit,
};

#[cfg(test)]
mod tests;

/// A queue of work with any number of producers and one consumer. Its length is bounded by the permits of the batches and
/// by the batches in flight.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    work: Mutex<Work>,
    changed: Condvar,
}

/// The work of one pass.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) appends: VecDeque<Append>,
    pub(super) finished: Vec<Position>,
    /// The returned records, with the counts of each.
    pub(super) returned: Vec<(Position, RecordCounts)>,
    pub(super) request: Option<Request>,
    pub(super) config: Option<DiskQueueConfig>,
    /// The account of the sink that owns the queue now.
    pub(super) account: Option<Arc<Account>>,
    /// Whether the inbox is closed to new work.
    pub(super) is_stopping: bool,
    /// Whether the thread has to begin a pass at once.
    is_urgent: bool,
    /// Whether the thread sleeps until it is notified, or until its next pass is due.
    is_asleep: bool,
    /// The state of the thread after its last pass.
    io_state: IoState,
}

/// The state of the thread after a pass, which decides what wakes it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IoState {
    /// Whether there is a record to read. Otherwise a request waits for an append.
    pub(super) has_unread: bool,
    /// Whether the cursor will be saved; finished records wait until then.
    pub(super) will_save_cursor: bool,
}

/// A batch to append.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) record: Record,
    pub(super) ticket: Ticket,
    pub(super) permit: QueuePermit,
    /// The channel that is answered when the batch is held as the sync policy demands, and dropped when the batch is
    /// lost.
    pub(super) confirmation: Option<oneshot::Sender<()>>,
}

/// A request of a sink for the next records.
#[derive(Debug)]
pub(super) struct Request {
    /// The channel for the answer: at least one record, or none at the end of a closed queue.
    pub(super) answer: oneshot::Sender<Read>,
    /// Whether the queue of the sink is closed.
    pub(super) is_closed: Arc<AtomicBool>,
    pub(super) account: Arc<Account>,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) records: Vec<Leased>,
    /// Whether the files hold no more records.
    pub(super) is_last: bool,
}

/// A record with a lease to send it.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) record: Record,
    pub(crate) lease: Lease,
}

impl Inbox {
    /// Adds a batch. A batch that arrives after the stop is lost.
    pub(super) fn append(&self, append: Append) {
        let mut work = self.work();
        if work.is_stopping {
            drop(work);
            return append.ticket.lose(DropReason::Closed, "");
        }
        work.appends.push_back(append);
        self.wake_for(work);
    }

    /// Marks a record as finished. The mark waits until the cursor is saved, if a save is due.
    pub(super) fn finish(&self, position: Position) {
        let mut work = self.work();
        work.finished.push(position);
        if !work.io_state.will_save_cursor {
            self.wake_for(work);
        }
    }

    pub(super) fn give_back(&self, position: Position, counts: RecordCounts) {
        let mut work = self.work();
        work.returned.push((position, counts));
        self.wake_for(work);
    }

    /// Requests records. The request waits for an append if there are no records. A queue that is stopping drops the
    /// request, which ends the receiver.
    pub(super) fn request(&self, request: Request) {
        let mut work = self.work();
        if work.is_stopping {
            return;
        }
        let has_answer = work.io_state.has_unread || request.is_closed();
        work.request = Some(request);
        if has_answer {
            self.wake_for(work);
        }
    }

    pub(super) fn configure(&self, config: DiskQueueConfig) {
        let mut work = self.work();
        work.config = Some(config);
        self.wake_for(work);
    }

    pub(super) fn attach(&self, account: Arc<Account>) {
        let mut work = self.work();
        work.account = Some(account);
        self.wake_for(work);
    }

    /// Starts a pass.
    pub(super) fn wake(&self) {
        self.wake_for(self.work());
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.work().is_stopping
    }

    /// Stops the thread after a last pass.
    pub(super) fn stop(&self) {
        let mut work = self.work();
        work.is_stopping = true;
        self.wake_for(work);
    }

    /// Waits for urgent work, but no longer than `patience`, and returns all work.
    pub(super) fn wait(&self, patience: Option<Duration>, io_state: IoState) -> Work {
        let mut work = self.work();
        work.io_state = io_state;
        // Work that arrived during the pass was judged by the state before it.
        work.is_urgent |= (io_state.has_unread && work.request.is_some())
            || (!io_state.will_save_cursor && !work.finished.is_empty());
        let is_idle = |work: &mut Work| {
            work.is_asleep = !work.is_urgent && !work.is_stopping;
            work.is_asleep
        };
        let mut work = match patience {
            Some(patience) => {
                let waited = self.changed.wait_timeout_while(work, patience, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => (self.changed.wait_while(work, is_idle)).unwrap_or_else(PoisonError::into_inner),
        };
        let rest = Work {
            is_stopping: work.is_stopping,
            io_state,
            ..Work::default()
        };
        mem::replace(&mut *work, rest)
    }

    /// Locks the work; no code panics while the lock is held.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread start a pass for this work. Only the first work of a pass wakes the thread, and only if it
    /// sleeps.
    fn wake_for(&self, mut work: MutexGuard<'_, Work>) {
        work.is_urgent = true;
        let was_asleep = mem::take(&mut work.is_asleep);
        drop(work);
        if was_asleep {
            self.changed.notify_one();
        }
    }
}

impl Request {
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}
