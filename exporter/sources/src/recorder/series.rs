//! What sums and histograms have come to since the run began.

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

/// The series of every metric, by ordinal; a metric has few.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    sums: Vec<Vec<Series<f64>>>,
    histograms: Vec<Vec<Series<Observed>>>,
}

impl SeriesTable {
    /// Adds to a sum and says what it has come to.
    pub(super) fn add(&mut self, metric: &Metric, attributes: &[Attribute<'_>], value: f64) -> f64 {
        let sum = find(&mut self.sums, metric, attributes, || 0.0);
        *sum += value;
        *sum
    }

    /// Takes an observation into a histogram and says what it has come to.
    pub(super) fn observe(&mut self, metric: &Metric, attributes: &[Attribute<'_>], value: f64) -> &Observed {
        let seen = find(&mut self.histograms, metric, attributes, || Observed {
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

fn find<'a, T>(
    table: &'a mut Vec<Vec<Series<T>>>,
    metric: &Metric,
    attributes: &[Attribute<'_>],
    new: impl FnOnce() -> T,
) -> &'a mut T {
    let ordinal = usize::from(metric.ordinal);
    if table.len() <= ordinal {
        table.resize_with(ordinal + 1, Vec::new);
    }
    let all = &mut table[ordinal];
    let key = if attributes.is_empty() {
        String::new()
    } else {
        series_key(attributes)
    };
    let place = all
        .iter()
        .position(|series| series.key == key)
        .unwrap_or_else(|| {
            all.push(Series { key, contents: new() });
            all.len() - 1
        });
    &mut all[place].contents
}

/// The attributes as one string that is equal for equal attributes only.
pub(super) fn series_key(attributes: &[Attribute<'_>]) -> String {
    let pairs: Vec<(&str, &Value<'_>)> = attributes
        .iter()
        .map(|(attribute, value)| (attribute.name, value))
        .collect();
    format!("{pairs:?}")
}
