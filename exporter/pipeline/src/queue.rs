//! The bounded queue in front of one sink: bounded in batches and in bytes, the batch in delivery included.
//!
//! Room is a permit for one batch and one for each of its bytes; both go with the batch and come back when it is
//! settled. So the channel behind can never be full, and whoever waits for room is served first come, first served.

use std::sync::Arc;

use pulsetrain_otlp::{Signal, Signals};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};

use crate::{
    Batch, DropReason,
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

/// A batch on its way, with its ticket and the room that it takes.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) batch: Batch,
    pub(crate) ticket: Ticket,
    pub(crate) room: Room,
}

/// The door's end of a queue.
#[derive(Debug)]
pub(crate) struct QueueSender {
    signals: Signals,
    account: Arc<Account>,
    bounds: Arc<Bounds>,
    channel: mpsc::Sender<Queued>,
}

/// The worker's end of a queue; when it is dropped, the queue is closed.
#[derive(Debug)]
pub(crate) struct QueueReceiver {
    bounds: Arc<Bounds>,
    channel: mpsc::Receiver<Queued>,
}

/// A batch for which there was no room at once, with its ticket.
#[derive(Debug)]
pub(crate) struct NoRoom {
    batch: Batch,
    ticket: Ticket,
    bytes: u32,
}

#[derive(Debug)]
struct Bounds {
    max_bytes: usize,
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// The room that one batch takes; dropped, it is free for the next.
#[derive(Debug)]
pub(crate) struct Room {
    _batch: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

/// Makes the queue in front of the sink of `account`, which accepts these signals.
pub(crate) fn queue(
    config: QueueConfig,
    signals: Signals,
    account: Arc<Account>,
) -> (QueueSender, QueueReceiver) {
    let max_batches = config.max_batches.clamp(1, Semaphore::MAX_PERMITS);
    let max_bytes = config.max_bytes.min(Semaphore::MAX_PERMITS);
    let (sender, receiver) = mpsc::channel(max_batches);
    let bounds = Arc::new(Bounds {
        max_bytes,
        batches: Arc::new(Semaphore::new(max_batches)),
        bytes: Arc::new(Semaphore::new(max_bytes)),
    });
    let receiver = QueueReceiver {
        bounds: Arc::clone(&bounds),
        channel: receiver,
    };
    (
        QueueSender {
            signals,
            account,
            bounds,
            channel: sender,
        },
        receiver,
    )
}

impl QueueSender {
    /// Whether the sink accepts batches of this signal.
    pub(crate) fn accepts(&self, signal: Signal) -> bool {
        self.signals.contains(signal)
    }

    /// Puts the batch in, or drops it as the newest when there is no room. Never waits.
    pub(crate) fn offer(&self, batch: Batch) {
        if let Err(NoRoom { ticket, .. }) = self.try_send(batch) {
            ticket.lose(DropReason::QueueFull, "");
        }
    }

    /// Puts the batch in if there is room for it now; one that can never go in is dropped and counted here.
    pub(crate) fn try_send(&self, batch: Batch) -> Result<(), NoRoom> {
        let ticket = self.account.accept(batch.items(), batch.bytes().len());
        let ticket = ticket.with_receipt(batch.receipt());
        let Some(bytes) = self.permits_for(&batch) else {
            ticket.lose(DropReason::TooLarge, &self.too_large(&batch));
            return Ok(());
        };
        match self.bounds.try_room(bytes) {
            Ok(room) => self.put(batch, ticket, room),
            Err(TryAcquireError::NoPermits) => return Err(NoRoom { batch, ticket, bytes }),
            Err(TryAcquireError::Closed) => ticket.lose(DropReason::Closed, ""),
        }
        Ok(())
    }

    /// Whether a batch of so many bytes would not have to wait; one that can never go in does not.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let Bounds {
            max_bytes,
            batches,
            bytes: room,
        } = &*self.bounds;
        batches.available_permits() > 0 && (bytes > *max_bytes || room.available_permits() >= bytes)
    }

    /// Waits for room, and puts the batch in.
    pub(crate) async fn send_when_room(&self, waiting: NoRoom) {
        let NoRoom { batch, ticket, bytes } = waiting;
        match self.bounds.room(bytes).await {
            Some(room) => self.put(batch, ticket, room),
            None => ticket.lose(DropReason::Closed, ""),
        }
    }

    /// Lets nothing more in: who waits for room is turned away, what is in the queue stays.
    pub(crate) fn close(&self) {
        self.bounds.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.bounds.batches.is_closed()
    }

    fn put(&self, batch: Batch, ticket: Ticket, room: Room) {
        if let Err(refused) = self.channel.try_send(Queued { batch, ticket, room }) {
            refused.into_inner().ticket.lose(DropReason::Closed, "");
        }
    }

    /// The permits that the bytes of a batch take; none where no amount of waiting makes room.
    fn permits_for(&self, batch: &Batch) -> Option<u32> {
        let bytes = batch.bytes().len();
        (bytes <= self.bounds.max_bytes)
            .then(|| u32::try_from(bytes).ok())
            .flatten()
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

impl Bounds {
    /// Room at once. The permit for the batch comes first, here and in [`room`](Self::room), so that nobody holds bytes
    /// while waiting for a batch's place.
    fn try_room(&self, bytes: u32) -> Result<Room, TryAcquireError> {
        let batch = Arc::clone(&self.batches).try_acquire_owned()?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(bytes)?;
        Ok(Room {
            _batch: batch,
            _bytes: bytes,
        })
    }

    /// Room when there is some; none when the queue is closed.
    async fn room(&self, bytes: u32) -> Option<Room> {
        let batch = Arc::clone(&self.batches).acquire_owned().await.ok()?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()?;
        Some(Room {
            _batch: batch,
            _bytes: bytes,
        })
    }

    fn close(&self) {
        self.batches.close();
        self.bytes.close();
    }
}
