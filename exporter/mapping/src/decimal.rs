//! Decimal numbers at the beginning of a text.

/// A finite decimal number: digits, optionally with a fraction and an exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal {
    /// The number.
    pub value: f64,
    /// The length of the number in bytes.
    pub len: usize,
    /// Whether it has neither a point nor an exponent.
    pub is_integer: bool,
}

impl Decimal {
    /// Returns the number that `bytes` begin with.
    // Always inlined: few callers use `is_integer`, and for the others it is not computed.
    #[inline(always)]
    pub fn prefix(bytes: &[u8]) -> Option<Self> {
        let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
        // Rejects words such as `nan`, a leading point and a plus sign.
        if !unsigned.first()?.is_ascii_digit() {
            return None;
        }
        let (value, len) = fast_float2::parse_partial(bytes).ok()?;
        let is_integer = !bytes[..len].iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        Some(Self {
            value,
            len,
            is_integer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_prefix_ends_before_the_first_other_character() {
        for (text, value, len, is_integer) in [
            ("0.000120000004, ", 0.000_120_000_004, 14, false),
            ("1.5k tps", 1.5, 3, false),
            ("-12}", -12.0, 3, true),
            ("5.", 5.0, 2, false),
            ("2e+3|", 2000.0, 4, false),
            ("1e-5", 1e-5, 4, false),
            ("9007199254740993.0", 9_007_199_254_740_992.0, 18, false),
            ("0.30000000000000004123", 0.300_000_000_000_000_04, 22, false),
        ] {
            let expected = Decimal {
                value,
                len,
                is_integer,
            };
            assert_eq!(Decimal::prefix(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "-", ".", ".5", "nan", "+1", "inf", "-inf"] {
            assert_eq!(Decimal::prefix(text.as_bytes()), None, "{text}");
        }
    }
}
