//! Room: how many series there are, how many there may be, and which was born when.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Refusal;

/// So many series tell of the program itself beyond the limit: among them is what says that there is no more room.
const OF_OURSELVES: usize = 1_000;

/// Counts the series of all families.
#[derive(Debug)]
pub(crate) struct Room {
    limit: usize,
    taken: AtomicUsize,
    births: AtomicU64,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: AtomicUsize::new(0),
            births: AtomicU64::new(0),
        }
    }

    /// Takes the place of one more series, which may be one that tells of the program itself, and says which birth it is.
    pub(super) fn enter(&self, is_of_ourselves: bool) -> Result<u64, Refusal> {
        let limit = self.limit(is_of_ourselves);
        let more = |taken| (taken < limit).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Refusal::SeriesLimit)?;
        Ok(self.births.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The most series, as one that may tell of the program itself finds it.
    pub(super) fn limit(&self, is_of_ourselves: bool) -> usize {
        match is_of_ourselves {
            true => self.limit.saturating_add(OF_OURSELVES),
            false => self.limit,
        }
    }

    pub(super) fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// The last birth so far.
    pub(crate) fn births(&self) -> u64 {
        self.births.load(Ordering::Relaxed)
    }
}
