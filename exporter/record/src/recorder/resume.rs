//! Going on with what an earlier recorder had begun.

use super::{Recorder, series::SeriesTable};
use crate::{Counts, Skipped};

impl Recorder<'_> {
    /// Counts from zero what is recorded and skipped from now on; sums and histograms go on.
    pub fn restart_counts(&mut self) {
        self.flush();
        self.counts = Counts::default();
        self.skipped = Skipped::default();
    }

    /// Records what was told before: sums come to what they had come to, and nothing of it leaves or counts again.
    pub fn retell(&mut self, retell: impl FnOnce(&mut Self)) {
        self.flush();
        let listener = std::mem::replace(&mut self.listener, Box::new(drop));
        let (counts, skipped) = (self.counts, std::mem::take(&mut self.skipped));
        retell(self);
        self.flush();
        (self.listener, self.counts, self.skipped) = (listener, counts, skipped);
    }

    /// Begins sums and histograms anew: they count from the last time that was recorded, because what they had come to
    /// before it is not known.
    pub fn restart_sums(&mut self) {
        self.flush();
        self.series = SeriesTable::default();
        self.sums_start_unix_nanos = self.last_unix_nanos;
        for rank in self.ranks.values_mut() {
            rank.restart_sums(self.last_unix_nanos);
        }
    }
}
