//! Formats sample values.

/// Writes the shortest text of the number, with Prometheus' forms of NaN and infinities.
#[inline]
pub(super) fn push(value: f64, out: &mut Vec<u8>) {
    /// The limit below which f64 represents every integer (2^53). Smaller integers are written without a
    /// fraction.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if value.abs() < WHOLE && value.trunc() == value {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    } else if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    }
}

/// Writes a count.
#[inline]
pub(super) fn push_count(count: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formatted_number_round_trips() {
        let values = [
            0.0,
            1.0,
            -1.0,
            2.5,
            1e-300,
            1.797e308,
            5e-324,
            123456789.125,
            9.007199254740993e15,
            0.1,
            1e22,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for value in values {
            let mut out = Vec::new();
            push(value, &mut out);
            let text = String::from_utf8(out).unwrap();
            let read: f64 = text.parse().unwrap();
            assert!(
                read == value || (read.is_nan() && value.is_nan()),
                "{value}: {text}"
            );
        }
    }
}
