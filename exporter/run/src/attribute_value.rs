//! The values of attributes as text and as integers.
//!
//! `OTEL_RESOURCE_ATTRIBUTES` carries only strings, JSON of some clients only doubles. So a reader asks for the value that it needs,
//! not for the type in which it was sent.

use std::borrow::Cow;

use pulsetrain_otlp::{json::value_text, view::AnyValue};

/// The first double that is greater than every `i64`: 2^63.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;

/// Returns a value as text, or `None` if the text is empty. A list or a map is JSON, as for the Collector.
#[inline]
pub fn text(value: AnyValue<'_>) -> Option<Cow<'_, str>> {
    Some(value_text(value)).filter(|text| !text.is_empty())
}

/// The maximum length of a name or an id. Programs remember names, so a client must not be able to send any number of bytes as one.
pub const MAX_NAME_BYTES: usize = 1024;

/// Returns a value that is a string, not empty, and at most [`MAX_NAME_BYTES`] long: a name from a list, or an id.
#[inline]
pub fn label(value: AnyValue<'_>) -> Option<&str> {
    match value {
        AnyValue::String(text) => text.to_str().ok().filter(|text| is_name(text)),
        _ => None,
    }
}

/// Returns whether a text can be a name or an id.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
}

/// Returns a value as an integer: an integer, a double without a fraction, or a string of digits.
#[inline]
pub fn integer(value: AnyValue<'_>) -> Option<i64> {
    match value {
        AnyValue::Int(number) => Some(number),
        AnyValue::Double(number) => integral(number),
        AnyValue::String(text) => {
            let text = text.to_str().ok()?.trim();
            text.parse().ok().or_else(|| integral(text.parse().ok()?))
        }
        _ => None,
    }
}

fn integral(number: f64) -> Option<i64> {
    let is_integer = number.fract() == 0.0 && (-BEYOND_I64..BEYOND_I64).contains(&number);
    is_integer.then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_is_read_from_every_type_that_can_carry_it() {
        for value in [
            AnyValue::Int(3),
            AnyValue::Double(3.0),
            AnyValue::String("3".into()),
            AnyValue::String(" 3 ".into()),
            AnyValue::String("3.0".into()),
        ] {
            assert_eq!(integer(value), Some(3), "{value:?}");
        }
        for value in [
            AnyValue::Double(3.5),
            AnyValue::Double(f64::NAN),
            AnyValue::Double(f64::INFINITY),
            AnyValue::Double(1e300),
            AnyValue::String("rank3".into()),
            AnyValue::String("".into()),
            AnyValue::Bool(true),
            AnyValue::Empty,
        ] {
            assert_eq!(integer(value), None, "{value:?}");
        }
        assert_eq!(integer(AnyValue::Double(-BEYOND_I64)), Some(i64::MIN));
        assert_eq!(integer(AnyValue::Double(BEYOND_I64)), None);
    }

    #[test]
    fn text_is_read_from_every_type_and_is_never_empty() {
        assert_eq!(text(AnyValue::String("a".into())).as_deref(), Some("a"));
        assert_eq!(text(AnyValue::Int(42)).as_deref(), Some("42"));
        assert_eq!(text(AnyValue::String("".into())), None);
        assert_eq!(text(AnyValue::Empty), None);
        assert_eq!(label(AnyValue::String("a".into())), Some("a"));
        assert_eq!(label(AnyValue::Int(42)), None);
    }
}
