//! The failure of a command, with its exit code.

use std::{fmt, process::ExitCode};

use pulsetrain_formats::FormatError;
use pulsetrain_net::NetError;
use pulsetrain_pipeline::Problem;
use pulsetrain_tail::TailError;
use pulsetrain_trace_inputs::ConvertError;

/// A failure that prevented the work of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is invalid.
    Usage(Problem),
    /// An external operation failed.
    Failed(Problem),
}

/// The exit code of a command that finished, but lost, skipped or rejected something.
pub(crate) const INCOMPLETE: u8 = 1;

impl Failure {
    /// A usage error with the text of any error.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(Problem::new(error.to_string()))
    }

    /// A failure with the text of any error.
    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(Problem::new(error.to_string()))
    }

    /// Returns the cause and the remedy.
    pub(crate) fn into_problem(self) -> Problem {
        let (Self::Usage(problem) | Self::Failed(problem)) = self;
        problem
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(INCOMPLETE),
        }
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        TailError::from(error).into()
    }
}

impl From<TailError> for Failure {
    fn from(error: TailError) -> Self {
        Self::Failed(error.problem())
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        Self::failed(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(problem) => write!(f, "{problem}\n\nFor more information, try '--help'."),
            Self::Failed(problem) => problem.fmt(f),
        }
    }
}

/// Returns the cause and the remedy of an error of a server.
pub(crate) fn net_problem(error: &NetError) -> Problem {
    Problem::new(error.to_string()).with_remedy(error.remedy())
}
