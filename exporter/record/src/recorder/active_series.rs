//! The active series of a run, so that they can be ended with it.
//!
//! Only the recorder of a followed run tracks them: a finished log does not show whether its run has ended.

use std::time::Duration;

use indexmap::IndexSet;
use pulsetrain_otlp::{
    UnixNanos,
    write::{EncodedSeries, MetricsWriter},
};

use super::Recorder;
use crate::SkipReason;

/// The distance of the end of a series from the last point of its run: the smallest difference at millisecond resolution.
const AFTER: Duration = Duration::from_millis(1);

/// The series with points, in the order of their first points.
#[derive(Debug, Default)]
pub(super) struct ActiveSeries {
    series: IndexSet<EncodedSeries, foldhash::fast::RandomState>,
    /// The number of points of series beyond the limit, which are not ended.
    beyond: u64,
}

/// The limit for series that are ended with their run.
const MAX_ENDED: usize = 1 << 16;

/// The skip rule for points of series beyond that limit.
const WITHOUT_END: SkipReason = SkipReason::Ignored("end_of_series");

impl ActiveSeries {
    /// Adds the series of a point.
    pub(super) fn note(&mut self, series: &EncodedSeries) {
        if self.series.contains(series) {
            return;
        }
        if self.series.len() >= MAX_ENDED {
            self.beyond += 1;
            return;
        }
        self.series.insert(series.clone());
    }

    /// Ends all series; returns their number and the number of points of series beyond the limit.
    pub(super) fn end(&mut self, time_unix_nanos: UnixNanos, writer: &mut MetricsWriter) -> (u64, u64) {
        let Self { series, beyond, .. } = std::mem::take(self);
        for series in &series {
            writer.end_of_encoded_series(series, time_unix_nanos);
        }
        (series.len() as u64, beyond)
    }
}

impl Recorder<'_> {
    /// Tracks the active series, which [`end_series`](Self::end_series) ends.
    pub fn tracking_series(mut self) -> Self {
        self.current.active = Some(ActiveSeries::default());
        self
    }

    /// Returns whether the run has series that have not ended.
    pub fn has_series(&self) -> bool {
        let ranks = self.ranks.values().chain([&self.current]);
        let mut all = ranks.filter_map(|rank| rank.active.as_ref());
        all.any(|active| !active.series.is_empty())
    }

    /// Clears the active series of the run without ending them: they have ended already.
    pub fn clear_active(&mut self) {
        let all = self.all_ranks().filter_map(|rank| rank.active.as_mut());
        all.for_each(|active| *active = ActiveSeries::default());
    }

    /// Ends every series of the run, in all ranks, just after its last point, regardless of the time of the call.
    pub fn end_series(&mut self) {
        self.end_own_series();
        for rank in self.ranks.values_mut() {
            let (ended, beyond) = rank.end_series(self.last_unix_nanos.saturating_add(AFTER));
            self.counts.points += ended;
            self.skipped.count_many(WITHOUT_END, beyond);
        }
    }

    /// Ends every series of the current rank.
    pub(super) fn end_own_series(&mut self) {
        let time_unix_nanos = self.last_unix_nanos.saturating_add(AFTER);
        let (ended, beyond) = self.current.end_series(time_unix_nanos);
        self.counts.points += ended;
        self.skipped.count_many(WITHOUT_END, beyond);
    }
}
