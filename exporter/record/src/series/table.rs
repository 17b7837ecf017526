//! The series of one resource: the totals of sums and histograms, and the series that have points and no end.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use indexmap::IndexMap;
use pulsetrain_otlp::write::{EncodedSeries, GrowingHistogram};
use pulsetrain_semconv::Instrument;

use super::{EndedSeries, PreparedSeries, SeriesLimits};

/// Series in the order of their first points.
#[derive(Debug)]
pub(super) struct SeriesTable {
    pub(super) limits: SeriesLimits,
    series: IndexMap<EncodedSeries, Entry, foldhash::fast::RandomState>,
    /// The number of totals of each metric, by its ordinal.
    totals: HashMap<u16, usize>,
    /// The number of active series, which have points and no end.
    active: usize,
    /// The number of points of series beyond the limit for active ones.
    beyond: u64,
    /// The unique id of this table, which changes when series are removed and indexes move.
    id: u64,
}

/// The state of a series.
#[derive(Debug)]
struct Entry {
    /// `None` for a gauge and an up-down counter.
    total: Option<Total>,
    activity: Activity,
}

/// The values of a series since the start of its sums.
#[derive(Debug)]
pub(super) enum Total {
    Sum(f64),
    Histogram(Box<GrowingHistogram>),
}

/// Whether a series has points without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    /// It has no point since its end, or is never ended.
    Ended,
    /// It has points, and none since the last call of [`SeriesTable::end`].
    Silent,
    /// It has a point since the last call of [`SeriesTable::end`].
    Written,
}

/// Returns an id that no table had before.
fn new_id() -> u64 {
    static IDS: AtomicU64 = AtomicU64::new(0);
    IDS.fetch_add(1, Ordering::Relaxed) + 1
}

impl SeriesTable {
    pub(super) fn new(limits: SeriesLimits) -> Self {
        Self {
            limits,
            series: IndexMap::default(),
            totals: HashMap::new(),
            active: 0,
            beyond: 0,
            id: new_id(),
        }
    }

    /// Returns whether there are series that have not ended.
    pub(super) fn has_active(&self) -> bool {
        self.active > 0
    }

    /// Returns the total of a counter or a histogram, or `None` for a new one beyond the limit.
    #[inline]
    pub(super) fn total(&mut self, series: &mut PreparedSeries) -> Option<&mut Total> {
        let index = self.index(series, Some(Total::new))?;
        self.series[index].total.as_mut()
    }

    /// Records that a series has a point, so that it can be ended.
    #[inline]
    pub(super) fn mark_active(&mut self, series: &mut PreparedSeries) {
        if self.limits.ended == 0 {
            return;
        }
        let has_room = self.active < self.limits.ended;
        let activity = self
            .index(series, None)
            .map(|index| &mut self.series[index].activity);
        match activity {
            Some(activity) if has_room || *activity > Activity::Ended => {
                self.active += usize::from(*activity == Activity::Ended);
                *activity = Activity::Written;
            }
            _ => self.beyond += 1,
        }
    }

    /// Ends the active series up to an activity, and calls `end` with each of them.
    pub(super) fn end(&mut self, up_to: Activity, mut end: impl FnMut(&EncodedSeries)) -> EndedSeries {
        let active = self.active;
        self.series.retain(|series, entry| {
            if entry.activity > up_to {
                entry.activity = Activity::Silent;
            } else if entry.activity > Activity::Ended {
                end(series);
                entry.activity = Activity::Ended;
                self.active -= 1;
            }
            // The totals of counters and histograms continue.
            entry.activity > Activity::Ended || entry.total.is_some()
        });
        self.id = new_id();
        EndedSeries {
            ended: (active - self.active) as u64,
            beyond: std::mem::take(&mut self.beyond),
        }
    }

    /// Resets all totals.
    pub(super) fn restart(&mut self) {
        self.totals.clear();
        self.series.retain(|series, entry| {
            if let Some(total) = &mut entry.total {
                *total = Total::new(series);
                *self.totals.entry(series.metric().ordinal).or_default() += 1;
            }
            entry.activity > Activity::Ended
        });
        self.id = new_id();
    }

    /// Returns the index of a series. A new series gets the total that `total` returns; beyond the limit, it has no index.
    #[inline]
    fn index(
        &mut self,
        series: &mut PreparedSeries,
        total: Option<fn(&EncodedSeries) -> Total>,
    ) -> Option<usize> {
        if series.table != self.id {
            series.index = match self.series.get_index_of(&series.encoded) {
                Some(index) => index,
                None => self.add(&series.encoded, total)?,
            };
            series.table = self.id;
        }
        Some(series.index)
    }

    fn add(&mut self, key: &EncodedSeries, total: Option<fn(&EncodedSeries) -> Total>) -> Option<usize> {
        let mut active = self.active;
        let (count, limit) = match total {
            Some(_) => (
                self.totals.entry(key.metric().ordinal).or_default(),
                self.limits.per_metric,
            ),
            None => (&mut active, self.limits.ended),
        };
        if *count >= limit {
            return None;
        }
        *count += 1;
        let entry = Entry {
            total: total.map(|total| total(key)),
            activity: Activity::Ended,
        };
        Some(self.series.insert_full(key.clone(), entry).0)
    }
}

impl Total {
    fn new(key: &EncodedSeries) -> Self {
        match key.metric().instrument {
            Instrument::Histogram => Self::Histogram(Box::new(GrowingHistogram::for_series(key))),
            _ => Self::Sum(0.0),
        }
    }
}
