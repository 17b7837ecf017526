//! The events that a follower reports to its user.

use std::{fmt, path::PathBuf};

use pulsetrain_record::{Run, Timezone, UsedTimezone};

use crate::{ImportReport, TailError};

/// An event of a followed file.
#[derive(Debug)]
#[non_exhaustive]
pub enum TailEvent {
    /// A file does not exist yet, or its bytes do not identify a run yet.
    Waiting {
        /// The file.
        path: PathBuf,
    },
    /// The follower started to read a run.
    Opened {
        /// The file.
        path: PathBuf,
        /// The format.
        format: &'static str,
        /// The run.
        run: Box<Run>,
        /// The zone of times without one.
        timezone: UsedTimezone,
        /// The first byte that is read; above zero if an earlier follower read the bytes before it.
        offset: u64,
    },
    /// A read failed; it is retried.
    Problem(TailError),
    /// A run ended in this file, or the follower stopped; the report covers the time since the run was opened.
    Ended(Box<ImportReport>),
}

impl fmt::Display for TailEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { path } => write!(f, "waiting for a run in {}", path.display()),
            Self::Opened {
                path,
                format,
                run,
                timezone,
                offset,
            } => {
                write!(f, "following {} ({format}), run {}", path.display(), run.id)?;
                match (run.attempt, offset) {
                    (0, 0) => Ok(()),
                    (attempt, 0) => write!(f, ", attempt {attempt}"),
                    (_, offset) => write!(f, ", from byte {offset}"),
                }?;
                if timezone.zone != Timezone::default() {
                    write!(f, ", times without a zone in {timezone}")?;
                }
                Ok(())
            }
            Self::Problem(error) => write!(f, "{error}"),
            Self::Ended(report) => write!(
                f,
                "{} ended after {} records",
                report.input, report.counts.records
            ),
        }
    }
}
