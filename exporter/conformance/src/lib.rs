//! Checks OTLP against the registry of `pulsetrain-semconv`.
//!
//! A metric, span, event or attribute must have a name of the registry, with its unit, instrument and type, and a signal must have its
//! required attributes. Resources and log records without an event name may have other attributes and names.

mod check;
mod report;
mod suggestion;

pub use check::check_file;
pub use report::Report;
pub use suggestion::nearest;
