//! The age of the oldest batch that is in memory for a sink.

use std::{collections::BTreeMap, time::Duration};

use crate::clock::{self, Instant};

/// The batches in memory, by the second in which each was accepted, so that any number of batches needs few entries.
#[derive(Debug)]
pub(super) struct BatchAges {
    begin: Instant,
    batches: BTreeMap<Second, u64>,
}

/// A second since the start of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Second(u64);

impl Default for BatchAges {
    fn default() -> Self {
        Self {
            begin: clock::now(),
            batches: BTreeMap::new(),
        }
    }
}

impl BatchAges {
    /// Counts a batch that is accepted now, and returns its second.
    pub(super) fn accept(&mut self) -> Second {
        let second = Second(clock::now().saturating_duration_since(self.begin).as_secs());
        self.accept_again(second);
        second
    }

    /// Counts a further part of a batch that was accepted in `second`.
    pub(super) fn accept_again(&mut self, second: Second) {
        *self.batches.entry(second).or_default() += 1;
    }

    /// Removes a batch that was accepted in `second`.
    pub(super) fn settle(&mut self, second: Second) {
        if let Some(batches) = self.batches.get_mut(&second) {
            *batches -= 1;
            if *batches == 0 {
                self.batches.remove(&second);
            }
        }
    }

    /// Returns the age of the oldest batch, with a resolution of a second, or `None` without a batch.
    pub(super) fn oldest_age(&self) -> Option<Duration> {
        let (Second(second), _) = self.batches.first_key_value()?;
        let age = clock::now().saturating_duration_since(self.begin);
        Some(age.saturating_sub(Duration::from_secs(*second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn age_is_that_of_the_oldest_unsettled_batch() {
        let mut ages = BatchAges::default();
        assert_eq!(ages.oldest_age(), None);
        let first = ages.accept();
        tokio::time::advance(Duration::from_secs(5)).await;
        let second = ages.accept();
        ages.accept_again(first);
        assert_eq!(ages.oldest_age(), Some(Duration::from_secs(5)));
        ages.settle(first);
        assert_eq!(ages.oldest_age(), Some(Duration::from_secs(5)));
        ages.settle(first);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(ages.oldest_age(), Some(Duration::from_secs(2)));
        ages.settle(second);
        assert_eq!(ages.oldest_age(), None);
    }
}
