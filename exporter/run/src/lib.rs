//! The run of a message, for every reader of OTLP: who sent it, and how its values grow.
//!
//! | question | answer |
//! |---|---|
//! | the run, rank and host of a resource or a point | [`RunOrigin`] |
//! | an attribute as text or as an integer, of any type | [`text`], [`integer`], [`label`] |
//! | the identity of a series | [`SeriesKey`] |
//! | the growth of a series with each point: cumulative, delta, reset, repeated | [`SeriesTracker`], [`SeriesTrackers`] |
//! | the step in force at a time | [`StepTimes`] |
//! | a curve in one line of text | [`sparkline`] |
//!
//! Derivations, sinks and converters ask here, so that they agree. This crate keeps no metric's name but that of the step.
//!
//! ```
//! use pulsetrain_otlp::{WireError, walk};
//! use pulsetrain_run::{RunOrigin, SeriesKey, SeriesPoint, SeriesTrackers};
//!
//! /// Prints the increase of every sum and distribution of a message.
//! fn increases(message: &[u8], trackers: &mut SeriesTrackers) -> Result<Vec<String>, WireError> {
//!     let mut lines = Vec::new();
//!     for resource in walk::metrics(message) {
//!         let resource = resource?;
//!         let rank = RunOrigin::from_attributes(resource.attributes()).rank;
//!         for metric in resource.items() {
//!             let metric = metric?;
//!             let key = SeriesKey::new(metric.name.as_bytes()).with_attributes(resource.attributes())?;
//!             metric.try_each_point(|point| {
//!                 let key = key.with_attributes(point.attributes())?;
//!                 let point = SeriesPoint::from_point(&point);
//!                 if let Some(increase) = point.and_then(|point| trackers.observe(key, &point)) {
//!                     lines.push(format!("rank {rank:?}: {} +{}", metric.name, increase.sum));
//!                 }
//!                 Ok::<_, WireError>(())
//!             })?;
//!         }
//!     }
//!     Ok(lines)
//! }
//! # assert_eq!(increases(&[], &mut SeriesTrackers::new(10)).unwrap(), [""; 0]);
//! ```

mod attribute_value;
mod increase;
mod recent_deltas;
mod run_origin;
mod series_key;
mod series_trackers;
mod sparkline;
mod step_times;

pub use attribute_value::{MAX_NAME_BYTES, integer, label, text};
pub use increase::{Increase, IncreaseKind, SeriesPoint, SeriesTracker};
pub use recent_deltas::RecentDeltas;
pub use run_origin::RunOrigin;
pub use series_key::SeriesKey;
pub use series_trackers::SeriesTrackers;
pub use sparkline::sparkline;
pub use step_times::StepTimes;
