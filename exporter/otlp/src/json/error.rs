//! An error in OTLP/JSON: its kind, its field and its offset.

use crate::limits::Exceeded;

/// An error in OTLP/JSON: its kind, its field and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The kind of error.
    pub kind: JsonErrorKind,
    /// The OTLP field that contains the error, if any.
    pub field: Option<&'static str>,
    /// The offset from the start of the text, in bytes.
    pub offset: usize,
}

/// The kinds of errors in OTLP/JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// Unexpected input instead of this token.
    #[error("expected {0}")]
    Expected(&'static str),
    /// The text ends before this token.
    #[error("the text ends where {0} must be")]
    Truncated(&'static str),
    /// A number is out of the range of its field's type.
    #[error("the number does not fit in {0}")]
    OutOfRange(&'static str),
    /// An id has an odd number of digits.
    #[error("an id has an odd number of hexadecimal digits")]
    OddId,
    /// A string contains a control character that must be escaped.
    #[error("a string holds a control character that is not escaped")]
    ControlCharacter,
    /// A backslash begins no valid escape.
    #[error("a string holds an escape that JSON does not have")]
    BadEscape,
    /// One object contains two signals, for example `resourceSpans` and `resourceMetrics`.
    #[error("one object holds more than one signal")]
    TwoSignals,
    /// There is text after the object.
    #[error("something follows the object")]
    TrailingText,
    /// A limit is exceeded.
    #[error(transparent)]
    Exceeded(Exceeded),
}

impl JsonError {
    pub(super) fn new(kind: JsonErrorKind, offset: usize) -> Self {
        Self {
            kind,
            field: None,
            offset,
        }
    }

    /// Sets the field of the error, unless it already has an inner one.
    pub(super) fn in_field(mut self, field: &'static str) -> Self {
        self.field.get_or_insert(field);
        self
    }

    /// Returns the line and the column of the error in the decoded text, both counted from 1, the column in bytes.
    pub fn line_column(&self, text: &[u8]) -> (usize, usize) {
        let before = &text[..self.offset.min(text.len())];
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        (line, before.len() - line_start + 1)
    }
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(field) = self.field {
            write!(f, " in `{field}`")?;
        }
        write!(f, " at byte {}", self.offset)
    }
}

impl std::error::Error for JsonError {}
