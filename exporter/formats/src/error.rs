//! Errors of a complete input; [`Skipped`](pulsetrain_record::Skipped) has those of single records.

/// Why a format could not be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// No format recognises the input.
    #[error("{name}: unknown log format; {instead}")]
    UnknownFormat {
        /// The input.
        name: String,
        /// The keys in it, and what to do.
        instead: String,
    },
    /// No number in the input has a label.
    #[error(
        "{name}: found no numbers with labels such as `loss=2.31` or `loss: 2.31`; check that it is the log of a training"
    )]
    NoKeys {
        /// The input.
        name: String,
    },
    /// The input is compressed in a way that is not read.
    #[error("{name} is compressed; give it decompressed: {program} -dc {name} | pulsetrain import -")]
    Compressed {
        /// The input.
        name: String,
        /// What decompresses it.
        program: &'static str,
    },
    /// The input is text in UTF-16.
    #[error(
        "{name} is text in UTF-16, as PowerShell writes it; give it in UTF-8: iconv -f utf-16 -t utf-8 {name} | pulsetrain import -"
    )]
    Utf16 {
        /// The input.
        name: String,
    },
    /// Several formats recognise the input.
    #[error("{name} may be one of {candidates}; name one with --format")]
    AmbiguousFormat {
        /// The input.
        name: String,
        /// The names of the formats, each with the sign that it saw.
        candidates: String,
    },
}
