//! The visitor of messages: every point, span and log record, in the order of the bytes.
//!
//! [`metrics`], [`spans`] and [`records`] iterate over the resources of a message, and each resource over its items.
//! [`Metric::each_point`](crate::view::Metric::each_point) and its fallible form
//! [`try_each_point`](crate::view::Metric::try_each_point) visit the points of a metric as [`AnyPoint`]s, so that all readers of
//! points have the same five kinds, temporalities and ends of series. Nothing is copied or allocated.
//!
//! ```
//! use pulsetrain_otlp::{WireError, walk};
//!
//! /// Returns the newest time of a message of metrics, in nanoseconds since 1970.
//! fn newest(message: &[u8]) -> Result<u64, WireError> {
//!     let mut newest = 0;
//!     for resource in walk::metrics(message) {
//!         for metric in resource?.items() {
//!             metric?.each_point(|point| newest = newest.max(point.time().0))?;
//!         }
//!     }
//!     Ok(newest)
//! }
//! # assert_eq!(newest(&[]), Ok(0));
//! ```

mod items;
mod points;

pub use items::{InResource, InScope, Item, metrics, records, spans};
pub use points::{AnyPoint, Distribution, PointData, PointKind, PointValue};

#[cfg(test)]
mod tests;
