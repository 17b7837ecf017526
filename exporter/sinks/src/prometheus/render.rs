//! The page: everything in the store, piece by piece.
//!
//! A piece is a few hundred series of one family, written while the family is locked. Between pieces nothing is locked, so
//! neither a slow reader nor a large page holds up what comes in.

mod classic;
pub(super) mod go_float;
mod number;
mod page;
mod protobuf;
mod sample_name;
mod text;

pub(super) use page::{Format, Page};
pub(super) use text::TextFamily;

use super::store::value::Native;

/// The buckets of an exponential histogram, `+Inf` included: bounds, and the observations up to each.
pub(super) fn classic_buckets(native: &Native) -> impl Iterator<Item = (f64, u64)> {
    let last = (f64::INFINITY, native.count);
    let buckets = classic::buckets(native).into_iter();
    buckets
        .map(|bucket| (bucket.bound, bucket.cumulative))
        .chain([last])
}
