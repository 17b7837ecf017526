//! The failure of a command, with its exit code.

use std::{fmt, process::ExitCode};

use pulsetrain_formats::FormatError;
use pulsetrain_tail::TailError;
use pulsetrain_trace_inputs::ConvertError;

/// A failure that prevented the work of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is invalid.
    Usage(String),
    /// An external operation failed.
    Failed(String),
}

/// The exit code of a command that finished, but lost, skipped or rejected something.
pub(crate) const INCOMPLETE: u8 = 1;

impl Failure {
    /// A usage error with the text of any error.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// A failure with the text of any error.
    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
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
        Self::failed(error)
    }
}

impl From<TailError> for Failure {
    fn from(error: TailError) -> Self {
        Self::failed(error)
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
            Self::Usage(message) => write!(f, "{message}\n\nFor more information, try '--help'."),
            Self::Failed(message) => f.write_str(message),
        }
    }
}
