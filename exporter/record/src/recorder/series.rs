//! What sums and histograms have come to since the run began.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

use pulsetrain_otlp::write::{Attribute, EncodedSeries, GrowingHistogram, Value};
use pulsetrain_semconv::Metric;

/// The most series of one metric that are kept of one rank.
pub(super) const MOST_SERIES: usize = 1 << 14;

/// A series of a metric: its key and its contents.
#[derive(Debug)]
struct Series<T> {
    key: String,
    contents: T,
}

/// Something for each series, by the ordinal of its metric; a metric has few.
#[derive(Debug)]
pub(super) struct PerSeries<T> {
    by_metric: Vec<Vec<Series<T>>>,
    /// The unique number of this table.
    table: u64,
}

/// Tables so far.
static TABLES: AtomicU64 = AtomicU64::new(0);

impl<T> Default for PerSeries<T> {
    fn default() -> Self {
        Self {
            by_metric: Vec::new(),
            table: TABLES.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}

impl<T> PerSeries<T> {
    /// Returns what there is for a series, made by `new` where it is seen for the first time; `None` for a new series beyond the
    /// limit.
    pub(super) fn of(
        &mut self,
        metric: &Metric,
        attributes: &[Attribute<'_>],
        new: impl FnOnce() -> T,
    ) -> Option<&mut T> {
        let all = self.of_metric(metric);
        let place = match place(all, attributes) {
            Some(place) => place,
            None => add(all, series_key(attributes), new)?,
        };
        Some(&mut all[place].contents)
    }

    /// What there is for a series that was found before; `new` as for any other.
    #[inline]
    fn of_known(&mut self, metric: &Metric, key: &mut SeriesKey, new: impl FnOnce() -> T) -> Option<&mut T> {
        let table = self.table;
        let all = self.of_metric(metric);
        // Each rank has its own table, and a reset of the sums begins a new one.
        if key.table != table {
            key.place = match all.iter().position(|series| series.key == key.text) {
                Some(place) => place,
                None => add(all, key.text.clone(), new)?,
            };
            key.table = table;
        }
        Some(&mut all[key.place].contents)
    }

    #[inline]
    fn of_metric(&mut self, metric: &Metric) -> &mut Vec<Series<T>> {
        let ordinal = usize::from(metric.ordinal);
        if self.by_metric.len() <= ordinal {
            self.by_metric.resize_with(ordinal + 1, Vec::new);
        }
        &mut self.by_metric[ordinal]
    }
}

/// Adds a series, and returns its place; `None` beyond the limit.
fn add<T>(all: &mut Vec<Series<T>>, key: String, new: impl FnOnce() -> T) -> Option<usize> {
    if all.len() >= MOST_SERIES {
        return None;
    }
    all.push(Series { key, contents: new() });
    Some(all.len() - 1)
}

/// The key of a series within its metric, with the index where it was found last.
#[derive(Debug)]
pub(super) struct SeriesKey {
    text: String,
    /// The table that the place is of; zero before the first.
    table: u64,
    place: usize,
}

impl SeriesKey {
    /// The key of the series with these attributes.
    pub(super) fn new(attributes: &[Attribute<'_>]) -> Self {
        Self {
            text: series_key(attributes),
            table: 0,
            place: 0,
        }
    }

    /// The attributes as one string that is equal for equal attributes only.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

fn place<T>(all: &[Series<T>], attributes: &[Attribute<'_>]) -> Option<usize> {
    if attributes.is_empty() {
        // Not by a comparison with "": to compare nothing with nothing takes longer than all else that is done here.
        return all.iter().position(|series| series.key.is_empty());
    }
    let key = series_key(attributes);
    all.iter().position(|series| series.key == key)
}

/// What the sums and histograms of a run have come to.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    sums: PerSeries<f64>,
    histograms: PerSeries<GrowingHistogram>,
}

impl SeriesTable {
    /// Adds to a sum and returns what it has come to.
    pub(super) fn add(&mut self, metric: &Metric, attributes: &[Attribute<'_>], value: f64) -> Option<f64> {
        Some(grow(self.sums.of(metric, attributes, || 0.0)?, value))
    }

    /// Adds to a sum that was found before.
    pub(super) fn add_known(&mut self, metric: &Metric, key: &mut SeriesKey, value: f64) -> Option<f64> {
        Some(grow(self.sums.of_known(metric, key, || 0.0)?, value))
    }

    /// What a histogram has observed.
    pub(super) fn histogram(
        &mut self,
        metric: &'static Metric,
        attributes: &[Attribute<'_>],
    ) -> Option<&mut GrowingHistogram> {
        let new = || GrowingHistogram::new(metric, attributes);
        self.histograms.of(metric, attributes, new)
    }

    /// What a histogram has observed that was found before.
    pub(super) fn known_histogram(
        &mut self,
        series: &EncodedSeries,
        key: &mut SeriesKey,
    ) -> Option<&mut GrowingHistogram> {
        let new = || GrowingHistogram::of(series);
        self.histograms.of_known(series.metric(), key, new)
    }
}

fn grow(sum: &mut f64, value: f64) -> f64 {
    *sum += value;
    *sum
}

/// The attributes as one string that is equal for equal attributes only.
pub(super) fn series_key(attributes: &[Attribute<'_>]) -> String {
    if attributes.is_empty() {
        return String::new();
    }
    let mut key = String::with_capacity(64);
    for (attribute, value) in attributes {
        key.push_str(attribute.name);
        let written = match value {
            // The length, so that no text can pass for the end of one and the beginning of another.
            Value::Text(text) => write!(key, "={}:{text};", text.len()),
            other => write!(key, "={other:?};"),
        };
        written.expect("invariant: writing into a String never fails");
    }
    key
}
