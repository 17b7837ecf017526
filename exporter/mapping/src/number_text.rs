//! Numbers as training logs print them.

use crate::Decimal;

/// Parses a finite number in decimal notation.
#[inline]
pub fn finite(text: &str) -> Option<f64> {
    if let Some((number, "")) = plain(text) {
        return Some(number);
    }
    let looks_decimal = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    if looks_decimal { text.parse().ok() } else { None }
}

/// Splits a plain number from the start of a text, or returns `None` if the text does not start with one.
#[inline]
fn plain(text: &str) -> Option<(f64, &str)> {
    let decimal = Decimal::prefix(text.as_bytes())?;
    Some((decimal.value, &text[decimal.len..]))
}

/// The largest integer up to which a double represents every integer exactly.
const EXACT: f64 = (1_u64 << 53) as f64;

/// Parses a number of digits only that a double represents exactly.
pub fn count(text: &str) -> Option<f64> {
    let decimal = Decimal::prefix(text.as_bytes())?;
    let is_count = decimal.is_integer && decimal.len == text.len() && !text.starts_with('-');
    (is_count && decimal.value < EXACT).then_some(decimal.value)
}

/// Parses a number that is not finite, in the spellings of C, C++, Python and JavaScript.
pub fn non_finite(text: &str) -> Option<f64> {
    let (sign, name) = match text.strip_prefix('-') {
        Some(name) => (-1.0, name),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if name.eq_ignore_ascii_case("nan") {
        Some(f64::NAN)
    } else if name.eq_ignore_ascii_case("inf") || name.eq_ignore_ascii_case("infinity") {
        Some(sign * f64::INFINITY)
    } else {
        of_windows(name).map(|number| sign * number)
    }
}

/// Parses what the C library of Windows prints: `1.#QNAN`, `1.#INF`.
fn of_windows(name: &str) -> Option<f64> {
    match name.strip_prefix("1.#")?.trim_end_matches('0') {
        "INF" => Some(f64::INFINITY),
        "QNAN" | "SNAN" | "IND" => Some(f64::NAN),
        _ => None,
    }
}

/// Parses a finite or non-finite number, with or without commas between the thousands.
#[inline]
pub fn any(text: &str) -> Option<f64> {
    match plain(text) {
        Some((number, "")) => Some(number),
        // Only these characters continue a number after its plain part.
        Some((_, rest)) if !rest.starts_with([',', 'E', '_', '\'', '#']) => None,
        Some((_, rest)) if rest.starts_with([',', '_', '\'']) => grouped(text),
        _ => irregular(text),
    }
}

/// Parses a number that is not plain.
fn irregular(text: &str) -> Option<f64> {
    finite(text)
        .or_else(|| non_finite(text))
        .or_else(|| grouped(text))
}

/// Parses a number with commas, underscores or apostrophes between the thousands. A decimal comma, as some languages use it, is rejected: the number would
/// be a thousand times too large.
pub fn grouped(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Most texts start with another character and are not numbers.
    if !digits.starts_with(|first: char| matches!(first, '1'..='9')) {
        return None;
    }
    let (integer, rest) = digits.split_at(digits.find(['.', 'e', 'E']).unwrap_or(digits.len()));
    if rest.contains(',') {
        return None;
    }
    let separator = integer
        .chars()
        .find(|letter| !letter.is_ascii_digit())
        .unwrap_or(',');
    if !matches!(separator, ',' | '_' | '\'') {
        return None;
    }
    let mut groups = integer.split(separator);
    let is_first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()));
    (is_first && groups.all(|group| group.len() == 3)).then(|| finite(&text.replace(separator, "")))?
}

/// Splits a number from its suffix: `0.081s`, `0.2%`, `1.5M`.
#[inline]
pub fn with_suffix(text: &str) -> Option<(f64, &str)> {
    let first = *text.as_bytes().first()?;
    // Only numbers that are not finite start with a letter.
    if first.is_ascii_alphabetic() && !matches!(first, b'n' | b'N' | b'i' | b'I') {
        return None;
    }
    match plain_with_suffix(text) {
        Some((number, suffix, "")) => Some((number, suffix)),
        _ => irregular_with_suffix(text),
    }
}

