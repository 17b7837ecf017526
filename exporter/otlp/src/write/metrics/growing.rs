//! Histograms that grow by one observation at a time. The encoded point is kept: an observation changes only a few numbers in
//! it, and the rest is copied.

use pulsetrain_semconv::Metric;

use super::{EncodedSeries, HistogramParts, MetricsWriter, PointParts, histogram::Shape};
use crate::{
    UnixNanos,
    write::{buffer::Buffer, value::Attribute},
};

/// The cumulative observations of one series of a histogram with the bounds of its metric.
#[derive(Clone, Debug)]
pub struct GrowingHistogram {
    metric: &'static Metric,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// An encoded point with tag and length; its attributes, bounds and buckets are up to date.
    point: Vec<u8>,
    shape: Shape,
}

impl GrowingHistogram {
    /// Returns an empty histogram for the series with these attributes.
    pub fn new(metric: &'static Metric, attributes: &[Attribute<'_>]) -> Self {
        Self::for_series(&EncodedSeries::new(metric, attributes))
    }

    /// Returns an empty histogram for an encoded series.
    pub fn for_series(series: &EncodedSeries) -> Self {
        let nothing = HistogramParts {
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            bucket_counts: &vec![0; series.metric.bounds.len() + 1],
        };
        Self::with(series, nothing)
    }

    fn with(EncodedSeries { metric, attributes }: &EncodedSeries, parts: HistogramParts<'_>) -> Self {
        let mut point = Buffer::default();
        let shape = Shape::new(&parts, metric.bounds, attributes.len());
        shape.write(PointParts::default(), parts, metric.bounds, &mut point, |out| {
            out.append(attributes);
        });
        Self {
            metric,
            count: parts.count,
            sum: parts.sum,
            min: parts.min,
            max: parts.max,
            point: point.into_vec(),
            shape,
        }
    }

    /// Replaces the attributes by those of `series`, which has the same metric; the observations stay.
    pub fn relabel(&mut self, series: &EncodedSeries) {
        let buckets = 0..=self.metric.bounds.len();
        let bucket_counts: Vec<u64> = buckets
            .map(|bucket| u64::from_le_bytes(*self.shape.bucket_of(bucket, &mut self.point)))
            .collect();
        let parts = HistogramParts {
            count: self.count,
            sum: self.sum,
            min: self.min,
            max: self.max,
            bucket_counts: &bucket_counts,
        };
        *self = Self::with(series, parts);
    }

    /// Adds an observation without a point. The value is finite.
    pub fn record(&mut self, value: f64) {
        self.take(value);
    }

    /// Replaces the numbers of a copy of the point, except the counts of its buckets.
    #[inline]
    fn change(&self, start_unix_nanos: UnixNanos, time_unix_nanos: UnixNanos, point: &mut [u8]) {
        let head = [
            start_unix_nanos.0,
            time_unix_nanos.0,
            self.count,
            self.sum.to_bits(),
        ];
        let tail = [self.min, self.max].map(f64::to_bits);
        self.shape.change(head, tail, point);
    }

    /// Adds an observation, and returns the index of its bucket with the new count of that bucket.
    #[inline]
    fn take(&mut self, value: f64) -> (usize, u64) {
        // A bucket includes its upper bound (proto/metrics/v1/metrics.proto, `explicit_bounds`). There are so few bounds that
        // comparing with all of them is faster than a search.
        let bounds = self.metric.bounds.iter();
        let bucket = bounds.map(|bound| usize::from(*bound < value)).sum();
        self.count += 1;
        self.sum += value;
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
        let count = self.shape.bucket_of(bucket, &mut self.point);
        let grown = u64::from_le_bytes(*count) + 1;
        *count = grown.to_le_bytes();
        (bucket, grown)
    }
}

impl MetricsWriter {
    /// Adds a point with all observations of a histogram up to this value, as [`histogram`](Self::histogram) does. The value
    /// is finite.
    #[inline]
    pub fn observe(
        &mut self,
        histogram: &mut GrowingHistogram,
        (start_unix_nanos, time_unix_nanos): (UnixNanos, UnixNanos),
        value: f64,
    ) {
        // The previous point is copied before it is changed: copying bytes that were just written causes store-forwarding
        // stalls.
        let point = self.copy_of(histogram);
        let (bucket, in_it) = histogram.take(value);
        histogram.change(start_unix_nanos, time_unix_nanos, point);
        *histogram.shape.bucket_of(bucket, point) = in_it.to_le_bytes();
    }

    /// Adds a point with all observations of a histogram so far.
    pub fn histogram_of(
        &mut self,
        histogram: &GrowingHistogram,
        start_unix_nanos: UnixNanos,
        time_unix_nanos: UnixNanos,
    ) {
        let point = self.copy_of(histogram);
        histogram.change(start_unix_nanos, time_unix_nanos, point);
    }

    #[inline]
    fn copy_of(&mut self, histogram: &GrowingHistogram) -> &mut [u8] {
        self.points += 1;
        self.len += histogram.point.len();
        let group = self.group(histogram.metric);
        group.newest = group.points.len();
        group.points.append_piece(&histogram.point)
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_semconv::{attribute, metric};

    use super::*;
    use crate::write::{AttributeValue, Envelope};

    #[test]
    fn growing_histogram_equals_one_built_from_all_observations_after_each_of_them() {
        let metric = &metric::TRAIN_STEP_DURATION;
        let long = "x".repeat(200);
        for text in [None, Some("short"), Some(&long)] {
            let attributes: Vec<Attribute<'_>> = text
                .map(|text| (&attribute::TRAIN_CUSTOM_NAME, AttributeValue::Text(text)))
                .into_iter()
                .collect();
            let series = EncodedSeries::new(metric, &attributes);
            let mut growing = [
                GrowingHistogram::new(metric, &attributes),
                GrowingHistogram::for_series(&series),
            ];
            let mut relabelled = GrowingHistogram::new(metric, &[]);
            let mut writers = [(); 4].map(|()| MetricsWriter::default());
            let [plain, late, grown @ ..] = &mut writers;
            let (mut bucket_counts, mut seen) = (vec![0; metric.bounds.len() + 1], Vec::new());
            for (time, value) in (5..).zip([0.5, 0.0, metric.bounds[1], 1e12, 0.5]) {
                seen.push(value);
                bucket_counts[metric.bounds.iter().filter(|bound| **bound < value).count()] += 1;
                let parts = HistogramParts {
                    count: seen.len() as u64,
                    sum: seen.iter().sum(),
                    min: seen.iter().copied().fold(f64::INFINITY, f64::min),
                    max: seen.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    bucket_counts: &bucket_counts,
                };
                let point = PointParts {
                    start_unix_nanos: UnixNanos(time / 6),
                    time_unix_nanos: UnixNanos(time),
                    attributes: &attributes,
                };
                plain.histogram(metric, point, parts);
                relabelled.record(value);
                if time == 7 {
                    relabelled.relabel(&series);
                }
                if time >= 7 {
                    late.histogram_of(&relabelled, UnixNanos(time / 6), UnixNanos(time));
                } else {
                    late.histogram(metric, point, parts);
                }
                for (growing, writer) in growing.iter_mut().zip(grown.iter_mut()) {
                    writer.observe(growing, (UnixNanos(time / 6), UnixNanos(time)), value);
                }
            }
            let envelope = Envelope::new(&[], "", "", "");
            let [plain, grown @ ..] = writers.map(|mut writer| (writer.len(), writer.finish(&envelope)));
            assert_eq!(grown, [plain.clone(), plain.clone(), plain]);
        }
    }
}
