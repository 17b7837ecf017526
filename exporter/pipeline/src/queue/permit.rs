//! Permits: the share of a queue that batches occupy, one for each batch and one for each byte; in front of a disk queue also
//! one for each byte that is going to be in its files.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::QueueConfig;
use crate::disk::DiskBudget;

/// How much one queue holds, and whether somebody misses room in it.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) max_bytes: usize,
    max_batches: u32,
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// The room on the disk; `None` for a queue in memory.
    room: Option<Arc<DiskBudget>>,
    closing: Notify,
    /// A sender found no room since the last permit returned.
    is_missed: AtomicBool,
    /// Senders that wait for room.
    waiting: AtomicUsize,
    wanted: Notify,
}

/// The share of a queue that batches occupy; dropped, it is free for the next.
#[derive(Debug)]
pub(crate) struct QueuePermit {
    bounds: Arc<Bounds>,
    held: Option<HeldPermits>,
}

#[derive(Debug)]
struct HeldPermits {
    batches: OwnedSemaphorePermit,
    bytes: OwnedSemaphorePermit,
    room: Option<OwnedSemaphorePermit>,
}

/// Counts a sender that waits for as long as it lives.
struct WaitingSender<'a>(&'a Bounds);

impl Bounds {
    pub(super) fn new(config: QueueConfig, room: Option<Arc<DiskBudget>>) -> Self {
        let most = Semaphore::MAX_PERMITS.min(u32::MAX as usize);
        let (max_batches, max_bytes) = (config.max_batches.clamp(1, most), config.max_bytes.min(most));
        let max_bytes = (room.as_ref()).map_or(max_bytes, |room| max_bytes.min(room.max_payload()));
        Self {
            max_bytes,
            max_batches: max_batches as u32,
            batches: Arc::new(Semaphore::new(max_batches)),
            bytes: Arc::new(Semaphore::new(max_bytes)),
            room,
            closing: Notify::new(),
            is_missed: AtomicBool::default(),
            waiting: AtomicUsize::default(),
            wanted: Notify::new(),
        }
    }

    /// The permits that the bytes of one batch need; `None` where no amount of waiting makes room.
    pub(super) fn permits_for(&self, bytes: usize) -> Option<u32> {
        (bytes <= self.max_bytes).then_some(bytes as u32)
    }

    /// The permits for several batches, which never ask for more than the queue has.
    pub(super) fn clamped(&self, bytes: usize) -> u32 {
        bytes.min(self.max_bytes) as u32
    }

    /// A permit at once. The batches are acquired first, here and in [`permit`](Self::permit), so that nobody holds bytes
    /// while waiting for the place of a batch.
    pub(super) fn try_permit(
        self: &Arc<Self>,
        batches: u32,
        bytes: u32,
    ) -> Result<QueuePermit, TryAcquireError> {
        let acquired = || {
            let batches = batches.min(self.max_batches);
            Ok(HeldPermits {
                batches: Arc::clone(&self.batches).try_acquire_many_owned(batches)?,
                bytes: Arc::clone(&self.bytes).try_acquire_many_owned(bytes)?,
                room: (self.room.as_ref())
                    .map(|room| room.try_acquire(room.cost(batches, bytes)))
                    .transpose()?,
            })
        };
        let acquired = acquired();
        if matches!(acquired, Err(TryAcquireError::NoPermits)) {
            self.is_missed.store(true, Ordering::Relaxed);
            self.wanted.notify_one();
        }
        acquired.map(|held| self.of(held))
    }

    /// A permit when there is room; `None` when the queue is closed.
    pub(super) async fn permit(self: &Arc<Self>, batches: u32, bytes: u32) -> Option<QueuePermit> {
        if let Ok(permit) = self.try_permit(batches, bytes) {
            return Some(permit);
        }
        let _waiting = WaitingSender::of(self);
        let batches = batches.min(self.max_batches);
        let batches = Arc::clone(&self.batches).acquire_many_owned(batches).await.ok()?;
        let cost = (self.room.as_ref()).map(|room| room.cost(batches.num_permits() as u32, bytes));
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()?;
        let room = match (&self.room, cost) {
            (Some(room), Some(cost)) => Some(self.room_on_disk(room, cost).await?),
            _ => None,
        };
        Some(self.of(HeldPermits { batches, bytes, room }))
    }

