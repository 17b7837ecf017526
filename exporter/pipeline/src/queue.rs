//! The bounded queue in front of one sink: its bounds in batches and in bytes include the batch that is being delivered.
//!
//! A [`QueuePermit`](permit) for one batch and each of its bytes travels with the batch and returns when it is settled.
//! Waiting senders are served in FIFO order. The FIFO itself is unbounded: a batch that a stage adds to a reserved one is
//! queued without a permit.
//!
//! An offered batch that finds no room evicts the oldest batches that were offered. The other batches stay: they are
//! acknowledged, or a sender waited for their room. A batch that the worker has read is not evicted either. If nothing
//! can be evicted, the offered batch is dropped. A best-effort sink is offered every batch except those of imports.
//!
//! With a [`DiskQueue`], batches go to the I/O thread of the disk queue instead of the FIFO, and the worker receives the
//! records that the thread reads. A full disk queue drops the offered batch: it frees room by the segment, and segments
//! also hold acknowledged batches.
//!
//! A source that acknowledges its batches waits for the [`Confirmation`] of each: the batch is on the disk, or, for a
//! sink with [`held_when_delivered`](SinkTaskConfig::held_when_delivered), it is delivered.

mod confirmation;
mod memory;
mod permit;
mod queued;

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pulsetrain_otlp::{Signal, Signals};
use tokio::sync::{TryAcquireError, oneshot};

pub(crate) use self::{confirmation::Confirmation, permit::QueuePermit, queued::Queued};
use self::{memory::MemoryQueue, permit::Bounds};
use crate::{
    Ack, Batch, DropReason, SinkTaskConfig, SourceId, SourceSet, clock,
    disk::{DiskQueue, DiskReceiver, Leased},
    ledger::{Account, Ticket},
};

/// The resolution of the age of the oldest batch.
const AGE_RESOLUTION: Duration = Duration::from_secs(1);

/// The bounds of the queue in front of one sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The maximum number of batches; zero counts as one.
    pub max_batches: usize,
    /// The maximum number of payload bytes. A batch that alone exceeds it is dropped as [`DropReason::TooLarge`].
    pub max_bytes: usize,
}

impl Default for QueueConfig {
    /// Returns 1000 batches, as in the Collector's sending queue, and 64 MiB.
    fn default() -> Self {
        Self {
            max_batches: 1000,
            max_bytes: 64 << 20,
        }
    }
}

/// Whether a sink may block the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The data must arrive: a full queue pushes back on the sources, and acks wait for the sink.
    Required,
    /// A full queue drops its oldest batches and counts them; no source waits for the sink.
    BestEffort,
}

/// The batches that a sink receives, and whether sources wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkRoute {
    /// The signals that it accepts.
    pub signals: Signals,
    /// The sources whose batches the sink receives. The account of the sink does not count batches of other sources.
    pub sources: SourceSet,
    /// Whether the sink may block the sources.
    pub requirement: Requirement,
}

impl SinkRoute {
    /// Every batch of every source, which waits for the sink.
    pub const ALL: Self = Self {
        signals: Signals::ALL,
        sources: SourceSet::All,
        requirement: Requirement::Required,
    };
}

/// The sending half of a queue, used by the ingress.
#[derive(Debug)]
pub(crate) struct QueueSender {
    account: Arc<Account>,
    bounds: Arc<Bounds>,
    channel: Sender,
    route: SinkRoute,
    /// Whether a batch in memory is held only when it is delivered.
    held_when_delivered: bool,
    /// Whether a sender waited for room in vain, and the queue has been full since.
    is_lagging: AtomicBool,
}

/// The receiving half of a queue, used by the worker. Dropping it closes the queue.
#[derive(Debug)]
pub(crate) struct QueueReceiver {
    bounds: Arc<Bounds>,
    account: Arc<Account>,
    channel: Receiver,
}

#[derive(Debug)]
enum Sender {
    Memory(Arc<MemoryQueue>),
    Disk(DiskQueue),
}

