//! Errors of a complete input. [`ParseReport`](pulsetrain_record::ParseReport) has those of single records.

/// Why a format could not be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// No format recognises the input.
    #[error("{name}: unknown log format; {format_hint}")]
    UnknownFormat {
        /// The input.
        name: String,
        /// The keys in it, and the next command to run.
        format_hint: String,
    },
    /// No number in the input has a label.
    #[error(
        "{name}: found no numbers with labels such as `loss=2.31` or `loss: 2.31`; check that it is a training log"
    )]
    NoKeys {
        /// The input.
        name: String,
    },
    /// The input has an unsupported compression.
    #[error("{name}: the file is compressed; decompress it: {program} -dc {name} | pulsetrain import -")]
    Compressed {
        /// The input.
        name: String,
        /// The program that decompresses it.
        program: &'static str,
    },
    /// The input is text in UTF-16.
    #[error(
        "{name}: the text is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8 {name} | pulsetrain import -"
    )]
    Utf16 {
        /// The input.
        name: String,
    },
    /// Several formats recognise the input.
    #[error("{name}: several formats match: {candidates}; choose one with --format")]
    AmbiguousFormat {
        /// The input.
        name: String,
        /// The names of the formats, each with its signature.
        candidates: String,
    },
}
