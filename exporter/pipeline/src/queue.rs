//! The bounded queue in front of one sink: bounded in batches and in bytes, the batch in delivery included.
//!
//! A [`QueuePermit`](permit) for one batch and each of its bytes travels with the batch and returns when it is settled.
//! Waiting senders are served first come, first served. The channel itself has no bound: a batch that a stage adds to a
//! reserved one goes in without a permit.

mod permit;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pulsetrain_otlp::{Signal, Signals};
use tokio::sync::{TryAcquireError, mpsc};

use self::permit::Bounds;
pub(crate) use self::permit::QueuePermit;
use crate::{
    Batch, DropReason,
    clock::{self, Instant},
    ledger::{Account, Ticket},
};

/// How much may wait in front of one sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The most batches; zero counts as one.
    pub max_batches: usize,
    /// The most bytes of payload. A batch that is larger on its own is dropped as [`DropReason::TooLarge`].
    pub max_bytes: usize,
}

impl Default for QueueConfig {
    /// 1000 batches, as in the Collector's sending queue, and 64 MiB.
    fn default() -> Self {
        Self {
            max_batches: 1000,
            max_bytes: 64 << 20,
        }
    }
}

/// Whether a sink may hold up the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Its data must arrive: a full queue pushes back on the sources, and receipts wait for it.
    Required,
    /// A full queue drops and counts; nobody waits for it.
    BestEffort,
}

/// Which batches go to a sink, and whether they wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkRoute {
    /// The signals that it accepts.
    pub signals: Signals,
    /// Whether it may hold up the sources.
    pub requirement: Requirement,
}

/// A batch on its way, with its ticket, its permit and the time at which it was accepted.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) batch: Batch,
    pub(crate) ticket: Ticket,
    pub(crate) permit: QueuePermit,
    pub(crate) accepted: Instant,
}

/// The door's end of a queue.
#[derive(Debug)]
pub(crate) struct QueueSender {
    account: Arc<Account>,
    bounds: Arc<Bounds>,
    channel: mpsc::UnboundedSender<Queued>,
    route: SinkRoute,
    /// Somebody waited for room in vain, and there was none since.
    is_lagging: AtomicBool,
}

/// The worker's end of a queue; when it is dropped, the queue is closed.
#[derive(Debug)]
pub(crate) struct QueueReceiver {
    bounds: Arc<Bounds>,
    channel: mpsc::UnboundedReceiver<Queued>,
}

/// A batch for which there was no room at once, with its ticket.
#[derive(Debug)]
pub(crate) struct NoRoom {
    batch: Batch,
    ticket: Ticket,
    bytes: u32,
}

/// Makes the queue in front of the sink of `account`.
pub(crate) fn queue(
    config: QueueConfig,
    route: SinkRoute,
    account: Arc<Account>,
) -> (QueueSender, QueueReceiver) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the permits are its bound, and the stages hold little that has none"
    )]
    let (sender, receiver) = mpsc::unbounded_channel();
    let bounds = Arc::new(Bounds::new(config));
    let receiver = QueueReceiver {
        bounds: Arc::clone(&bounds),
        channel: receiver,
    };
    let sender = QueueSender {
        account,
        bounds,
        channel: sender,
        route,
        is_lagging: AtomicBool::default(),
    };
    (sender, receiver)
}

impl QueueSender {
    /// Whether the sink accepts batches of this signal.
    pub(crate) fn accepts(&self, signal: Signal) -> bool {
        self.route.signals.contains(signal)
    }

    /// Puts the batch in, or drops it as the newest when there is no room. Never waits.
    pub(crate) fn offer(&self, batch: Batch) {
        if let Err(NoRoom { ticket, .. }) = self.try_send(batch) {
            ticket.lose(DropReason::QueueFull, "");
        }
    }

    /// Puts the batch in if there is room for it now; one that can never go in is dropped and counted here.
    pub(crate) fn try_send(&self, batch: Batch) -> Result<(), NoRoom> {
        let (batch, ticket) = self.accept(batch);
        let Some(bytes) = self.bounds.permits_for(batch.bytes().len()) else {
            ticket.lose(DropReason::TooLarge, &self.too_large(&batch));
            return Ok(());
        };
        match self.bounds.try_permit(1, bytes) {
            Ok(permit) => self.put(batch, ticket, permit),
            Err(TryAcquireError::NoPermits) => return Err(NoRoom { batch, ticket, bytes }),
            Err(TryAcquireError::Closed) => ticket.lose(DropReason::Closed, ""),
        }
        Ok(())
    }

