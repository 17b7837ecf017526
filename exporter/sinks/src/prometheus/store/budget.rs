//! The memory budget of the store: what series, families, bounds and targets take, in bytes.
//!
//! The sizes are those of the data and of the entries that hold it; the allocator takes some 10 to 30 percent more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::Rejection;

/// The bytes that telemetry about the program itself may take beyond the limit.
const OF_OURSELVES: usize = 4 << 20;

/// A limit of bytes, and how many of them are in use.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// Whether something found no room since the last eviction.
    is_exhausted: AtomicBool,
}

/// Bytes of a budget, which are given back when this is dropped.
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

    /// Takes bytes until the charge is dropped.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize, is_of_ourselves: bool) -> Result<Charge, Rejection> {
        self.take(bytes, is_of_ourselves)?;
        Ok(Charge {
            budget: Arc::clone(self),
            bytes,
        })
    }

    /// Takes bytes, which [`give_back`](Self::give_back) returns.
    pub(super) fn take(&self, bytes: usize, is_of_ourselves: bool) -> Result<(), Rejection> {
        let limit = match is_of_ourselves {
            true => self.limit.saturating_add(OF_OURSELVES),
            false => self.limit,
        };
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| {
            self.note_exhausted();
            Rejection::MemoryLimit
        })
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn note_exhausted(&self) {
        self.is_exhausted.store(true, Ordering::Relaxed);
    }

    /// Returns whether something found no room since the last call.
    pub(super) fn take_exhausted(&self) -> bool {
        self.is_exhausted.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
