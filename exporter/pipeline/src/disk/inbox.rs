//! The inbox of the thread that does the I/O of a disk queue. Whatever arrives during one pass is done in the next one, which
//! makes one `fsync` of many.

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
    /// Something changed that the other fields do not show.
    is_woken: bool,
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
    pub(super) answer: oneshot::Sender<Vec<Leased>>,
    /// Whether the queue of the sink is closed.
    pub(super) is_closed: Arc<AtomicBool>,
    pub(super) account: Arc<Account>,
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
        self.notify(work);
    }

    pub(super) fn finish(&self, position: Position) {
        let mut work = self.work();
        work.finished.push(position);
        self.notify(work);
    }

    pub(super) fn give_back(&self, position: Position, items: u64) {
        let mut work = self.work();
        work.returned.push((position, items));
        self.notify(work);
    }

    /// Asks for records. A queue that is stopping drops the request, which is its end.
    pub(super) fn request(&self, request: Request) {
        let mut work = self.work();
        if work.is_stopping {
            return;
        }
        work.request = Some(request);
        self.notify(work);
    }

    pub(super) fn configure(&self, config: DiskQueueConfig) {
        let mut work = self.work();
        work.config = Some(config);
        self.notify(work);
    }

    pub(super) fn attach(&self, account: Arc<Account>) {
        let mut work = self.work();
        work.account = Some(account);
        self.notify(work);
    }

    pub(super) fn wake(&self) {
        let mut work = self.work();
        work.is_woken = true;
        self.notify(work);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.work().is_stopping
    }

    /// Ends the thread after a last pass.
    pub(super) fn stop(&self) {
        let mut work = self.work();
        work.is_stopping = true;
        self.notify(work);
    }

    /// Waits for work, but no longer than this, and takes all of it.
    pub(super) fn wait(&self, patience: Option<Duration>) -> Work {
        let is_idle = |work: &mut Work| !work.is_stopping && work.is_idle();
        let mut work = match patience {
            Some(patience) => {
                let waited = self.changed.wait_timeout_while(self.work(), patience, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => (self.changed.wait_while(self.work(), is_idle)).unwrap_or_else(PoisonError::into_inner),
        };
        let is_stopping = work.is_stopping;
        let taken = mem::take(&mut *work);
        work.is_stopping = is_stopping;
        taken
    }

    /// The work; nothing panics while it is locked.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, work: MutexGuard<'_, Work>) {
        drop(work);
        self.changed.notify_one();
    }
}

impl Work {
    fn is_idle(&self) -> bool {
        self.appends.is_empty()
            && self.finished.is_empty()
            && self.returned.is_empty()
            && self.request.is_none()
            && self.config.is_none()
            && self.account.is_none()
            && !self.is_woken
    }
}

impl Request {
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}