    /// Room on the disk when there is some; `None` when the queue is closed. The disk queue itself may be open for the next
    /// sink of this name.
    async fn room_on_disk(&self, room: &DiskBudget, cost: u32) -> Option<OwnedSemaphorePermit> {
        let mut closing = std::pin::pin!(self.closing.notified());
        closing.as_mut().enable();
        if self.is_closed() {
            return None;
        }
        tokio::select! {
            biased;
            () = closing => None,
            room = room.acquire(cost) => room,
        }
    }

    /// Permits for these bytes, if they are free now.
    pub(super) fn try_bytes(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.bytes).try_acquire_many_owned(bytes).ok()
    }

    /// A permit for one batch of these bytes, out of the permits of others and of free bytes. What is too much is free
    /// again; `None` where it is too little.
    pub(super) fn reuse(
        self: &Arc<Self>,
        bytes: u32,
        free: OwnedSemaphorePermit,
        permits: impl Iterator<Item = QueuePermit>,
    ) -> Option<QueuePermit> {
        let mut held = permits.filter_map(|mut permit| permit.held.take());
        let mut all = held.next()?;
        all.bytes.merge(free);
        for other in held {
            all.batches.merge(other.batches);
            all.bytes.merge(other.bytes);
        }
        self.is_missed.store(false, Ordering::Relaxed);
        QueuePermit::split(&mut self.of(all), bytes)
    }

    /// Ends as soon as a sender found no room, or waits for some.
    pub(super) async fn room_is_wanted(&self) {
        while !self.is_missed.load(Ordering::Relaxed) && self.waiting.load(Ordering::Relaxed) == 0 {
            self.wanted.notified().await;
        }
    }

    pub(super) fn close(&self) {
        self.batches.close();
        self.bytes.close();
        self.closing.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.batches.is_closed()
    }

    fn of(self: &Arc<Self>, held: HeldPermits) -> QueuePermit {
        QueuePermit {
            bounds: Arc::clone(self),
            held: Some(held),
        }
    }
}

impl QueuePermit {
    /// A permit that occupies nothing, for what must not be lost though there is no room.
    pub(super) fn overdraft(bounds: &Arc<Bounds>) -> Self {
        Self {
            bounds: Arc::clone(bounds),
            held: None,
        }
    }

    /// Moves what it occupies to another permit.
    pub(super) fn take(&mut self) -> Self {
        Self {
            bounds: Arc::clone(&self.bounds),
            held: self.held.take(),
        }
    }

    /// The part for one batch of these bytes; `None` where less is left.
    pub(super) fn split(&mut self, bytes: u32) -> Option<Self> {
        let held = self.held.as_mut()?;
        let cost = self.bounds.room.as_ref().map_or(0, |room| room.cost(1, bytes)) as usize;
        let on_disk = held.room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if held.bytes.num_permits() < bytes as usize || on_disk < cost {
            return None;
        }
        let batches = held.batches.split(1)?;
        let bytes = held.bytes.split(bytes as usize)?;
        let room = held.room.as_mut().and_then(|room| room.split(cost));
        Some(self.bounds.of(HeldPermits { batches, bytes, room }))
    }

    /// The bytes that it occupies; `None` for one that occupies nothing.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.held.as_ref().map(|held| held.bytes.num_permits())
    }

    /// The batch is in the files of `room` from now on: its share of the memory is free again.
    pub(crate) fn store(mut self, room: &DiskBudget) {
        if let Some(on_disk) = self.held.as_mut().and_then(|held| held.room.take()) {
            room.store(on_disk);
        }
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        if self.held.take().is_some() {
            self.bounds.is_missed.store(false, Ordering::Relaxed);
        }
    }
}

impl<'a> WaitingSender<'a> {
    fn of(bounds: &'a Bounds) -> Self {
        bounds.waiting.fetch_add(1, Ordering::Relaxed);
        bounds.wanted.notify_one();
        Self(bounds)
    }
}

impl Drop for WaitingSender<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
