//! What a follower tells its user.

use std::{fmt, path::PathBuf};

use crate::{ImportReport, TailError};
use pulsetrain_record::{Run, Timezone, UsedTimezone};

/// Something that happened to a followed file.
#[derive(Debug)]
#[non_exhaustive]
pub enum TailEvent {
    /// A file is not there yet, or does not say yet what run it is of.
    Waiting {
        /// The file.
        path: PathBuf,
    },
    /// A run is being followed.
    Opened {
        /// The file.
        path: PathBuf,
        /// The format.
        format: &'static str,
        /// The run.
        run: Box<Run>,
        /// The zone of times without one.
        timezone: UsedTimezone,
        /// From which byte on it is new; not zero where an earlier follower had come so far.
        offset: u64,
    },
    /// Something cannot be read; it is tried again.
    Problem(TailError),
    /// A run has ended in this file, or the follower has: what came of it since it was opened.
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