#[derive(Debug)]
enum Receiver {
    Memory(Arc<MemoryQueue>),
    Disk(DiskReceiver),
}

/// A batch that found no room, with its ticket.
#[derive(Debug)]
pub(crate) struct UnqueuedBatch {
    batch: Batch,
    ticket: Ticket,
    bytes: u32,
}

/// Creates the queue in front of the sink of `account`.
pub(crate) fn queue(
    config: &SinkTaskConfig,
    route: SinkRoute,
    account: Arc<Account>,
) -> (QueueSender, QueueReceiver) {
    let disk = config.disk.as_ref();
    let bounds = Arc::new(Bounds::new(config.queue, disk.map(DiskQueue::room)));
    let (batch_sender, batch_receiver) = match disk {
        Some(disk) => {
            disk.attach(&account);
            let receiver = disk.receiver(Arc::clone(&account));
            (Sender::Disk(disk.clone()), Receiver::Disk(receiver))
        }
        None => {
            let memory = Arc::<MemoryQueue>::default();
            (Sender::Memory(Arc::clone(&memory)), Receiver::Memory(memory))
        }
    };
    let receiver = QueueReceiver {
        bounds: Arc::clone(&bounds),
        account: Arc::clone(&account),
        channel: batch_receiver,
    };
    let sender = QueueSender {
        account,
        bounds,
        channel: batch_sender,
        route,
        held_when_delivered: config.held_when_delivered,
        is_lagging: AtomicBool::default(),
    };
    (sender, receiver)
}

impl QueueSender {
    /// Returns whether the sink accepts batches of this signal from this source.
    pub(crate) fn accepts(&self, signal: Signal, source: SourceId) -> bool {
        self.route.signals.contains(signal) && self.route.sources.contains(source)
    }

    /// Enqueues the batch, and drops the oldest evictable batches to make room; drops this batch if that is not enough.
    /// Never waits.
    pub(crate) fn try_send_or_drop(&self, batch: Batch) {
        let Err(UnqueuedBatch { batch, ticket, bytes }) = self.try_enqueue(batch, true) else {
            return;
        };
        let evicted = match &self.channel {
            Sender::Memory(memory) => memory.evict(bytes, &self.bounds),
            Sender::Disk(_) => None,
        };
        let Some((evicted, permit)) = evicted else {
            return ticket.lose(DropReason::QueueFull, "");
        };
        self.put(batch, ticket, permit, None, true);
        for oldest in evicted {
            oldest.lost(DropReason::QueueFull, "");
        }
    }

    /// Enqueues the batch if there is room now. A batch that is larger than the queue is dropped and counted.
    pub(crate) fn try_send(&self, batch: Batch) -> Result<(), UnqueuedBatch> {
        self.try_enqueue(batch, false)
    }

    fn try_enqueue(&self, batch: Batch, is_offered: bool) -> Result<(), UnqueuedBatch> {
        let (batch, ticket) = self.accept(batch);
        let Some(bytes) = self.bounds.permits_for(batch.bytes().len()) else {
            ticket.lose(DropReason::TooLarge, self.too_large(&batch));
            return Ok(());
        };
        match self.bounds.try_permit(1, bytes) {
            Ok(permit) => self.put(batch, ticket, permit, None, is_offered),
            Err(TryAcquireError::NoPermits) => return Err(UnqueuedBatch { batch, ticket, bytes }),
            Err(TryAcquireError::Closed) => ticket.lose(DropReason::Closed, ""),
        }
        Ok(())
    }

    /// Waits for room, and enqueues the batch.
    pub(crate) async fn enqueue_when_space(&self, waiting: UnqueuedBatch) {
        let UnqueuedBatch { batch, ticket, bytes } = waiting;
        match self.bounds.permit(1, bytes).await {
            Some(permit) => self.put(batch, ticket, permit, None, false),
            None => ticket.lose(DropReason::Closed, ""),
        }
    }

