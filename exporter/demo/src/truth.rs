//! The ground truth: the faults that verdicts are compared with.

use std::fmt;

use pulsetrain_otlp::UnixNanos;

use crate::faults::FaultRow;

/// A fault as it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// The fault.
    pub fault: &'static FaultRow,
    /// The subject of the fault.
    pub subject: Subject,
    /// The first step that was affected, or during which the run stopped.
    pub first_step: u64,
    /// The last step that was affected; `None` for as long as the fault lasts.
    pub last_step: Option<u64>,
    /// The time at which it began to show.
    pub start_unix_nanos: UnixNanos,
    /// The time at which it ended; `None` for as long as it lasts.
    pub end_unix_nanos: Option<UnixNanos>,
}

/// The subject of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The run.
    Run,
    /// One rank of it.
    Rank(i64),
    /// One GPU, and the rank that uses it.
    Gpu {
        /// Its `gpu.id`.
        id: String,
        /// The rank.
        rank: i64,
    },
}

impl Truth {
    /// Returns the correct `train.verdict.kind`, or `None` for a fault without a verdict.
    pub fn verdict(&self) -> Option<&'static str> {
        self.fault.verdict
    }
}

/// The format of `train.verdict.subject`; empty for the run.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => Ok(()),
            Self::Rank(rank) => write!(f, "rank {rank}"),
            Self::Gpu { id, .. } => f.write_str(id),
        }
    }
}
