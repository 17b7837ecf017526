//! The outcome of an import.

use pulsetrain_record::{Counts, Run, Skipped, UsedTimezone};

use crate::TailError;

/// What an import came to.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// The input.
    pub input: String,
    /// The format, with the sign that it was recognised by; nothing where it was not.
    pub format: Option<(&'static str, &'static str)>,
    /// The run.
    pub run: Run,
    /// What was recorded.
    pub counts: Counts,
    /// What was not.
    pub skipped: Skipped,
    /// What the user should know besides.
    pub notices: Vec<String>,
    /// Whether the notices list the keys that are kept as `train.custom`.
    pub lists_keys: bool,
    /// The zone of the log's times without one, where it has any.
    pub timezone: Option<UsedTimezone>,
    /// Why the input was not read, or not to its end.
    pub error: Option<TailError>,
}
