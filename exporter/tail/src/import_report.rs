//! The outcome of an import.

use pulsetrain_record::{Counts, ParseReport, Run, UsedTimezone};

use crate::TailError;

/// The outcome of an import.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// The input.
    pub input: String,
    /// The format and the signature that it was detected by, or `None`.
    pub format: Option<(&'static str, &'static str)>,
    /// The run.
    pub run: Run,
    /// The ranks of the records, in the order of their first ones.
    pub ranks: Vec<i64>,
    /// The counts of recorded items.
    pub counts: Counts,
    /// The skipped records.
    pub skipped: ParseReport,
    /// Further notices for the user.
    pub notices: Vec<String>,
    /// Whether the notices list the keys that become `train.custom`.
    pub lists_keys: bool,
    /// The zone of times without one, or `None` if the log has none.
    pub timezone: Option<UsedTimezone>,
    /// The error that ended the import, or `None`.
    pub error: Option<TailError>,
}
