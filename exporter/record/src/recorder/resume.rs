//! Resumes from the state of an earlier recorder.

use super::Recorder;
use crate::{Counts, ParseReport};

impl Recorder<'_> {
    /// Resets the counts of recorded and skipped items; sums and histograms continue.
    pub fn restart_counts(&mut self) {
        self.flush();
        self.counts = Counts::default();
        self.skipped = ParseReport::default();
        self.local_clock.restart_counts();
    }

    /// Replays records that were already sent: this restores the state of sums and histograms, and neither sends nor counts
    /// items.
    pub fn replay(&mut self, replay: impl FnOnce(&mut Self)) {
        self.flush();
        let listener = std::mem::replace(&mut self.listener, Box::new(drop));
        let (counts, skipped) = (self.counts, std::mem::take(&mut self.skipped));
        replay(self);
        self.flush();
        (self.listener, self.counts, self.skipped) = (listener, counts, skipped);
    }

    /// Resets sums and histograms: they count from the last recorded time, because their state before it is unknown.
    pub fn restart_sums(&mut self) {
        self.flush();
        let start_unix_nanos = self.last_unix_nanos;
        for rank in self.all_ranks() {
            rank.series.restart_sums(start_unix_nanos);
        }
    }
}
