//! Histograms that grow by one observation at a time. The point of one is kept as it is written: an observation changes a few
//! numbers of it, and the rest is copied.

use pulsetrain_semconv::Metric;

use super::{
    EncodedSeries, HistogramParts, MetricsWriter, PointParts,
    histogram::{self, Shape},
};
use crate::write::{
    buffer::Buffer,
    value::{self, Attribute},
};

/// What a series of a histogram has observed since it began; its bounds are its metric's.
#[derive(Clone, Debug)]
pub struct GrowingHistogram {
    metric: &'static Metric,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// Its newest point, with tag and length.
    point: Vec<u8>,
    shape: Shape,
}

impl GrowingHistogram {
    /// Nothing so far of the series that these attributes tell from others of the metric.
    pub fn new(metric: &'static Metric, attributes: &[Attribute<'_>]) -> Self {
        let mut encoded = Buffer::default();
        value::attributes(histogram::field::ATTRIBUTES, attributes, &mut encoded);
        Self::around(metric, encoded.as_slice())
    }

    /// Nothing so far of a series.
    pub fn of(series: &EncodedSeries) -> Self {
        Self::around(series.metric, &series.attributes)
    }

    fn around(metric: &'static Metric, attributes: &[u8]) -> Self {
        let nothing = HistogramParts {
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            bucket_counts: &vec![0; metric.bounds.len() + 1],
        };
        let mut point = Buffer::default();
        let shape = Shape::of(&nothing, metric.bounds, attributes.len());
        shape.write(PointParts::default(), nothing, metric.bounds, &mut point, |out| {
            out.append(attributes);
        });
        Self {
            metric,
            count: nothing.count,
            sum: nothing.sum,
            min: nothing.min,
            max: nothing.max,
            point: point.into_vec(),
            shape,
        }
    }

    /// Takes in an observation, which is finite.
    #[inline]
    pub fn observe(&mut self, value: f64) {
        // A bucket holds what is at most its upper bound (proto/metrics/v1/metrics.proto, `explicit_bounds`).
        let bucket = self.metric.bounds.partition_point(|bound| *bound < value);
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.shape.count_in(bucket, &mut self.point);
    }

    /// The point that says all of it.
    #[inline]
    fn point(&mut self, start_unix_nanos: u64, time_unix_nanos: u64) -> &[u8] {
        let Self { count, sum, .. } = *self;
        let head = [start_unix_nanos, time_unix_nanos, count, sum.to_bits()];
        let tail = [self.min, self.max].map(f64::to_bits);
        self.shape.change(head, tail, &mut self.point);
        &self.point
    }
}

impl MetricsWriter {
    /// Adds a point that says what a histogram has observed, as [`histogram`](Self::histogram) does.
    #[inline]
    pub fn observed(
        &mut self,
        histogram: &mut GrowingHistogram,
        start_unix_nanos: u64,
        time_unix_nanos: u64,
    ) {
        let metric = histogram.metric;
        let point = histogram.point(start_unix_nanos, time_unix_nanos);
        self.points += 1;
        self.len += point.len();
        let group = self.group(metric);
        group.newest = group.points.len();
        group.points.append(point);
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_semconv::{attribute, metric};

    use super::*;
    use crate::write::{Envelope, Value};

    #[test]
    fn a_growing_histogram_is_at_each_moment_one_of_all_that_it_has_observed() {
        let metric = &metric::TRAIN_STEP_DURATION;
        let long = "x".repeat(200);
        for text in [None, Some("short"), Some(&long)] {
            let attributes: Vec<Attribute<'_>> = text
                .map(|text| (&attribute::TRAIN_CUSTOM_NAME, Value::Text(text)))
                .into_iter()
                .collect();
            let series = EncodedSeries::new(metric, &attributes);
            let mut growing = [
                GrowingHistogram::new(metric, &attributes),
                GrowingHistogram::of(&series),
            ];
            let mut writers = [(); 3].map(|()| MetricsWriter::default());
            let [plain, grown @ ..] = &mut writers;
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
                    start_unix_nanos: time / 6,
                    time_unix_nanos: time,
                    attributes: &attributes,
                };
                plain.histogram(metric, point, parts);
                for (growing, writer) in growing.iter_mut().zip(grown.iter_mut()) {
                    growing.observe(value);
                    writer.observed(growing, time / 6, time);
                }
            }
            let envelope = Envelope::new(&[], "", "", "");
            let [plain, grown @ ..] = writers.map(|mut writer| (writer.len(), writer.finish(&envelope)));
            assert_eq!(grown, [plain.clone(), plain]);
        }
    }
}