    /// Enqueues the batch with a part of a reserved permit, or without a permit if the reservation is used up. Returns
    /// the confirmation that the batch is held, unless it is held at once.
    pub(crate) fn send_reserved(
        &self,
        batch: Batch,
        reserved: Option<&mut QueuePermit>,
    ) -> Option<Confirmation> {
        match &self.channel {
            Sender::Disk(_) => {
                let (confirmation, stored) = oneshot::channel();
                self.put_reserved(batch, reserved, None, Some(confirmation));
                Some(Confirmation::Stored(stored))
            }
            Sender::Memory(_) if self.held_when_delivered && !batch.is_replayable() && !self.is_slow() => {
                let (ack, delivered) = Confirmation::of_delivery();
                self.put_reserved(batch, reserved, Some(ack), None);
                Some(delivered)
            }
            Sender::Memory(_) => {
                self.put_reserved(batch, reserved, None, None);
                None
            }
        }
    }

    /// Enqueues a batch that the predecessor of the sink could not deliver, with the ack that waits for it.
    pub(crate) fn take_over(&self, batch: Batch, ack: Option<Arc<Ack>>) {
        self.put_reserved(batch, None, ack.filter(|_| self.is_required()), None);
    }

    /// Enqueues a batch as [`send_reserved`](Self::send_reserved) does. An `ack` replaces that of the batch.
    fn put_reserved(
        &self,
        batch: Batch,
        reserved: Option<&mut QueuePermit>,
        ack: Option<Arc<Ack>>,
        confirmation: Option<oneshot::Sender<()>>,
    ) {
        let (batch, ticket) = self.accept(batch);
        let ticket = match ack {
            Some(_) => ticket.with_ack(ack),
            None => ticket,
        };
        let Some(bytes) = self.bounds.permits_for(batch.bytes().len()) else {
            // The batch is lost permanently and counted: its source does not send it again.
            confirmation.map(|confirmation| confirmation.send(()));
            return ticket.lose(DropReason::TooLarge, self.too_large(&batch));
        };
        let permit = reserved
            .and_then(|reserved| reserved.split(bytes))
            .or_else(|| self.bounds.try_permit(1, bytes).ok())
            .unwrap_or_else(|| QueuePermit::overdraft(&self.bounds));
        self.put(batch, ticket, permit, confirmation, false);
    }

    /// Returns whether the sink does not keep up, so that no source waits for its deliveries.
    fn is_slow(&self) -> bool {
        self.account
            .oldest_age()
            .is_some_and(|age| age > Confirmation::MAX_DELIVERY_WAIT + AGE_RESOLUTION)
    }

    /// Returns a permit for these batches, or `None` if there is no room now.
    pub(crate) fn try_reserve(&self, batches: u32, bytes: usize) -> Option<QueuePermit> {
        self.bounds.try_permit(batches, self.bounds.clamped(bytes)).ok()
    }

    /// Waits for a permit for these batches. Returns `None` if the queue is closed.
    pub(crate) async fn reserve(&self, batches: u32, bytes: usize) -> Option<QueuePermit> {
        self.bounds.permit(batches, self.bounds.clamped(bytes)).await
    }

    /// Returns the signals and sources that the sink receives.
    pub(crate) fn route(&self) -> &SinkRoute {
        &self.route
    }

    /// Returns whether the sink may block the sources.
    pub(crate) fn is_required(&self) -> bool {
        self.route.requirement == Requirement::Required
    }

