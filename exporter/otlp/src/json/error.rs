//! What is wrong with some OTLP/JSON, and where.

use crate::limits::Exceeded;

/// What is wrong with some OTLP/JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// The OTLP field that is read there, where it is one.
    pub field: Option<&'static str>,
    /// Where, in bytes from the start of the text.
    pub offset: usize,
}

/// What can be wrong with OTLP/JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// Unexpected input at this place.
    #[error("expected {0}")]
    Expected(&'static str),
    /// The text ends where this must be.
    #[error("the text ends where {0} must be")]
    Truncated(&'static str),
    /// A number is outside of its field's type.
    #[error("the number does not fit in {0}")]
    OutOfRange(&'static str),
    /// An id has half a byte.
    #[error("an id has an odd number of hexadecimal digits")]
    OddId,
    /// A string holds a control character that must be escaped.
    #[error("a string holds a control character that is not escaped")]
    ControlCharacter,
    /// A backslash is followed by something that is no escape.
    #[error("a string holds an escape that JSON does not have")]
    BadEscape,
    /// One object holds two signals, for example `resourceSpans` and `resourceMetrics`.
    #[error("one object holds more than one signal")]
    TwoSignals,
    /// Something follows the object.
    #[error("something follows the object")]
    TrailingText,
    /// There is more of something than a limit allows.
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

    /// Names the field that the error is in, unless one inside of it is named already.
    pub(super) fn in_field(mut self, field: &'static str) -> Self {
        self.field.get_or_insert(field);
        self
    }

    /// Line and column of the place in the text that was decoded, both counted from 1, the column in bytes.
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
