//! Which series a run has told of, so that they can be ended with it.
//!
//! Only who follows a run keeps this: a finished log does not say whether its run is over.

use std::collections::HashSet;

use pulsetrain_otlp::write::{Attribute, EncodedSeries, MetricsWriter};
use pulsetrain_semconv::Metric;

use super::{Recorder, series::series_key};

/// How long after the last point of a run its series end: at once, and still later for who counts in milliseconds.
const AFTER_NANOS: u64 = 1_000_000;

/// The series that points were recorded for, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Told {
    series: Vec<EncodedSeries>,
    /// By the ordinal of the metric, what tells its series from one another: some metrics have thousands.
    known: Vec<HashSet<String>>,
}

impl Told {
    /// Notes the series of a point.
    pub(super) fn note(&mut self, metric: &'static Metric, attributes: &[Attribute<'_>]) {
        let key = series_key(attributes);
        if self.is_new(metric, &key) {
            self.series.push(EncodedSeries::new(metric, attributes));
        }
    }

    /// Notes the series of a point, which `key` tells from the others of its metric that are noted so.
    pub(super) fn note_encoded(&mut self, series: &EncodedSeries, key: &str) {
        if self.is_new(series.metric(), key) {
            self.series.push(series.clone());
        }
    }

    fn is_new(&mut self, metric: &Metric, key: &str) -> bool {
        let ordinal = usize::from(metric.ordinal);
        if self.known.len() <= ordinal {
            self.known.resize_with(ordinal + 1, HashSet::new);
        }
        let known = &mut self.known[ordinal];
        !known.contains(key) && known.insert(key.to_owned())
    }

    /// Ends all of them, and says how many they were.
    pub(super) fn end(&mut self, time_unix_nanos: u64, writer: &mut MetricsWriter) -> u64 {
        let all = std::mem::take(self).series;
        for series in &all {
            writer.end_of_encoded_series(series, time_unix_nanos);
        }
        all.len() as u64
    }
}

impl Recorder<'_> {
    /// The same recorder, which keeps in mind what [`end_series`](Self::end_series) ends.
    pub(crate) fn keeping_series(mut self) -> Self {
        self.told = Some(Told::default());
        self
    }

    /// Whether the run has series that have not ended.
    pub(crate) fn has_series(&self) -> bool {
        let of_ranks = self.ranks.values().map(|rank| &rank.told);
        let mut all = of_ranks.chain([&self.told]).flatten();
        all.any(|told| !told.series.is_empty())
    }

    /// Forgets the series of the run: they have ended before.
    pub(crate) fn forget_series(&mut self) {
        let of_ranks = self.ranks.values_mut().map(|rank| &mut rank.told);
        let all = of_ranks.chain([&mut self.told]).flatten();
        all.for_each(|told| *told = Told::default());
    }

    /// Ends every series of the run, in all ranks: just after its last point, whenever that is noticed.
    pub(crate) fn end_series(&mut self) {
        let time_unix_nanos = self.last_unix_nanos.saturating_add(AFTER_NANOS);
        let own = self.told.as_mut();
        let mut ended = own.map_or(0, |told| told.end(time_unix_nanos, &mut self.metrics));
        for rank in self.ranks.values_mut() {
            ended += rank.end_series(time_unix_nanos);
        }
        self.counts.points += ended;
    }
}
