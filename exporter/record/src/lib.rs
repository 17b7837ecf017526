//! Training values as OTLP.
//!
//! A [`Run`] identifies a training run; ids of its traces and spans are derived from it, so that all ranks agree on them
//! without communication. A [`Recorder`] encodes values, spans and events of the run as batches of OTLP. What cannot be
//! recorded is counted in [`ParseReport`], by reason and place.
//!
//! A [`SeriesWriter`] writes the series of one resource; the recorder has one for each rank. Sources and stages without a run use
//! it directly.

pub mod ids;
pub mod key_cache;
pub mod launcher;
mod parse_report;
mod recorder;
mod run;
pub mod series;
mod timezone;

pub use ids::{eval_span, lifecycle_trace, step_span, step_trace};
pub use parse_report::{ParseReport, Problem, SkipReason, SourcePosition};
pub use recorder::{AttemptState, Counts, LocalClock, MAX_CUSTOM_NAMES, Rank, Recorder};
pub use run::{Run, start_in_name};
pub use series::{PreparedSeries, SeriesLimits, SeriesWriter};
pub use timezone::{LoggedTime, Timezone, TimezoneError, TimezoneReason, UsedTimezone};
