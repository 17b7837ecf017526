//! The handle of a disk queue, and the receiver of its sink.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedMutexGuard, oneshot, watch},
    time::{sleep_until, timeout_at},
};

use super::{
    DiskQueueConfig, DiskQueueError, Notice, RecordCounts, SegmentLog,
    disk_budget::DiskBudget,
    inbox::{Append, Inbox, IoState, Leased, Read, Request},
    record::Record,
    thread::IoThread,
};
use crate::{
    Batch, Problem,
    clock::{self, Instant},
    ledger::{Account, StoredLevel, Ticket},
    queue::QueuePermit,
};

/// The time between two reads for a sink that has caught up, so that a read has many records and becomes one request.
/// Records in the files are safe, and no source waits for their delivery.
const READ_INTERVAL: Duration = Duration::from_millis(10);
/// The size in bytes at which a read makes a large enough request, so that the next read need not wait.
const LARGE_READ: usize = 32 << 10;

/// An open queue on disk; clones share it. A sink closes its queue when it ends, unless another sink has been attached to
/// the queue or will be ([`keep_open`](Self::keep_open)). The queue also closes when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct DiskQueue(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    inbox: Arc<Inbox>,
    room: Arc<DiskBudget>,
    config: Mutex<DiskQueueConfig>,
    /// The contents of the folder when it was opened, until the first sink counts them.
    found: Mutex<RecoveredQueue>,
    owner: watch::Sender<Owner>,
    /// The lock of the sink that reads. The next sink waits until nothing of the previous one is in flight.
    read_lock: Arc<tokio::sync::Mutex<()>>,
    ended: watch::Receiver<bool>,
}

/// The sink to which a queue belongs.
#[derive(Debug, Default)]
struct Owner {
    account: Option<Arc<Account>>,
    /// Whether the queue stays open when the sink ends, because another sink is about to be attached.
    is_kept: bool,
}

/// The contents of the folder when the queue was opened.
#[derive(Debug, Default)]
pub(super) struct RecoveredQueue {
    items: u64,
    lost: RecordCounts,
    message: String,
    level: Option<StoredLevel>,
}

/// Marks a queue as ended when it is dropped.
struct Ended {
    inbox: Arc<Inbox>,
    end: watch::Sender<bool>,
}

/// The receiving half of a queue, from which a sink reads.
#[derive(Debug)]
pub(crate) struct DiskReceiver {
    queue: DiskQueue,
    account: Arc<Account>,
    read_lock: Option<OwnedMutexGuard<()>>,
    ready: VecDeque<Leased>,
    answer: Option<oneshot::Receiver<Read>>,
    /// The earliest time of the next read, while the queue is open.
    next_read: Option<Instant>,
    is_closed: Arc<AtomicBool>,
    is_over: bool,
}

impl DiskQueue {
    /// Opens the queue in a folder, and reads all stored records once to count them. `report` is called on the queue's
    /// own thread with each notice, and on the calling thread with the notices of the recovery.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be used, another process uses it, or another version of this program wrote
    /// it.
    pub fn open(
        config: DiskQueueConfig,
        report: impl Fn(&Notice) + Send + 'static,
    ) -> Result<Self, DiskQueueError> {
        let (mut log, notices) = SegmentLog::open(&config.folder, config.segment_bytes())?;
        notices.iter().for_each(&report);
        let lost = (notices.iter()).fold(RecordCounts::default(), |lost, notice| lost + notice.lost());
        let message = notices.iter().find(|notice| notice.lost().total_items() > 0);
        let level = StoredLevel {
            folder: config.folder.clone(),
            batches: log.contents().records,
            bytes: log.contents().bytes,
            file_bytes: log.contents().file_bytes,
            oldest: log.oldest(),
        };
        let found = RecoveredQueue {
            level: Some(level),
            items: log.contents().items,
            lost,
            message: message.map(Notice::to_string).unwrap_or_default(),
        };
        Self::start(log, found, config, Box::new(report))
    }

    /// Starts the thread of an open log.
    pub(super) fn start(
        log: SegmentLog,
        found: RecoveredQueue,
        config: DiskQueueConfig,
        report: Box<dyn Fn(&Notice) + Send>,
    ) -> Result<Self, DiskQueueError> {
        let (inbox, room) = (Arc::new(Inbox::default()), Arc::new(DiskBudget::new(&config)));
        room.set_stored(log.contents().file_bytes);
        let (end, ended) = watch::channel(false);
        let stopped = Arc::clone(&inbox);
        let thread = IoThread::new(log, Arc::clone(&inbox), Arc::clone(&room), config.clone(), report);
        let started = std::thread::Builder::new()
            .name("disk queue".to_owned())
            .spawn(move || {
                // The drop also runs if the thread panics: nobody appends to a queue without a thread.
                let _ended = Ended { inbox: stopped, end };
                thread.run();
            });
        started.map_err(|source| DiskQueueError::Io {
            action: "start a thread for",
            path: config.folder.clone(),
            source,
        })?;
        Ok(Self(Arc::new(Handle {
            inbox,
            room,
            config: Mutex::new(config),
            found: Mutex::new(found),
            owner: watch::Sender::default(),
            read_lock: Arc::default(),
            ended,
        })))
    }

