//! Errors in a mapping.

/// A part of a mapping that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default())]
pub struct MappingError {
    /// The part.
    pub part: MappingPart,
    /// The error.
    pub message: String,
    /// The remedy, such as the values that are allowed, if it is known.
    pub remedy: Option<String>,
}

impl MappingError {
    pub(crate) fn new(part: MappingPart, message: impl Into<String>) -> Self {
        Self {
            part,
            message: message.into(),
            remedy: None,
        }
    }

    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// The part of a mapping that a [`MappingError`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappingPart {
    /// The pattern by which a log is detected.
    Detect,
    /// The pattern of lines.
    Line,
    /// The delimiter between pairs, or between a key and its value.
    Pairs,
    /// The key or the pattern of a row.
    Key,
    /// The metric of a row, or the name under `train.custom`.
    Metric,
    /// The reason for dropping the values of a row.
    Reason,
    /// The unit or the factor of a row.
    Unit,
    /// An attribute of a row, by its name.
    Attribute(String),
}
