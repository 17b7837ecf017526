//! Encodes points of explicit-bucket histograms, and the offsets of their fields.

use super::PointParts;
use crate::write::buffer::{Buffer, delimited_len};

/// Fields of `HistogramDataPoint` (proto/metrics/v1/metrics.proto).
pub(super) mod field {
    pub(in super::super) const START: u32 = 2;
    pub(in super::super) const TIME: u32 = 3;
    pub(in super::super) const COUNT: u32 = 4;
    pub(in super::super) const SUM: u32 = 5;
    pub(in super::super) const BUCKET_COUNTS: u32 = 6;
    pub(in super::super) const EXPLICIT_BOUNDS: u32 = 7;
    pub(in super::super) const ATTRIBUTES: u32 = 9;
    pub(in super::super) const FLAGS: u32 = 10;
    pub(in super::super) const MIN: u32 = 11;
    pub(in super::super) const MAX: u32 = 12;
}

/// The contents of a histogram since the start of its point.
#[derive(Clone, Copy, Debug)]
pub struct HistogramParts<'a> {
    /// The number of observations.
    pub count: u64,
    /// Their sum, or NaN if it is unknown; NaN is not sent.
    pub sum: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// Counts of observations per bucket: one more bucket than there are bounds.
    pub bucket_counts: &'a [u64],
}

/// The size of a field of wire type 1, in bytes.
const FIXED: usize = 9;

/// The offsets in a point of the numbers that an observation changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The size of the point with its tag and its length.
    pub(super) len: usize,
    /// The offset of the fields start, time, count and sum.
    head: usize,
    /// The offset of the first bucket's count.
    counts: usize,
}

impl Shape {
    /// Returns the shape of a point with these contents and bounds, and `attributes_len` bytes of attributes.
    #[inline]
    pub(super) fn new(parts: &HistogramParts<'_>, bounds: &[f64], attributes_len: usize) -> Self {
        let counts_len = 8 * parts.bucket_counts.len();
        let head_len = FIXED * if parts.sum.is_nan() { 3 } else { 4 };
        let counts_field = delimited_len(field::BUCKET_COUNTS, counts_len);
        let bounds_field = delimited_len(field::EXPLICIT_BOUNDS, 8 * bounds.len());
        let body = head_len + counts_field + bounds_field + attributes_len + 2 * FIXED;
        let len = delimited_len(1, body);
        let head = len - body;
        Self {
            len,
            head,
            counts: head + head_len + counts_field - counts_len,
        }
    }

    /// Writes a point of this shape around its attributes.
    #[inline]
    pub(super) fn write(
        &self,
        point: PointParts<'_>,
        parts: HistogramParts<'_>,
        bounds: &[f64],
        out: &mut Buffer,
        write_attributes: impl FnOnce(&mut Buffer),
    ) {
        // One reservation for all fields: a capacity check for each of many small fields takes longer than writing them.
        out.reserve(self.len);
        out.delimited_head(1, self.len - self.head);
        out.fixed64(field::START, point.start_unix_nanos.0);
        out.fixed64(field::TIME, point.time_unix_nanos.0);
        out.fixed64(field::COUNT, parts.count);
        if !parts.sum.is_nan() {
            out.double(field::SUM, parts.sum);
        }
        out.delimited_head(field::BUCKET_COUNTS, 8 * parts.bucket_counts.len());
        out.append_words(parts.bucket_counts, |count| count.to_le_bytes());
        out.delimited_head(field::EXPLICIT_BOUNDS, 8 * bounds.len());
        out.append_words(bounds, |bound| bound.to_le_bytes());
        write_attributes(out);
        out.double(field::MIN, parts.min);
        out.double(field::MAX, parts.max);
    }

    /// Returns the count of a bucket of a point.
    #[inline]
    pub(super) fn bucket_of<'p>(&self, bucket: usize, point: &'p mut [u8]) -> &'p mut [u8; 8] {
        point[self.counts + 8 * bucket..]
            .first_chunk_mut()
            .expect("invariant: a point has a count for each bucket")
    }

    /// Replaces start, time, count and sum of a point that has a sum, and its minimum and maximum.
    #[inline]
    pub(super) fn change(&self, head: [u64; 4], tail: [u64; 2], point: &mut [u8]) {
        let fields = point[self.head..]
            .first_chunk_mut::<{ 4 * FIXED }>()
            .expect("invariant: a point has four numbers in front");
        change(head, fields);
        let fields = point
            .last_chunk_mut::<{ 2 * FIXED }>()
            .expect("invariant: a point has two numbers at its end");
        change(tail, fields);
    }
}

/// Replaces the numbers of fields, without their tags.
#[inline]
fn change<const N: usize>(numbers: [u64; N], fields: &mut [u8]) {
    for (field, number) in fields.chunks_exact_mut(FIXED).zip(numbers) {
        field[1..].copy_from_slice(&number.to_le_bytes());
    }
}
