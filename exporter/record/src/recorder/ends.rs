//! The ends of the series of a run.
//!
//! Only the recorder of a followed run ends them: a finished log does not show whether its run has ended.

use std::time::Duration;

use super::{Recorder, ranks};
use crate::{SeriesLimits, SkipReason, series::EndedSeries};

/// The distance of the end of a series from the last point of its run: the smallest difference at millisecond resolution.
const AFTER: Duration = Duration::from_millis(1);

/// The limits for the series of a rank that are ended with the run.
const ENDED: SeriesLimits = SeriesLimits {
    ended: 1 << 16,
    ..ranks::SERIES
};

/// The skip rule for points of series beyond that limit.
const WITHOUT_END: SkipReason = SkipReason::Ignored("end_of_series");

impl Recorder<'_> {
    /// Tracks the active series, which [`end_series`](Self::end_series) ends.
    pub fn tracking_series(mut self) -> Self {
        self.current.series.set_limits(ENDED);
        self
    }

    /// Returns whether the run has series that have not ended.
    pub fn has_series(&self) -> bool {
        let mut ranks = self.ranks.values().chain([&self.current]);
        ranks.any(|rank| rank.series.has_active())
    }

    /// Clears the active series of the run without ending them: they have ended already.
    pub fn clear_active(&mut self) {
        self.all_ranks().for_each(|rank| rank.series.forget_active());
    }

    /// Ends every series of the run, in all ranks, just after its last point, regardless of the time of the call.
    pub fn end_series(&mut self) {
        let time_unix_nanos = self.last_unix_nanos.saturating_add(AFTER);
        let ends: Vec<EndedSeries> = self
            .all_ranks()
            .map(|rank| rank.series.end(time_unix_nanos))
            .collect();
        ends.into_iter().for_each(|ends| self.count_ends(ends));
    }

    /// Ends every series of the current rank.
    pub(super) fn end_own_series(&mut self) {
        let time_unix_nanos = self.last_unix_nanos.saturating_add(AFTER);
        let ends = self.current.series.end(time_unix_nanos);
        self.count_ends(ends);
    }

    fn count_ends(&mut self, ends: EndedSeries) {
        self.counts.points += ends.ended;
        self.skipped.count_many(WITHOUT_END, ends.beyond);
    }
}
