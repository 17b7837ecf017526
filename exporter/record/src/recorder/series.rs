//! The values of sums and histograms since the start of the run, by series.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use indexmap::IndexMap;
use pulsetrain_otlp::write::{EncodedSeries, GrowingHistogram};

use super::PreparedSeries;

/// The limit for the series of one metric on one rank.
pub(super) const MAX_SERIES: usize = 1 << 14;

/// Values by series.
#[derive(Debug)]
pub(super) struct PerSeries<T> {
    contents: IndexMap<EncodedSeries, T, foldhash::fast::RandomState>,
    /// The number of series of each metric, by its ordinal.
    counts: HashMap<u16, usize>,
    /// The unique id of this table.
    table: u64,
}

/// The number of tables created so far.
static TABLES: AtomicU64 = AtomicU64::new(0);

impl<T> Default for PerSeries<T> {
    fn default() -> Self {
        Self {
            contents: IndexMap::default(),
            counts: HashMap::new(),
            table: TABLES.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}

impl<T> PerSeries<T> {
    /// Returns the value of a series, which `new` creates for a new series, or `None` for a new series beyond the limit.
    #[inline]
    pub(super) fn of(
        &mut self,
        series: &mut PreparedSeries,
        new: impl FnOnce(&EncodedSeries) -> T,
    ) -> Option<&mut T> {
        // Each rank has its own table, and a reset of the sums begins a new one.
        if series.table != self.table {
            series.index = match self.contents.get_index_of(&series.encoded) {
                Some(index) => index,
                None => self.add(&series.encoded, new)?,
            };
            series.table = self.table;
        }
        Some(&mut self.contents[series.index])
    }

    /// Adds a series and returns its index, or `None` beyond the limit.
    fn add(&mut self, series: &EncodedSeries, new: impl FnOnce(&EncodedSeries) -> T) -> Option<usize> {
        let count = self.counts.entry(series.metric().ordinal).or_default();
        if *count >= MAX_SERIES {
            return None;
        }
        *count += 1;
        Some(self.contents.insert_full(series.clone(), new(series)).0)
    }
}

/// The values of the sums and histograms of a run.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    sums: PerSeries<f64>,
    histograms: PerSeries<GrowingHistogram>,
}

impl SeriesTable {
    /// Adds to a sum and returns its value.
    #[inline]
    pub(super) fn add(&mut self, series: &mut PreparedSeries, value: f64) -> Option<f64> {
        let sum = self.sums.of(series, |_| 0.0)?;
        *sum += value;
        Some(*sum)
    }

    /// Returns the observations of a histogram.
    #[inline]
    pub(super) fn histogram(&mut self, series: &mut PreparedSeries) -> Option<&mut GrowingHistogram> {
        self.histograms.of(series, GrowingHistogram::of)
    }
}
