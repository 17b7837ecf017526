//! Numbers in JSON: JSON's own grammar, and integers that stay exact in every notation.

/// The reason why a number is not an integer of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoInteger {
    /// It has a fraction.
    Fraction,
    /// It is far outside of 64 bits.
    OutOfRange,
}

/// Returns the length of the number at the start of `text`, by RFC 8259; 0 if there is no number.
#[inline]
pub(super) fn len(text: &[u8]) -> usize {
    let sign = usize::from(text.first() == Some(&b'-'));
    let whole = digits(&text[sign..]);
    if whole == 0 || (whole > 1 && text[sign] == b'0') {
        return 0;
    }
    let mut end = sign + whole;
    if text.get(end) == Some(&b'.') {
        match digits(&text[end + 1..]) {
            0 => return 0,
            fraction => end += 1 + fraction,
        }
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        match digits(&text[end + 1 + signed..]) {
            0 => return 0,
            exponent => end += 1 + signed + exponent,
        }
    }
    end
}

#[inline]
fn digits(text: &[u8]) -> usize {
    text.iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len())
}

/// Returns the value of the first eight bytes of `text`, or `None` if they are not all digits. All eight bytes are checked and
/// combined at once.
#[inline]
pub(super) fn eight_digits(text: &[u8]) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(*text.first_chunk()?);
    // The high half of a digit's byte is 3, and is still 3 after 6 is added.
    let highs = (word & (ONES * 0xf0)) | ((word.wrapping_add(ONES * 6) & (ONES * 0xf0)) >> 4);
    if highs != ONES * 0x33 {
        return None;
    }
    // The first digit is the lowest byte: adjacent digits are combined to numbers of two, four and eight digits.
    let digits = word & (ONES * 0x0f);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff)
}

/// Returns the integer value of a number, also for `5.0` and `1e3`.
#[inline]
pub(super) fn integer(number: &[u8]) -> Result<i128, NoInteger> {
    let (negative, rest) = match number.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let magnitude = match rest.len() {
        // Nineteen digits always fit.
        1..20 if rest.iter().all(u8::is_ascii_digit) => i128::from(
            rest.iter()
                .fold(0u64, |value, &digit| value * 10 + u64::from(digit - b'0')),
        ),
        _ => scaled(rest)?,
    };
    Ok(if negative { -magnitude } else { magnitude })
}

/// Returns the integer value of a number without sign, from its digits and the position of its decimal point.
fn scaled(number: &[u8]) -> Result<i128, NoInteger> {
    let end = number.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = number.split_at(end.unwrap_or(number.len()));
    let point = mantissa
        .iter()
        .position(|&byte| byte == b'.')
        .unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    let mut digits = [&mantissa[..point], fraction].concat();
    let trailing = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
    if trailing == digits.len() {
        return Ok(0);
    }
    digits.truncate(digits.len() - trailing);
    let scale = exponent_of(exponent) + trailing as i64 - fraction.len() as i64;
    let zeros = usize::try_from(scale).map_err(|_| NoInteger::Fraction)?;
    let all = digits.into_iter().chain(std::iter::repeat_n(b'0', zeros));
    all.map(|digit| i128::from(digit - b'0'))
        .try_fold(0i128, |value, digit| value.checked_mul(10)?.checked_add(digit))
        .ok_or(NoInteger::OutOfRange)
}

/// Returns the exponent after an `e`, or 0 without one; past a million it makes no difference.
fn exponent_of(text: &[u8]) -> i64 {
    let negative = text.get(1) == Some(&b'-');
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    let value = digits.fold(0i64, |value, &digit| {
        (value * 10 + i64::from(digit - b'0')).min(1_000_000_000)
    });
    if negative { -value } else { value }
}

/// Returns the nearest floating point number, or `None` if the number is out of range.
#[inline]
pub(super) fn double(number: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_length_follows_the_json_grammar() {
        for number in ["0", "-0", "7", "10.5", "1e3", "-1.5E-7", "0.0e+00"] {
            assert_eq!(len(number.as_bytes()), number.len(), "{number}");
        }
        for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "x", "NaN"] {
            assert_eq!(len(text.as_bytes()), 0, "{text}");
        }
        assert_eq!(len(b"12,"), 2);
    }

    #[test]
    fn parsing_eight_digits_at_once_matches_their_decimal_value() {
        for number in [0, 1, 12_345_678, 90_817_263, 99_999_999] {
            let text = format!("{number:08}9x");
            assert_eq!(eight_digits(text.as_bytes()), Some(number), "{text}");
            for place in 0..8 {
                for other in [b'/', b':', b'"', b'.', b'p', 0, 0x13, 0x80 | b'0', 0xff] {
                    let mut text = text.clone().into_bytes();
                    text[place] = other;
                    assert_eq!(eight_digits(&text), None, "{other} at {place}");
                }
            }
        }
        assert_eq!(eight_digits(b"1234567"), None);
    }

    #[test]
    fn integers_stay_exact_in_every_notation() {
        let exact = |text: &str| integer(text.as_bytes()).unwrap();
        assert_eq!(exact("18446744073709551615"), i128::from(u64::MAX));
        assert_eq!(exact("-9223372036854775808"), i128::from(i64::MIN));
        assert_eq!(exact("9007199254740993"), 9_007_199_254_740_993);
        assert_eq!(exact("9007199254740993.000"), 9_007_199_254_740_993);
        assert_eq!(exact("1.5e3"), 1500);
        assert_eq!(exact("1500e-2"), 15);
        assert_eq!(exact("0e999999999999"), 0);
    }

    #[test]
    fn fractions_and_out_of_range_numbers_are_not_integers() {
        assert_eq!(integer(b"1.5"), Err(NoInteger::Fraction));
        assert_eq!(integer(b"1e-400000000000000000000"), Err(NoInteger::Fraction));
        assert_eq!(integer(b"1e999999999"), Err(NoInteger::OutOfRange));
    }

    #[test]
    fn double_beyond_the_maximum_is_rejected() {
        assert_eq!(double(b"1e308"), Some(1e308));
        assert_eq!(double(b"-1e309"), None);
    }
}
