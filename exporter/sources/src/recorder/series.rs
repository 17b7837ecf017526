//! What sums and histograms have come to since the run began.

use std::fmt::Write;

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::Metric;

/// The contents of a histogram.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) bucket_counts: Vec<u64>,
}

/// A series of a metric: what tells it from the others, and its contents.
#[derive(Debug)]
struct Series<T> {
    key: String,
    contents: T,
}

/// Something for each series, by the ordinal of its metric; a metric has few.
#[derive(Debug)]
pub(super) struct PerSeries<T>(Vec<Vec<Series<T>>>);

impl<T> Default for PerSeries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerSeries<T> {
    /// What there is for a series; `new` where it is seen for the first time.
    pub(super) fn of(
        &mut self,
        metric: &Metric,
        attributes: &[Attribute<'_>],
        new: impl FnOnce() -> T,
    ) -> &mut T {
        let ordinal = usize::from(metric.ordinal);
        if self.0.len() <= ordinal {
            self.0.resize_with(ordinal + 1, Vec::new);
        }
        let all = &mut self.0[ordinal];
        let place = place(all, attributes).unwrap_or_else(|| {
            let key = series_key(attributes);
            all.push(Series { key, contents: new() });
            all.len() - 1
        });
        &mut all[place].contents
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
    histograms: PerSeries<Observed>,
}

impl SeriesTable {
    /// Adds to a sum and says what it has come to.
    pub(super) fn add(&mut self, metric: &Metric, attributes: &[Attribute<'_>], value: f64) -> f64 {
        let sum = self.sums.of(metric, attributes, || 0.0);
        *sum += value;
        *sum
    }

    /// Takes an observation into a histogram and says what it has come to.
    pub(super) fn observe(&mut self, metric: &Metric, attributes: &[Attribute<'_>], value: f64) -> &Observed {
        let seen = self.histograms.of(metric, attributes, || Observed {
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            bucket_counts: vec![0; metric.bounds.len() + 1],
        });
        // A bucket holds what is at most its upper bound (proto/metrics/v1/metrics.proto, `explicit_bounds`).
        let bucket = metric.bounds.partition_point(|bound| *bound < value);
        seen.bucket_counts[bucket] += 1;
        seen.count += 1;
        seen.sum += value;
        seen.min = seen.min.min(value);
        seen.max = seen.max.max(value);
        seen
    }
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
