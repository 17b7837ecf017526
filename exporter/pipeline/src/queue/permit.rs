//! Permits: the share of a queue that batches occupy, one for each batch and one for each byte. In front of a disk queue,
//! there is also one for each byte that the files will hold.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::QueueConfig;
use crate::disk::DiskBudget;

/// The limits of one queue, and whether a sender waits for room in it.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) max_bytes: usize,
    max_batches: u32,
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// The budget on the disk; `None` for a queue in memory.
    room: Option<Arc<DiskBudget>>,
    closing: Notify,
    /// Whether a sender found no room since the last permit was released.
    is_missed: AtomicBool,
    /// The number of senders that wait for room.
    waiting: AtomicUsize,
    wanted: Notify,
}

/// The share of a queue that batches occupy. Dropping the permit frees it.
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

/// Counts a waiting sender while it is alive.
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

    /// Returns the permits that the bytes of one batch need, or `None` if the batch can never fit.
    pub(super) fn permits_for(&self, bytes: usize) -> Option<u32> {
        (bytes <= self.max_bytes).then_some(bytes as u32)
    }

    /// Returns the permits for several batches, at most the total of the queue.
    pub(super) fn clamped(&self, bytes: usize) -> u32 {
        bytes.min(self.max_bytes) as u32
    }

    /// Acquires a permit without waiting. The permits of batches are acquired first, here and in
    /// [`permit`](Self::permit), so that nobody holds bytes while waiting for a batch permit.
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
        acquired.map(|held| self.hold(held))
    }

    /// Waits for a permit. Returns `None` if the queue is closed.
    pub(super) async fn permit(self: &Arc<Self>, batches: u32, bytes: u32) -> Option<QueuePermit> {
        if let Ok(permit) = self.try_permit(batches, bytes) {
            return Some(permit);
        }
        let _waiting = WaitingSender::new(self);
        let batches = batches.min(self.max_batches);
        let batches = Arc::clone(&self.batches).acquire_many_owned(batches).await.ok()?;
        let cost = (self.room.as_ref()).map(|room| room.cost(batches.num_permits() as u32, bytes));
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()?;
        let room = match (&self.room, cost) {
            (Some(room), Some(cost)) => Some(self.room_on_disk(room, cost).await?),
            _ => None,
        };
        Some(self.hold(HeldPermits { batches, bytes, room }))
    }

    /// Waits for room on the disk. Returns `None` if the queue is closed. The disk queue itself may be open for the next
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

    /// Acquires permits for these bytes if they are free now.
    pub(super) fn try_bytes(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.bytes).try_acquire_many_owned(bytes).ok()
    }

    /// Makes a permit for one batch of these bytes from the permits of evicted batches and free bytes. Excess permits are
    /// released. Returns `None` if there are too few.
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
        QueuePermit::split(&mut self.hold(all), bytes)
    }

    /// Completes as soon as a sender found no room, or waits for room.
    pub(super) async fn space_requested(&self) {
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

    fn hold(self: &Arc<Self>, held: HeldPermits) -> QueuePermit {
        QueuePermit {
            bounds: Arc::clone(self),
            held: Some(held),
        }
    }
}

impl QueuePermit {
    /// Returns a permit that occupies nothing, for batches that must not be lost although there is no room.
    pub(super) fn overdraft(bounds: &Arc<Bounds>) -> Self {
        Self {
            bounds: Arc::clone(bounds),
            held: None,
        }
    }

    /// Moves the occupied share to another permit.
    pub(super) fn take(&mut self) -> Self {
        Self {
            bounds: Arc::clone(&self.bounds),
            held: self.held.take(),
        }
    }

    /// Splits off the part for one batch of this size. Returns `None` if too little is left.
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
        Some(self.bounds.hold(HeldPermits { batches, bytes, room }))
    }

    /// Returns the number of occupied bytes, or `None` for a permit that occupies nothing.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.held.as_ref().map(|held| held.bytes.num_permits())
    }

    /// Transfers the batch to the files of `room`, and releases its share of the memory.
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
    fn new(bounds: &'a Bounds) -> Self {
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
