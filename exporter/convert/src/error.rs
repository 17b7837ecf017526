//! Errors that end a conversion to OTLP. Problems of the trace itself are listed in the conversion.

use std::io;

/// The reason why a trace could not be converted to OTLP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A temporary file could not be created, written or read.
    #[error("cannot use a temporary file: {0}; name a folder with room for it")]
    Temporary(#[source] io::Error),
}
