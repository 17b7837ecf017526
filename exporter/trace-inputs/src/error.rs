//! Errors that end a conversion to OTLP. Problems of the input itself are listed in its report.

use std::{io, path::PathBuf};

use crate::NsightError;

/// The reason why an input could not be converted to OTLP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}; check the path", path.display())]
    Open {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A temporary file could not be created, written or read.
    #[error("cannot use a temporary file: {0}; name a folder with room for it")]
    Temporary(#[source] io::Error),
    /// An export of Nsight Systems could not be copied to a temporary file.
    #[error(transparent)]
    Export(NsightError),
}
