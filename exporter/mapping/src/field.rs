//! Fields of a record, as parsers return them.

use std::borrow::Cow;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::SourcePosition;

use crate::number_text;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// A number; a boolean is 1 or 0.
    Number(f64),
    /// Text that is not a number.
    Text(Cow<'a, str>),
}

/// A key and its value.
pub type Field<'a> = (Cow<'a, str>, FieldValue<'a>);

impl<'a> FieldValue<'a> {
    /// Returns a number if the text is a number, else the text.
    #[inline]
    pub fn parse(text: &'a str) -> Self {
        number_text::any(text).map_or(Self::Text(Cow::Borrowed(text)), Self::Number)
    }

    /// Returns a number without its unit if the unit is missing or one of `units`, else the text.
    pub fn measured(text: &'a str, units: &[&str]) -> Self {
        match number_text::with_suffix(text) {
            Some((number, unit)) if unit.is_empty() || units.contains(&unit) => Self::Number(number),
            _ => Self::parse(text),
        }
    }

    /// Returns the number, or `None` for other text.
    #[inline]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => number_text::any(text),
        }
    }

    /// Returns the number if it is an integer below 9e15, else `None`.
    pub fn integer(&self) -> Option<i64> {
        let number = self.number()?;
        let integer = number as i64;
        // Compares with the integer instead of using the fraction: rounding may need a function call.
        (integer as f64 == number && number.abs() < 9e15).then_some(integer)
    }
}

/// The time and the position of a record, or of a value under a tag.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordMeta {
    /// Nanoseconds since 1970.
    pub time_unix_nanos: UnixNanos,
    /// The step of the record, if it has one.
    pub step: Option<i64>,
    /// The position of the record in the input.
    pub position: SourcePosition,
}