/// Splits a plain number and its unit from the start of a text.
#[inline]
fn plain_with_suffix(text: &str) -> Option<(f64, &str, &str)> {
    let (number, rest) = plain(text)?;
    let is_of_unit = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'%' | b'/');
    let end = rest.bytes().take_while(is_of_unit).count();
    Some((number, &rest[..end], &rest[end..]))
}

/// Splits a number that is not plain or not finite, or whose unit is not a word, from its suffix.
fn irregular_with_suffix(text: &str) -> Option<(f64, &str)> {
    if let Some(number) = any(text) {
        return Some((number, ""));
    }
    let end = text
        .trim_end_matches(|letter: char| letter.is_alphabetic() || letter == '%' || letter == '/')
        .len();
    let (number, suffix) = text.split_at(end);
    any(number.trim_end()).map(|number| (number, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_numbers_have_commas_and_units() {
        assert_eq!(with_suffix("1,129"), Some((1129.0, "")));
        assert_eq!(any("-12,345,678.5"), Some(-12_345_678.5));
        for comma_for_point in [
            "2,1348",
            "0,123",
            "1234,5",
            "1,23",
            ",5",
            "1,234,5",
            "1,,000",
            "1,234,",
            "1234,567",
            "5.,1",
            "1.5,3",
            "1,234.5,6",
            "2e1,5",
        ] {
            assert_eq!(any(comma_for_point), None, "{comma_for_point}");
        }
        let long = format!("1,234.{}", "5".repeat(40));
        assert_eq!(any(&long), long.replace(',', "").parse().ok());
        for (text, expected) in [
            ("1,000", 1e3),
            ("1_234_567.5", 1_234_567.5),
            ("1'234.5", 1234.5),
            ("999,999,999,999,999", 999_999_999_999_999.0),
            ("1,234,567.5e1", 12_345_675.0),
            ("9,007,199,254,740,993", 9_007_199_254_740_993_u64 as f64),
            ("9,999,999,999,999,999,999", 9_999_999_999_999_999_999_u64 as f64),
        ] {
            assert_eq!(any(text), Some(expected), "{text}");
        }
        for (text, expected) in [("1E5", Some(1e5)), ("1.5x", None), ("7-8", None), ("5.x", None)] {
            assert_eq!(any(text), expected, "{text}");
        }
        assert_eq!(with_suffix("0.081s"), Some((0.081, "s")));
        assert_eq!(with_suffix("46.6%"), Some((46.6, "%")));
        assert_eq!(with_suffix("3e-05"), Some((3e-5, "")));
        assert_eq!(with_suffix("-0.5 GiB/s"), Some((-0.5, "GiB/s")));
        assert_eq!(with_suffix("1,129tok/s"), Some((1129.0, "tok/s")));
        assert_eq!(with_suffix("inf"), Some((f64::INFINITY, "")));
        assert_eq!(
            (
                with_suffix("warmup"),
                with_suffix(""),
                any(",1"),
                with_suffix("norm")
            ),
            (None, None, None, None)
        );
    }

    #[test]
    fn counts_are_digits_exactly_representable_as_a_double() {
        for (text, expected) in [
            ("0", Some(0.0)),
            ("16384", Some(16_384.0)),
            ("9007199254740991", Some(9_007_199_254_740_991.0)),
            ("9007199254740993", None),
            ("123456789012345678901234567890", None),
            ("-1", None),
            ("1.0", None),
            ("1e3", None),
            ("1,024", None),
            ("7 ", None),
            ("", None),
        ] {
            assert_eq!(count(text), expected, "{text}");
        }
    }

    #[test]
    fn finite_and_non_finite_numbers_are_distinguished() {
        assert_eq!(finite("6.0000002e-05"), Some(6.000_000_2e-5));
        assert_eq!((finite("nan"), finite("inf"), finite("")), (None, None, None));
        assert!(
            ["-nan", "1.#QNAN", "-1.#IND00"]
                .iter()
                .all(|text| any(text).is_some_and(f64::is_nan))
        );
        assert_eq!(any("-1.#INF00"), Some(f64::NEG_INFINITY));
        assert_eq!(
            (non_finite("-inf"), non_finite("1")),
            (Some(f64::NEG_INFINITY), None)
        );
    }
}
