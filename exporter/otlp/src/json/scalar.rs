//! Reads single values from JSON text: booleans, floating point numbers, and integers of each of protobuf's types.

use super::{
    error::{JsonError, JsonErrorKind},
    number::{self, NoInteger},
    token::Cursor,
};
use crate::descriptor::FieldKind;

const DOUBLE: &str = "a number, or a string with a number, NaN, Infinity or -Infinity";
const ENUM: &str = "an integer (names of enum values are not valid in OTLP/JSON)";
const INTEGER: &str = "an integer, or a string with one";

/// A number as written in the text, with its offset.
struct Numeral<'t> {
    text: &'t [u8],
    offset: usize,
    is_valid: bool,
}

impl<'t> Cursor<'t> {
    /// Reads `true` or `false` as a bit.
    pub(super) fn boolean_value(&mut self) -> Result<u64, JsonError> {
        if self.take_word(b"true") {
            Ok(1)
        } else if self.take_word(b"false") {
            Ok(0)
        } else {
            Err(self.missing("true or false"))
        }
    }

    /// Reads a floating point number.
    pub(super) fn double(&mut self) -> Result<f64, JsonError> {
        let numeral = self.numeral(DOUBLE)?;
        match numeral.text {
            b"NaN" => Ok(f64::NAN),
            b"Infinity" => Ok(f64::INFINITY),
            b"-Infinity" => Ok(f64::NEG_INFINITY),
            text => {
                numeral.validate(DOUBLE)?;
                number::double(text).ok_or_else(|| numeral.out_of_range("a double"))
            }
        }
    }

    /// Reads an integer of a kind and returns its bits for the wire.
    #[inline]
    pub(super) fn integer(&mut self, kind: FieldKind) -> Result<u64, JsonError> {
        let what = if matches!(kind, FieldKind::Int32) {
            ENUM
        } else {
            INTEGER
        };
        if let Some(bits) = self.take_plain_integer(|value| bits(kind, value.into())) {
            return Ok(bits);
        }
        let numeral = self.numeral(what)?;
        numeral.validate(what)?;
        let value = match number::integer(numeral.text) {
            Ok(value) => bits(kind, value),
            Err(NoInteger::OutOfRange) => None,
            Err(NoInteger::Fraction) => {
                return Err(JsonError::new(JsonErrorKind::Expected(what), numeral.offset));
            }
        };
        value.ok_or_else(|| numeral.out_of_range(range(kind)))
    }

    /// Reads a number, or the content of a string, which is not yet validated.
    #[inline]
    fn numeral(&mut self, what: &'static str) -> Result<Numeral<'t>, JsonError> {
        if self.peek() != Some(b'"') {
            let offset = self.offset();
            let text = self.number(what)?;
            return Ok(Numeral {
                text,
                offset,
                is_valid: true,
            });
        }
        let raw = self.string(what)?;
        Ok(Numeral {
            text: raw.inside,
            offset: raw.offset,
            is_valid: false,
        })
    }
}

impl Numeral<'_> {
    #[inline]
    fn validate(&self, what: &'static str) -> Result<(), JsonError> {
        if self.is_valid || !self.text.is_empty() && number::len(self.text) == self.text.len() {
            return Ok(());
        }
        Err(JsonError::new(JsonErrorKind::Expected(what), self.offset))
    }

    #[cold]
    fn out_of_range(&self, range: &'static str) -> JsonError {
        JsonError::new(JsonErrorKind::OutOfRange(range), self.offset)
    }
}

/// Returns the bits of an integer for the wire, or `None` if it is out of the range of the kind.
#[inline]
fn bits(kind: FieldKind, value: i128) -> Option<u64> {
    match kind {
        FieldKind::Int64 | FieldKind::Sfixed64 => i64::try_from(value).ok().map(|value| value as u64),
        FieldKind::Uint32 | FieldKind::Fixed32 => u32::try_from(value).ok().map(u64::from),
        FieldKind::Int32 => i32::try_from(value).ok().map(|value| i64::from(value) as u64),
        FieldKind::Sint32 => i32::try_from(value)
            .ok()
            .map(|value| u64::from(((value << 1) ^ (value >> 31)) as u32)),
        _ => u64::try_from(value).ok(),
    }
}

fn range(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Int64 | FieldKind::Sfixed64 => "64 bits with sign",
        FieldKind::Uint32 | FieldKind::Fixed32 => "32 bits without sign",
        FieldKind::Int32 | FieldKind::Sint32 => "32 bits with sign",
        _ => "64 bits without sign",
    }
}
