//! Room: how many series there are and what they take, how much there may be, and which was born when.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use super::{Rejection, budget::Budget};

/// The number of series about the program itself beyond the limit: among them is the one that reports that there is no more room.
const OF_OURSELVES: usize = 1_000;

/// Counts the series of all families.
#[derive(Debug)]
pub(crate) struct SeriesLimit {
    limit: usize,
    taken: AtomicUsize,
    births: AtomicU64,
    budget: Arc<Budget>,
}

impl SeriesLimit {
    pub(super) fn new(limit: usize, max_bytes: usize) -> Self {
        Self {
            limit,
            taken: AtomicUsize::new(0),
            births: AtomicU64::new(0),
            budget: Arc::new(Budget::new(max_bytes)),
        }
    }

    /// Takes the place of one more series of `bytes`, which may be one about the program itself, and returns which birth
    /// it is.
    pub(crate) fn enter(&self, bytes: usize, is_of_ourselves: bool) -> Result<u64, Rejection> {
        self.budget.take(bytes, is_of_ourselves)?;
        let limit = self.limit(is_of_ourselves);
        let more = |taken| (taken < limit).then_some(taken + 1);
        let entered = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if entered.is_err() {
            self.budget.give_back(bytes);
            self.budget.note_exhausted();
            return Err(Rejection::SeriesLimit);
        }
        Ok(self.births.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Changes what a series takes.
    pub(crate) fn resize(&self, before: usize, now: usize, is_of_ourselves: bool) -> Result<(), Rejection> {
        if now > before {
            return self.budget.take(now - before, is_of_ourselves);
        }
        self.budget.give_back(before - now);
        Ok(())
    }

    /// The most series, for a series that may be about the program itself.
    pub(super) fn limit(&self, is_of_ourselves: bool) -> usize {
        match is_of_ourselves {
            true => self.limit.saturating_add(OF_OURSELVES),
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

    /// The bytes that everything in the store takes.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The last birth so far.
    pub(crate) fn births(&self) -> u64 {
        self.births.load(Ordering::Relaxed)
    }
}
