//! Room: how many series there are, how many there may be, and which was born when.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Refusal;

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

    /// Takes the place of one more series and says which birth it is.
    pub(super) fn enter(&self) -> Result<u64, Refusal> {
        let more = |taken| (taken < self.limit).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Refusal::SeriesLimit)?;
        Ok(self.births.fetch_add(1, Ordering::Relaxed) + 1)
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
