//! The outcome of an import.

use std::fmt;

use pulsetrain_formats::{
    FormatError, KeyUse, LogFormat, Mapping, key_notices, suggestion_hint, unused_notice,
};
use pulsetrain_pipeline::Problem;
use pulsetrain_record::{Counts, ParseReport, Run, UsedTimezone};

use crate::{TailError, claims::SharedRank};

/// A notice about an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportNotice {
    /// Another input has recorded a rank of the input.
    SharedRank(SharedRank),
    /// Another problem.
    Other(Problem),
}

impl ImportNotice {
    /// Returns the cause and the remedy.
    pub fn problem(&self) -> Problem {
        match self {
            Self::SharedRank(shared) => shared.problem(),
            Self::Other(problem) => problem.clone(),
        }
    }
}

impl From<Problem> for ImportNotice {
    fn from(problem: Problem) -> Self {
        Self::Other(problem)
    }
}

impl fmt::Display for ImportNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem().fmt(f)
    }
}

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
    pub notices: Vec<ImportNotice>,
    /// The use of the keys, if the log is of no known trainer.
    pub keys: Vec<String>,
    /// The zone of times without one, or `None` if the log has none.
    pub timezone: Option<UsedTimezone>,
    /// The reason why no format recognises the input of a command.
    pub unrecognised: Option<FormatError>,
    /// The error that ended the import, or `None`.
    pub error: Option<TailError>,
}

impl ImportReport {
    /// Lists the use of the keys of a complete log of no known trainer, and the parts of the mapping that it does not use.
    pub fn list_keys(&mut self, format: &LogFormat, mapping: &Mapping, uses: &[KeyUse]) {
        if mapping.extended() == Some(format.name) && !format.lists_keys() {
            self.keys.extend(unused_notice(mapping, uses));
        }
        if !format.lists_keys() || uses.is_empty() {
            return;
        }
        self.keys.extend(key_notices(uses));
        if format.is_fallback() && mapping.extended().is_none() {
            self.keys.push(suggestion_hint(&self.input));
        } else {
            self.keys.extend(unused_notice(mapping, uses));
        }
    }
}
