//! Errors that end a conversion to OTLP. Problems of the trace itself are in the conversion.

use std::io;

/// Why a trace could not be converted to OTLP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A temporary file could not be made, written or read.
    #[error("cannot use a temporary file: {0}; name a folder with room for it")]
    Temporary(#[source] io::Error),
}
