//! Errors of a complete input. [`ParseReport`](pulsetrain_record::ParseReport) has those of single records.

use std::{borrow::Cow, fmt};

/// Why a format could not be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// No format recognises the input.
    UnknownFormat {
        /// The input.
        name: String,
        /// The keys in it.
        found: String,
        /// The next command to run.
        next: String,
    },
    /// The input has an unsupported compression.
    Compressed {
        /// The input.
        name: String,
        /// The program that decompresses it.
        program: &'static str,
    },
    /// The input is text in UTF-16.
    Utf16 {
        /// The input.
        name: String,
    },
    /// Several formats recognise the input.
    AmbiguousFormat {
        /// The input.
        name: String,
        /// The names of the formats, each with its signature.
        candidates: String,
    },
}

impl FormatError {
    /// Returns the name of the input.
    pub fn name(&self) -> &str {
        match self {
            Self::UnknownFormat { name, .. }
            | Self::Compressed { name, .. }
            | Self::Utf16 { name }
            | Self::AmbiguousFormat { name, .. } => name,
        }
    }

    /// Returns the cause, without the name of the input.
    pub fn cause(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::UnknownFormat { found, .. } => return format!("unknown log format; {found}").into(),
            Self::Compressed { .. } => "the file is compressed",
            Self::Utf16 { .. } => "the text is UTF-16",
            Self::AmbiguousFormat { candidates, .. } => {
                return format!("several formats match: {candidates}").into();
            }
        })
    }

    /// Returns the remedy.
    pub fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::UnknownFormat { next, .. } => return next.clone().into(),
            Self::Compressed { name, program } => {
                return format!("decompress it: {program} -dc {name} | pulsetrain import -").into();
            }
            Self::Utf16 { name } => {
                return format!("convert it to UTF-8: iconv -f utf-16 -t utf-8 {name} | pulsetrain import -")
                    .into();
            }
            Self::AmbiguousFormat { .. } => "choose one with --format",
        })
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.name(), self.cause(), self.remedy())
    }
}
