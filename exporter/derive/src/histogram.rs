//! What a histogram has come to: the cumulative contents of one series.

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
    /// Nothing observed yet.
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

    /// The metric that it is of.
    pub(crate) fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Takes an observation in.
    pub(crate) fn observe(&mut self, value: f64) {
        // A bucket holds what is at most its upper bound (proto/metrics/v1/metrics.proto, `explicit_bounds`).
        let bucket = self.metric.bounds.partition_point(|bound| *bound < value);
        self.bucket_counts[bucket] += 1;
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The contents as they are written.
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
