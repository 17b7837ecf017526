//! The limits of a store: number of series and memory, with creation numbers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use super::{Rejection, budget::Budget};

/// The reserve for internal series beyond the limit. One of them reports that the limit is reached.
const INTERNAL_RESERVE: usize = 1_000;

/// Counts the series of all families.
#[derive(Debug)]
pub(crate) struct SeriesLimit {
    limit: usize,
    taken: AtomicUsize,
    last_creation_number: AtomicU64,
    budget: Arc<Budget>,
}

impl SeriesLimit {
    pub(super) fn new(limit: usize, max_bytes: usize) -> Self {
        Self {
            limit,
            taken: AtomicUsize::new(0),
            last_creation_number: AtomicU64::new(0),
            budget: Arc::new(Budget::new(max_bytes)),
        }
    }

    /// Reserves a series of `bytes`, which may be an internal one. Returns its creation number.
    pub(crate) fn enter(&self, bytes: usize, is_internal: bool) -> Result<u64, Rejection> {
        self.budget.take(bytes, is_internal)?;
        let limit = self.limit(is_internal);
        let more = |taken| (taken < limit).then_some(taken + 1);
        let entered = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if entered.is_err() {
            self.budget.give_back(bytes);
            self.budget.report_exhausted();
            return Err(Rejection::SeriesLimit);
        }
        Ok(self.last_creation_number.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Changes the size of a series.
    pub(crate) fn resize(&self, before: usize, now: usize, is_internal: bool) -> Result<(), Rejection> {
        if now > before {
            return self.budget.take(now - before, is_internal);
        }
        self.budget.give_back(before - now);
        Ok(())
    }

    /// Returns the maximum number of series, with the reserve for an internal one.
    pub(super) fn limit(&self, is_internal: bool) -> usize {
        match is_internal {
            true => self.limit.saturating_add(INTERNAL_RESERVE),
            false => self.limit,
        }
    }

    pub(super) fn leave(&self, bytes: usize) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.budget.give_back(bytes);
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns the memory budget of the store.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Returns the last creation number.
    pub(crate) fn last_creation_number(&self) -> u64 {
        self.last_creation_number.load(Ordering::Relaxed)
    }
}
