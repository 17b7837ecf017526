//! The room of a disk queue: one permit for each byte that its files may have.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, watch};

use super::{DiskQueueConfig, Record};

/// The bytes that are free in a disk queue. While nothing can be written, there are none.
#[derive(Debug)]
pub(crate) struct DiskBudget {
    max_bytes: u64,
    free: Arc<Semaphore>,
    is_stalled: watch::Sender<bool>,
    /// The permits that the files hold.
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

    /// The largest payload that ever fits.
    pub(crate) fn max_payload(&self) -> usize {
        let header = Record::stored_bytes(0);
        let most = self
            .max_bytes
            .saturating_sub(header)
            .min(u64::from(u32::MAX) - header);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// The permits for these batches, but never more than there are.
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

    /// From now on the files hold this permit.
    pub(crate) fn store(&self, permit: OwnedSemaphorePermit) {
        self.stored
            .fetch_add(permit.num_permits() as u64, Ordering::Relaxed);
        permit.forget();
    }

    /// Notes the bytes of the files; what they hold beyond is free again.
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

    /// Whether nothing can be written now.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.send_replace(is_stalled);
    }
}