    /// Returns the settings.
    pub fn config(&self) -> DiskQueueConfig {
        self.0
            .config
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes the maximum age and the sync policy. The folder and the size limit stay the same.
    pub fn configure(&self, new: &DiskQueueConfig) {
        let mut config = self.0.config.lock().unwrap_or_else(PoisonError::into_inner);
        config.max_age = new.max_age;
        config.sync = new.sync;
        self.0.inbox.configure(config.clone());
    }

    /// Returns whether the queue has ended or is about to: it accepts no more batches.
    pub fn is_closed(&self) -> bool {
        self.0.inbox.is_stopping()
    }

    /// Returns the age from which a batch is dropped while its sink fails.
    pub(crate) fn max_age(&self) -> Option<Duration> {
        self.config().max_age
    }

    pub(crate) fn room(&self) -> Arc<DiskBudget> {
        Arc::clone(&self.0.room)
    }

    /// Keeps the queue open when its sink ends, for a sink that is added next. Returns `false` if the queue is closed.
    pub fn keep_open(&self) -> bool {
        let mut is_open = false;
        self.0.owner.send_if_modified(|owner| {
            is_open = !self.is_closed();
            owner.is_kept = is_open;
            false
        });
        is_open
    }

    /// Waits until a closed queue has ended, so that its folder can be opened again. Returns `false` if `deadline` passes
    /// first.
    pub async fn ended(&self, deadline: Instant) -> bool {
        let mut ended = self.0.ended.clone();
        // An error means that the thread is gone.
        timeout_at(deadline, ended.wait_for(|ended| *ended)).await.is_ok()
    }

    /// Attaches the sink of `account`: it owns the queue from now on, and its account counts the stored items.
    pub(crate) fn attach(&self, account: &Arc<Account>) {
        let found = std::mem::take(&mut *self.0.found.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(level) = found.level {
            account.record_stored(level);
        }
        account.accept_stored(found.items + found.lost.total_items());
        account.lose_stored(found.lost, found.message.as_str());
        let owner = Owner {
            account: Some(Arc::clone(account)),
            is_kept: false,
        };
        if let Some(before) = self.0.owner.send_replace(owner).account {
            before.move_stored(account);
        }
        self.0.inbox.attach(Arc::clone(account));
    }

    /// Returns whether the sink of `account` owns the queue.
    pub(crate) fn belongs_to(&self, account: &Arc<Account>) -> bool {
        self.0.owner.borrow().is(account)
    }

    /// Waits until a sink other than that of `account` owns the queue.
    pub(crate) fn replaced(&self, account: &Arc<Account>) -> impl Future<Output = ()> + use<> {
        let (mut owner, account) = (self.0.owner.subscribe(), Arc::clone(account));
        async move {
            // An error means that the queue is gone.
            let _ = owner.wait_for(|owner| !owner.is(&account)).await;
        }
    }

    /// Returns the receiver of the sink of `account`.
    pub(crate) fn receiver(&self, account: Arc<Account>) -> DiskReceiver {
        DiskReceiver {
            queue: self.clone(),
            account,
            read_lock: None,
            ready: VecDeque::new(),
            answer: None,
            next_read: None,
            is_closed: Arc::default(),
            is_over: false,
        }
    }

    /// Appends a batch. `confirmation` is answered when the batch is held, and dropped when it is lost.
    pub(crate) fn append(
        &self,
        batch: &Batch,
        ticket: Ticket,
        permit: QueuePermit,
        confirmation: Option<oneshot::Sender<()>>,
    ) {
        self.0.inbox.append(Append {
            record: Record {
                signal: batch.signal(),
                items: batch.items(),
                accepted: clock::unix_now(),
                bytes: batch.bytes().clone(),
            },
            ticket,
            permit,
            confirmation,
        });
    }

    /// Closes the queue for the sink of `account`, without waiting until everything is written. Returns `false` and
    /// leaves the queue open if another sink owns it, or if it is kept open for one.
    pub(crate) fn release(&self, account: &Arc<Account>) -> bool {
        let mut is_closing = false;
        // The lock of the owner prevents that the queue is kept open in the meantime.
        self.0.owner.send_if_modified(|owner| {
            is_closing = owner.is(account) && !owner.is_kept;
            if is_closing {
                self.0.inbox.stop();
            }
            false
        });
        is_closing
    }

    /// Like [`release`](Self::release), but waits until everything is written.
    ///
    /// # Errors
    /// Returns an error if the disk did not respond before the deadline.
    pub(crate) async fn close(&self, account: &Arc<Account>, deadline: Instant) -> Result<(), Problem> {
        if !self.release(account) || self.ended(deadline).await {
            return Ok(());
        }
        let folder = &self.config().folder;
        let what = format!("the disk queue {} did not answer in time", folder.display());
        Err(Problem::new(what).with_remedy("check the disk"))
    }
}

impl Owner {
    /// Returns whether this is the sink of `account`.
    fn is(&self, account: &Arc<Account>) -> bool {
        self.account
            .as_ref()
            .is_some_and(|owner| Arc::ptr_eq(owner, account))
    }
}

/// Two handles are equal if they refer to the same queue.
impl PartialEq for DiskQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.inbox.stop();
        // After a panic, the batches that are dropped here count as abandoned.
        drop(self.inbox.wait(Some(Duration::ZERO), IoState::default()));
        self.end.send_replace(true);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inbox.stop();
    }
}