    /// Waits for room, and puts the batch in.
    pub(crate) async fn send_when_room(&self, waiting: NoRoom) {
        let NoRoom { batch, ticket, bytes } = waiting;
        match self.bounds.permit(1, bytes).await {
            Some(permit) => self.put(batch, ticket, permit),
            None => ticket.lose(DropReason::Closed, ""),
        }
    }

    /// Puts the batch in with a part of a reserved permit; without a permit where the reservation is used up.
    pub(crate) fn send_reserved(&self, batch: Batch, reserved: Option<&mut QueuePermit>) {
        let (batch, ticket) = self.accept(batch);
        let Some(bytes) = self.bounds.permits_for(batch.bytes().len()) else {
            return ticket.lose(DropReason::TooLarge, &self.too_large(&batch));
        };
        let permit = reserved
            .and_then(|reserved| reserved.split(bytes))
            .or_else(|| self.bounds.try_permit(1, bytes).ok())
            .unwrap_or_else(|| QueuePermit::overdraft(&self.bounds));
        self.put(batch, ticket, permit);
    }

    /// A permit for these batches at once; `None` where there is no room now.
    pub(crate) fn try_reserve(&self, batches: u32, bytes: usize) -> Option<QueuePermit> {
        self.bounds.try_permit(batches, self.bounds.clamped(bytes)).ok()
    }

    /// Waits for a permit for these batches; `None` when the queue is closed.
    pub(crate) async fn reserve(&self, batches: u32, bytes: usize) -> Option<QueuePermit> {
        self.bounds.permit(batches, self.bounds.clamped(bytes)).await
    }

    /// Which batches go to the sink.
    pub(crate) fn route(&self) -> SinkRoute {
        self.route
    }

    /// Whether the sink may hold up the sources.
    pub(crate) fn is_required(&self) -> bool {
        self.route.requirement == Requirement::Required
    }

    /// Whether a wait for room was in vain, and there was none since.
    pub(crate) fn is_lagging(&self) -> bool {
        self.is_lagging.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lagging(&self, is_lagging: bool) {
        self.is_lagging.store(is_lagging, Ordering::Relaxed);
    }

    /// The most bytes that one batch may have.
    pub(crate) fn max_bytes(&self) -> usize {
        self.bounds.max_bytes
    }

    /// Lets nothing more in: who waits for room is turned away, what is in the queue stays.
    pub(crate) fn close(&self) {
        self.bounds.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.bounds.is_closed()
    }

    /// Counts the batch as accepted. Only a required sink holds the receipt: a source does not wait for the others.
    fn accept(&self, batch: Batch) -> (Batch, Ticket) {
        let (signal, bytes) = (batch.signal(), batch.bytes().len());
        let ticket = self.account.accept(signal, batch.items(), bytes);
        if self.is_required() {
            let receipt = batch.receipt();
            (batch, ticket.with_receipt(receipt))
        } else {
            (batch.without_receipt(), ticket)
        }
    }

    fn put(&self, batch: Batch, ticket: Ticket, permit: QueuePermit) {
        let queued = Queued {
            batch,
            ticket,
            permit,
            accepted: clock::now(),
        };
        if let Err(refused) = self.channel.send(queued) {
            refused.0.ticket.lose(DropReason::Closed, "");
        }
    }

    fn too_large(&self, batch: &Batch) -> String {
        format!(
            "a batch of {} bytes is larger than the queue of {} bytes: raise its bound, or send smaller batches",
            batch.bytes().len(),
            self.bounds.max_bytes
        )
    }
}

impl QueueReceiver {
    /// The oldest batch; none when the queue is closed and empty. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Option<Queued> {
        self.channel.recv().await
    }

    /// Ends as soon as a sender found no room, or waits for some.
    pub(crate) async fn room_is_wanted(&self) {
        self.bounds.room_is_wanted().await;
    }

    /// Lets nothing more in; what is in the queue still comes out of [`next`](Self::next).
    pub(crate) fn close(&mut self) {
        self.bounds.close();
        self.channel.close();
    }
}

impl Drop for QueueReceiver {
    fn drop(&mut self) {
        self.close();
    }
}
