//! Encodes points of histograms with exponential buckets, which Prometheus stores as native histograms.

use pulsetrain_semconv::Metric;

use super::{Group, MetricsWriter, PointParts};
use crate::write::{
    buffer::{Buffer, delimited_len, varint_len},
    value,
};

/// Fields of `ExponentialHistogramDataPoint` (proto/metrics/v1/metrics.proto).
mod field {
    pub(super) const ATTRIBUTES: u32 = 1;
    pub(super) const START: u32 = 2;
    pub(super) const TIME: u32 = 3;
    pub(super) const COUNT: u32 = 4;
    pub(super) const SUM: u32 = 5;
    pub(super) const SCALE: u32 = 6;
    pub(super) const ZERO_COUNT: u32 = 7;
    pub(super) const POSITIVE: u32 = 8;
    pub(super) const NEGATIVE: u32 = 9;
    pub(super) const MIN: u32 = 12;
    pub(super) const MAX: u32 = 13;
    pub(super) const ZERO_THRESHOLD: u32 = 14;
    /// The fields of `Buckets`.
    pub(super) const OFFSET: u32 = 1;
    pub(super) const BUCKET_COUNTS: u32 = 2;
}

/// The contents of a histogram with exponential buckets since the start of its point.
#[derive(Clone, Copy, Debug)]
pub struct ExponentialParts<'a> {
    /// The number of observations.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The minimum, or NaN if it is unknown; NaN is not sent.
    pub min: f64,
    /// The maximum, or NaN if it is unknown; NaN is not sent.
    pub max: f64,
    /// The resolution: a bucket is the range from `base^index` to `base^(index + 1)`, and `base` is `2^(2^-scale)`.
    pub scale: i32,
    /// The number of observations closer to zero than `zero_threshold`.
    pub zero_count: u64,
    /// The width of the zero bucket on either side of zero.
    pub zero_threshold: f64,
    /// Observations above zero.
    pub positive: ExponentialBuckets<'a>,
    /// Observations below zero, by their absolute values.
    pub negative: ExponentialBuckets<'a>,
}

/// Counts of observations per bucket, on one side of zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExponentialBuckets<'a> {
    /// The index of the first bucket.
    pub offset: i32,
    /// The counts of that bucket and the following ones.
    pub counts: &'a [u64],
}

impl MetricsWriter {
    /// Adds a point of a histogram with exponential buckets; these points are a separate metric in the batch.
    pub fn exponential(
        &mut self,
        metric: &'static Metric,
        point: PointParts<'_>,
        parts: &ExponentialParts<'_>,
    ) {
        let mut fields = Buffer::default();
        value::attributes(field::ATTRIBUTES, point.attributes, &mut fields);
        fields.fixed64(field::START, point.start_unix_nanos.0);
        fields.fixed64(field::TIME, point.time_unix_nanos.0);
        fields.fixed64(field::COUNT, parts.count);
        fields.double(field::SUM, parts.sum);
        fields.uint(field::SCALE, zigzag(parts.scale));
        fields.fixed64(field::ZERO_COUNT, parts.zero_count);
        buckets(field::POSITIVE, parts.positive, &mut fields);
        buckets(field::NEGATIVE, parts.negative, &mut fields);
        for (number, value) in [(field::MIN, parts.min), (field::MAX, parts.max)] {
            if !value.is_nan() {
                fields.double(number, value);
            }
        }
        fields.double(field::ZERO_THRESHOLD, parts.zero_threshold);
        self.points += 1;
        self.len += delimited_len(1, fields.len());
        let out = self.exponential_group(metric).begin(fields.len());
        out.append(fields.as_slice());
    }

    /// Returns the group by a linear search: few metrics have such points, and rarely.
    fn exponential_group(&mut self, metric: &'static Metric) -> &mut Group {
        let is_its = |group: &Group| group.is_exponential && group.metric.ordinal == metric.ordinal;
        let place = self.groups.iter().position(is_its).unwrap_or_else(|| {
            self.groups.push(Group::new(metric, true));
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }
}

fn buckets(number: u32, buckets: ExponentialBuckets<'_>, out: &mut Buffer) {
    if buckets.counts.is_empty() {
        return;
    }
    let counts_len = buckets.counts.iter().map(|count| varint_len(*count)).sum();
    let offset = zigzag(buckets.offset);
    let len = 1 + varint_len(offset) + delimited_len(field::BUCKET_COUNTS, counts_len);
    out.delimited_head(number, len);
    out.uint(field::OFFSET, offset);
    out.delimited_head(field::BUCKET_COUNTS, counts_len);
    buckets.counts.iter().for_each(|count| out.varint(*count));
}

/// Returns the wire form of `sint32`: numbers close to zero of either sign are short.
fn zigzag(value: i32) -> u64 {
    u64::from(((value << 1) ^ (value >> 31)) as u32)
}
