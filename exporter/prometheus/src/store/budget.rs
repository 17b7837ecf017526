//! The memory budget of the store for series, families, bounds and targets, in bytes.
//!
//! Sizes include the data and the entries that hold it. The allocator adds 10 to 30 percent.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::Rejection;

/// The reserve in bytes for internal metrics beyond the limit.
const INTERNAL_RESERVE: usize = 4 << 20;

/// A limit in bytes, and the bytes in use.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// Whether the limit was hit since the last eviction.
    is_exhausted: AtomicBool,
}

/// A charge to a budget, which is released on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
            is_exhausted: AtomicBool::new(false),
        }
    }

    /// Charges bytes until the result is dropped.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize, is_internal: bool) -> Result<Charge, Rejection> {
        self.take(bytes, is_internal)?;
        Ok(Charge {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Charges bytes, which [`give_back`](Self::give_back) releases.
    pub(super) fn take(&self, bytes: usize, is_internal: bool) -> Result<(), Rejection> {
        let limit = match is_internal {
            true => self.limit.saturating_add(INTERNAL_RESERVE),
            false => self.limit,
        };
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| {
            self.report_exhausted();
            Rejection::MemoryLimit
        })
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn report_exhausted(&self) {
        self.is_exhausted.store(true, Ordering::Relaxed);
    }

    /// Returns whether the limit was hit since the last call.
    pub(super) fn take_exhausted(&self) -> bool {
        self.is_exhausted.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