    /// Returns whether a sender waited for room in vain, and the queue has been full since.
    pub(crate) fn is_lagging(&self) -> bool {
        self.is_lagging.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lagging(&self, is_lagging: bool) {
        self.is_lagging.store(is_lagging, Ordering::Relaxed);
    }

    /// Returns the maximum size of one batch in bytes.
    pub(crate) fn max_bytes(&self) -> usize {
        self.bounds.max_bytes
    }

    /// Closes the queue: senders that wait for room get an error, and queued batches stay.
    pub(crate) fn close(&self) {
        self.bounds.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.bounds.is_closed()
    }

    /// Counts the batch as accepted. Only a required sink holds the ack: a source does not wait for the others.
    fn accept(&self, batch: Batch) -> (Batch, Ticket) {
        let (signal, bytes) = (batch.signal(), batch.bytes().len());
        let ticket = self.account.accept(signal, batch.items(), bytes);
        if self.is_required() {
            let ack = batch.ack();
            (batch, ticket.with_ack(ack))
        } else {
            (batch.without_ack(), ticket)
        }
    }

    fn put(
        &self,
        batch: Batch,
        ticket: Ticket,
        permit: QueuePermit,
        confirmation: Option<oneshot::Sender<()>>,
        is_offered: bool,
    ) {
        match &self.channel {
            Sender::Memory(memory) => {
                let queued = Queued::new(batch, ticket, permit, clock::now()).evictable(is_offered);
                if let Some(refused) = memory.push(queued) {
                    refused.lost(DropReason::Closed, "");
                }
            }
            Sender::Disk(disk) => disk.append(&batch, ticket, permit, confirmation),
        }
    }

    fn too_large(&self, batch: &Batch) -> String {
        format!(
            "a batch of {} bytes is larger than the queue of {} bytes: raise its limit, or send smaller batches",
            batch.bytes().len(),
            self.bounds.max_bytes
        )
    }
}

impl QueueReceiver {
    /// Waits for the oldest batch. Returns `None` if the queue is closed and empty. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Queued> {
        match &mut self.channel {
            Receiver::Memory(memory) => memory.next().await,
            Receiver::Disk(disk) => {
                let leased = disk.next().await?;
                Some(self.queued(leased))
            }
        }
    }

    /// Returns the oldest batch that is in memory now.
    pub(crate) fn try_next(&mut self) -> Option<Queued> {
        match &mut self.channel {
            Receiver::Memory(memory) => memory.try_next(),
            Receiver::Disk(disk) => {
                let leased = disk.try_next()?;
                Some(self.queued(leased))
            }
        }
    }

    /// Returns a future that completes as soon as a sender found no room, or waits for room.
    pub(crate) fn space_requested(&self) -> impl Future<Output = ()> + use<> {
        let bounds = Arc::clone(&self.bounds);
        async move { bounds.space_requested().await }
    }

    /// Closes the queue; [`next`](Self::next) still returns the queued batches.
    pub(crate) fn close(&mut self) {
        self.bounds.close();
        match &mut self.channel {
            Receiver::Memory(memory) => memory.close(),
            Receiver::Disk(disk) => disk.close(),
        }
    }

    /// Stops reading from a disk queue: the remaining batches stay there.
    pub(crate) fn stop(&mut self) {
        if let Receiver::Disk(disk) = &mut self.channel {
            disk.stop();
        }
    }

    /// Returns whether another sink owns the disk queue; `false` for a queue in memory.
    pub(crate) fn is_replaced(&self) -> bool {
        matches!(&self.channel, Receiver::Disk(disk) if disk.is_replaced())
    }

    /// Waits until another sink owns the disk queue. Never completes for a queue in memory.
    pub(crate) fn replaced(&self) -> impl Future<Output = ()> + use<> {
        let replaced = match &self.channel {
            Receiver::Memory(_) => None,
            Receiver::Disk(disk) => Some(disk.replaced()),
        };
        async move {
            match replaced {
                Some(replaced) => replaced.await,
                None => pending().await,
            }
        }
    }

    fn queued(&self, Leased { record, lease }: Leased) -> Queued {
        let age = clock::unix_now().saturating_sub(record.accepted);
        let now = clock::now();
        let accepted = now.checked_sub(age).unwrap_or(now);
        let batch = Batch::new(record.signal, record.items, record.bytes);
        let ticket = (self.account).lease(batch.signal(), batch.items(), batch.bytes().len(), lease);
        // The files hold the room of the batch.
        Queued::new(batch, ticket, QueuePermit::overdraft(&self.bounds), accepted)
    }
}

impl Drop for QueueReceiver {
    fn drop(&mut self) {
        self.close();
        if let Receiver::Memory(memory) = &self.channel {
            // The batches that nobody reads count as abandoned.
            while memory.try_next().is_some() {}
        }
    }
}
