//! Writes the page from the store in chunks.
//!
//! A chunk is a few hundred series of one family, written under the lock of the family. No lock is held
//! between chunks, so neither a slow reader nor a large page delays new points.

mod classic;
mod number;
mod page;
mod protobuf;
mod sample_name;
mod text;

pub(super) use page::{Format, Page};
pub(super) use text::TextFamily;

use super::store::value::Native;

/// Returns the buckets of an exponential histogram, `+Inf` included: bounds and cumulative counts.
pub(super) fn classic_buckets(native: &Native) -> impl Iterator<Item = (f64, u64)> {
    let last = (f64::INFINITY, native.count);
    let buckets = classic::buckets(native).into_iter();
    buckets
        .map(|bucket| (bucket.bound, bucket.cumulative))
        .chain([last])
}
