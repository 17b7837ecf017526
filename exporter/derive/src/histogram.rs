//! The cumulative state of one histogram series.

use pulsetrain_otlp::write::HistogramParts;
use pulsetrain_semconv::Metric;

/// The observations of one series since its start.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    metric: &'static Metric,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    bucket_counts: Vec<u64>,
}

impl Histogram {
    /// Returns a histogram without observations.
    pub(crate) fn new(metric: &'static Metric) -> Self {
        Self {
            metric,
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            bucket_counts: vec![0; metric.bounds.len() + 1],
        }
    }

    /// Returns its metric.
    pub(crate) fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Adds an observation.
    pub(crate) fn observe(&mut self, value: f64) {
        // The upper bound of a bucket is inclusive (proto/metrics/v1/metrics.proto, `explicit_bounds`).
        let bucket = self.metric.bounds.partition_point(|bound| *bound < value);
        self.bucket_counts[bucket] += 1;
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the state for encoding.
    pub(crate) fn parts(&self) -> HistogramParts<'_> {
        HistogramParts {
            count: self.count,
            sum: self.sum,
            min: self.min,
            max: self.max,
            bucket_counts: &self.bucket_counts,
        }
    }
}
