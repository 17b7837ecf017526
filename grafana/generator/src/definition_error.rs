//! An error in a definition, with its file and entry.

use std::fmt;

/// An error in `grafana/definitions`: the file, the entry and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionError {
    /// File name below `grafana/definitions`.
    pub file: String,
    /// The entry, such as `Run overview / Loss / query 1`; empty if the file itself cannot be read.
    pub entry: String,
    /// The problem, and how to fix it.
    pub message: String,
}

impl DefinitionError {
    /// Creates an error about an entry of a file.
    pub fn new(file: &str, entry: &str, message: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            entry: entry.to_owned(),
            message: message.to_string(),
        }
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, entry, message } = self;
        write!(formatter, "{file}: ")?;
        if !entry.is_empty() {
            write!(formatter, "{entry}: ")?;
        }
        formatter.write_str(message)
    }
}

impl std::error::Error for DefinitionError {}
