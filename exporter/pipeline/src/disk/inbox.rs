//! The inbox of the thread that does the I/O of a disk queue. Whatever arrives during one pass is done in the next one, which
//! makes one `fsync` of many, and wakes the thread once.

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

use super::{DiskQueueConfig, Position, lease::Lease, record::Record};
use crate::{
    DropReason,
    ledger::{Account, Ticket},
    queue::QueuePermit,
};

#[cfg(test)]
mod tests;

/// Waits for work, in any number of threads, for one that does it. Its length is bounded by the permits of the batches and by
/// the batches in flight.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    work: Mutex<Work>,
    changed: Condvar,
}

/// What one pass has to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) appends: VecDeque<Append>,
    pub(super) finished: Vec<Position>,
    /// With the items of each.
    pub(super) returned: Vec<(Position, u64)>,
    pub(super) request: Option<Request>,
    pub(super) config: Option<DiskQueueConfig>,
    /// The account of the sink that the queue belongs to now.
    pub(super) account: Option<Arc<Account>>,
    /// Nothing more is accepted.
    pub(super) is_stopping: bool,
    /// The thread is to begin a pass at once.
    is_urgent: bool,
    /// The thread sleeps until it is notified, or until its next pass is due.
    is_asleep: bool,
    /// The state of the thread after its last pass.
    io_state: IoState,
}

/// The state of the thread after a pass, which decides what wakes it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IoState {
    /// There is a record to read. Otherwise a request waits for an append.
    pub(super) has_unread: bool,
    /// The cursor will be saved, and finished records wait until then.
    pub(super) will_save_cursor: bool,
}

/// A batch that is to be appended.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) record: Record,
    pub(super) ticket: Ticket,
    pub(super) permit: QueuePermit,
    /// Is answered when the batch is held as the sync policy demands; dropped when it is lost.
    pub(super) confirmation: Option<oneshot::Sender<()>>,
}

/// The wish of a sink for the next records.
#[derive(Debug)]
pub(super) struct Request {
    /// Is answered with at least one record, or with none at the end of a closed queue.
    pub(super) answer: oneshot::Sender<Read>,
    /// Whether the queue of the sink is closed.
    pub(super) is_closed: Arc<AtomicBool>,
    pub(super) account: Arc<Account>,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) records: Vec<Leased>,
    /// No more records were in the files.
    pub(super) is_last: bool,
}

/// A record with the right to send it.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) record: Record,
    pub(crate) lease: Lease,
}

impl Inbox {
    /// Hands over a batch. One that comes too late is lost.
    pub(super) fn append(&self, append: Append) {
        let mut work = self.work();
        if work.is_stopping {
            drop(work);
            return append.ticket.lose(DropReason::Closed, "");
        }
        work.appends.push_back(append);
        self.wake_for(work);
    }

    /// Notes that a record is at its end. It waits until the cursor is saved, if that is going to happen.
    pub(super) fn finish(&self, position: Position) {
        let mut work = self.work();
        work.finished.push(position);
        if !work.io_state.will_save_cursor {
            self.wake_for(work);
        }
    }

    pub(super) fn give_back(&self, position: Position, items: u64) {
        let mut work = self.work();
        work.returned.push((position, items));
        self.wake_for(work);
    }

    /// Asks for records, which waits for an append while there are none. A queue that is stopping drops the request, which is
    /// its end.
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

    /// Begins a pass.
    pub(super) fn wake(&self) {
        self.wake_for(self.work());
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.work().is_stopping
    }

    /// Ends the thread after a last pass.
    pub(super) fn stop(&self) {
        let mut work = self.work();
        work.is_stopping = true;
        self.wake_for(work);
    }

    /// Waits for work that cannot wait, but no longer than this, and takes all of it.
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

    /// The work; nothing panics while it is locked.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread begin a pass for this work. Only the first work of a pass wakes it, and only from sleep.
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
