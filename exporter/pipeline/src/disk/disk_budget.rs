//! The size limit of a disk queue: one permit for each byte that its files may have.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, watch};

use super::{DiskQueueConfig, Record, segment};

/// The free bytes of a disk queue. While the disk rejects writes, no bytes are free.
#[derive(Debug)]
pub(crate) struct DiskBudget {
    max_bytes: u64,
    free: Arc<Semaphore>,
    is_stalled: watch::Sender<bool>,
    /// The number of permits that the files hold.
    stored: AtomicU64,
}

impl DiskBudget {
    pub(super) fn new(config: &DiskQueueConfig) -> Self {
        let max_bytes = config.max_bytes.min(Semaphore::MAX_PERMITS as u64);
        Self {
            max_bytes,
            free: Arc::new(Semaphore::new(max_bytes as usize)),
            is_stalled: watch::Sender::new(false),
            stored: AtomicU64::new(0),
        }
    }

    /// Returns the size of the largest payload that fits into an empty queue.
    pub(crate) fn max_payload(&self) -> usize {
        let headers = Record::stored_bytes(0) + segment::HEADER_BYTES;
        let most = self.max_bytes.min(segment::MAX_BYTES).saturating_sub(headers);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Returns the permits that these batches need, at most the total of the queue.
    pub(crate) fn cost(&self, batches: u32, bytes: u32) -> u32 {
        let headers = Record::stored_bytes(0) * u64::from(batches);
        let cost = (u64::from(bytes) + headers).min(self.max_bytes);
        u32::try_from(cost).unwrap_or(u32::MAX)
    }

    pub(crate) fn try_acquire(&self, cost: u32) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        if *self.is_stalled.borrow() {
            return Err(TryAcquireError::NoPermits);
        }
        Arc::clone(&self.free).try_acquire_many_owned(cost)
    }

    pub(crate) async fn acquire(&self, cost: u32) -> Option<OwnedSemaphorePermit> {
        let mut is_stalled = self.is_stalled.subscribe();
        is_stalled.wait_for(|is_stalled| !is_stalled).await.ok()?;
        Arc::clone(&self.free).acquire_many_owned(cost).await.ok()
    }

    /// Transfers a permit to the files.
    pub(crate) fn store(&self, permit: OwnedSemaphorePermit) {
        self.stored
            .fetch_add(permit.num_permits() as u64, Ordering::Relaxed);
        permit.forget();
    }

    /// Records the size of the files, and releases the permits that they hold beyond that size.
    pub(super) fn set_stored(&self, bytes: u64) {
        let stored = self.stored.load(Ordering::Relaxed);
        if stored > bytes {
            let freed = stored - bytes;
            self.stored.fetch_sub(freed, Ordering::Relaxed);
            self.free.add_permits(freed as usize);
        } else {
            let held = self.free.forget_permits((bytes - stored) as usize);
            self.stored.fetch_add(held as u64, Ordering::Relaxed);
        }
    }

    /// Sets whether the disk rejects writes.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.send_replace(is_stalled);
    }
}
