//! What really went wrong: the answers that verdicts are measured by.

use std::fmt;

use pulsetrain_otlp::UnixNanos;

use crate::faults::FaultRow;

/// A fault as it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// What went wrong.
    pub fault: &'static FaultRow,
    /// Where.
    pub subject: Subject,
    /// The first step that was affected, or during which the run stopped.
    pub first_step: u64,
    /// The last step that was affected; `None` for as long as the fault lasts.
    pub last_step: Option<u64>,
    /// When it began to show.
    pub start_unix_nanos: UnixNanos,
    /// When it ended; `None` for as long as it lasts.
    pub end_unix_nanos: Option<UnixNanos>,
}

/// What a fault is of.
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
    /// Returns the `train.verdict.kind` that is right, or `None` for a fault without a verdict.
    pub fn verdict(&self) -> Option<&'static str> {
        self.fault.verdict
    }
}

/// As `train.verdict.subject` has it; empty for the run.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => Ok(()),
            Self::Rank(rank) => write!(f, "rank {rank}"),
            Self::Gpu { id, .. } => f.write_str(id),
        }
    }
}
