//! Plain decimal numbers in one pass over their bytes. They are most of a log, and nearly all of them are short enough for
//! arithmetic that is exact; what is not, and what is no plain number, is left to the standard library.

use super::{Value, ends_word};

/// The powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The largest integer up to which a double holds every one.
const EXACT_MANTISSA: u64 = 1 << 53;

/// More digits might not fit into 64 bits.
const MOST_DIGITS: usize = 18;

/// The number that `bytes` begin with, and its length; nothing where it takes more than this to read it.
#[inline]
pub(super) fn parse(bytes: &[u8]) -> Option<(Value<'static>, usize)> {
    let is_negative = bytes.first() == Some(&b'-');
    let mut at = usize::from(is_negative);
    let mut mantissa = 0_u64;
    let integer = digits(bytes, &mut at, &mut mantissa);
    let mut fraction = 0;
    let mut exponent = 0;
    let is_integer = !matches!(bytes.get(at), Some(b'.' | b'e'));
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        fraction = digits(bytes, &mut at, &mut mantissa);
    }
    if bytes.get(at) == Some(&b'e') {
        at += 1;
        exponent = signed_exponent(bytes, &mut at)?;
    }
    let ends = bytes.get(at).is_none_or(|byte| ends_word(*byte));
    if !ends || integer == 0 || integer + fraction > MOST_DIGITS {
        return None;
    }
    let value = if is_integer {
        let magnitude = mantissa as i64;
        Value::Int(if is_negative { -magnitude } else { magnitude })
    } else {
        let magnitude = scaled(mantissa, exponent - fraction as i32)?;
        Value::Double(if is_negative { -magnitude } else { magnitude })
    };
    Some((value, at))
}

/// Takes digits into the mantissa and says how many.
#[inline]
fn digits(bytes: &[u8], at: &mut usize, mantissa: &mut u64) -> usize {
    let start = *at;
    while let Some(digit) = bytes
        .get(*at)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|digit| *digit < 10)
    {
        // Numbers that are too long for this are told by their count.
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
    *at - start
}

/// Two digits at most: more are out of the exact range anyway.
fn signed_exponent(bytes: &[u8], at: &mut usize) -> Option<i32> {
    let is_negative = bytes.get(*at) == Some(&b'-');
    *at += usize::from(matches!(bytes.get(*at), Some(b'-' | b'+')));
    let mut exponent = 0;
    let count = digits(bytes, at, &mut exponent);
    let exponent = (1..=2).contains(&count).then_some(exponent as i32)?;
    Some(if is_negative { -exponent } else { exponent })
}

/// `mantissa` times a power of ten: one operation on two exact numbers is rounded once, and so correctly (Clinger, "How to
/// read floating point numbers accurately", 1990).
fn scaled(mantissa: u64, power: i32) -> Option<f64> {
    let factor = EXACT_POWERS.get(power.unsigned_abs() as usize)?;
    let exact = (mantissa <= EXACT_MANTISSA).then_some(mantissa as f64)?;
    Some(if power < 0 { exact / factor } else { exact * factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_one_that_the_standard_library_reads() {
        for text in [
            "0",
            "-7",
            "16384",
            "0.05",
            "-3.25",
            "6.0000002e-05",
            "2e+3",
            "9007199254740993.0",
            "1.5e22",
            "-0.0",
        ] {
            if let Some((value, len)) = parse(text.as_bytes()) {
                assert_eq!(len, text.len(), "{text}");
                assert_eq!(
                    value.as_f64().map(f64::to_bits),
                    text.parse().ok().map(f64::to_bits),
                    "{text}"
                );
            }
        }
        assert_eq!(
            parse(b"0.000120000004, "),
            Some((Value::Double(0.000_120_000_004), 14))
        );
        assert_eq!(parse(b"-12}"), Some((Value::Int(-12), 3)));
    }

    #[test]
    fn what_is_long_or_no_plain_number_is_left_alone() {
        for text in [
            "",
            "-",
            ".",
            ".5",
            "nan",
            "1x",
            "1e",
            "1e400",
            "1234567890123456789",
            "0.30000000000000004123",
            "1 2x,",
        ] {
            let parsed = parse(text.as_bytes()).filter(|(_, len)| *len == text.len());
            assert_eq!(parsed, None, "{text}");
        }
    }
}
