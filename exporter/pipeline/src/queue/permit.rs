//! Permits: the share of a queue that batches occupy, one for each batch and one for each byte.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::QueueConfig;

/// How much one queue holds, and whether somebody misses room in it.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) max_bytes: usize,
    max_batches: u32,
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
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
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    batches: OwnedSemaphorePermit,
    bytes: OwnedSemaphorePermit,
}

/// Counts a sender that waits for as long as it lives.
struct Waiting<'a>(&'a Bounds);

impl Bounds {
    pub(super) fn new(config: QueueConfig) -> Self {
        let most = Semaphore::MAX_PERMITS.min(u32::MAX as usize);
        let (max_batches, max_bytes) = (config.max_batches.clamp(1, most), config.max_bytes.min(most));
        Self {
            max_bytes,
            max_batches: max_batches as u32,
            batches: Arc::new(Semaphore::new(max_batches)),
            bytes: Arc::new(Semaphore::new(max_bytes)),
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
            Ok(Held {
                batches: Arc::clone(&self.batches).try_acquire_many_owned(batches)?,
                bytes: Arc::clone(&self.bytes).try_acquire_many_owned(bytes)?,
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
        let _waiting = Waiting::of(self);
        let batches = batches.min(self.max_batches);
        let batches = Arc::clone(&self.batches).acquire_many_owned(batches).await.ok()?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes).await.ok()?;
        Some(self.of(Held { batches, bytes }))
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
    }

    pub(super) fn is_closed(&self) -> bool {
        self.batches.is_closed()
    }

    fn of(self: &Arc<Self>, held: Held) -> QueuePermit {
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

    /// The part for one batch of these bytes; `None` where less is left.
    pub(super) fn split(&mut self, bytes: u32) -> Option<Self> {
        let held = self.held.as_mut()?;
        if held.bytes.num_permits() < bytes as usize {
            return None;
        }
        let batches = held.batches.split(1)?;
        let bytes = held.bytes.split(bytes as usize)?;
        Some(self.bounds.of(Held { batches, bytes }))
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        if self.held.take().is_some() {
            self.bounds.is_missed.store(false, Ordering::Relaxed);
        }
    }
}

impl<'a> Waiting<'a> {
    fn of(bounds: &'a Bounds) -> Self {
        bounds.waiting.fetch_add(1, Ordering::Relaxed);
        bounds.wanted.notify_one();
        Self(bounds)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