impl DiskReceiver {
    /// Returns the next record, or `None` if the queue is closed and empty. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Leased> {
        while self.ready.is_empty() && !self.is_over {
            if self.read_lock.is_none() {
                self.read_lock = Some(Arc::clone(&self.queue.0.read_lock).lock_owned().await);
            }
            if let Some(at) = self.next_read.filter(|_| !self.is_closed.load(Ordering::Acquire)) {
                sleep_until(at).await;
            }
            let answer = self.answer.get_or_insert_with(|| {
                let (answer, answered) = oneshot::channel();
                self.queue.0.inbox.request(Request {
                    answer,
                    is_closed: Arc::clone(&self.is_closed),
                    account: Arc::clone(&self.account),
                });
                answered
            });
            let read = answer.await.unwrap_or_default();
            self.accept(read);
        }
        self.ready.pop_front()
    }

    /// Returns the next record that was read already.
    pub(crate) fn try_next(&mut self) -> Option<Leased> {
        if self.ready.is_empty()
            && let Some(Ok(read)) = self.answer.as_mut().map(oneshot::Receiver::try_recv)
        {
            self.accept(read);
        }
        self.ready.pop_front()
    }

    fn accept(&mut self, Read { records, is_last }: Read) {
        self.answer = None;
        self.is_over = records.is_empty();
        let bytes: usize = records.iter().map(|leased| leased.record.bytes.len()).sum();
        let waits = is_last && bytes < LARGE_READ;
        self.next_read = waits.then(|| clock::later(clock::now(), READ_INTERVAL));
        self.ready.extend(records);
    }

    /// Makes the receiver end at the last stored record.
    pub(crate) fn close(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        self.queue.0.inbox.wake();
    }

    /// Returns whether another sink owns the queue.
    pub(crate) fn is_replaced(&self) -> bool {
        !self.queue.belongs_to(&self.account)
    }

    /// Waits until another sink owns the queue.
    pub(crate) fn replaced(&self) -> impl Future<Output = ()> + use<> {
        self.queue.replaced(&self.account)
    }

    /// Stops reading, and returns the records that were read and not sent to the log.
    pub(crate) fn stop(&mut self) {
        self.is_over = true;
        self.answer = None;
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::Signal;

    use super::*;
    use crate::{SinkRoute, SinkTaskConfig, queue::queue};

    #[tokio::test]
    async fn next_disk_read_waits_an_interval_only_after_the_last_record() {
        let folder = tempfile::tempdir().unwrap();
        let config = DiskQueueConfig::new(folder.path().join("queue"));
        let (mut log, _) = SegmentLog::open(&config.folder, config.segment_bytes()).unwrap();
        let record = Record {
            signal: Signal::Logs,
            items: 1,
            accepted: Duration::from_secs(1_700_000_000),
            bytes: vec![0x0a, 0].into(),
        };
        // One more than the records of one read.
        for _ in 0..257 {
            log.append(&record).unwrap();
        }
        let disk = DiskQueue::start(log, RecoveredQueue::default(), config, Box::new(|_| {})).unwrap();
        let config = SinkTaskConfig {
            disk: Some(disk.clone()),
            ..SinkTaskConfig::default()
        };
        let account = Account::new("sink");
        let (_sender, _) = queue(&config, SinkRoute::ALL, Arc::clone(&account));
        let mut receiver = disk.receiver(account);
        let mut leased = Vec::new();
        for _ in 0..256 {
            leased.extend(receiver.next().await);
        }
        assert_eq!((leased.len(), receiver.next_read), (256, None));
        receiver.next().await.expect("the last record");
        assert!(receiver.next_read.is_some());
    }
}
