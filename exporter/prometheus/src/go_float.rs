//! Formats numbers like Go, for labels: `le="1e+06"` must be the same text in every exporter.

/// Returns the shortest text of the number, like `strconv.FormatFloat(value, 'g', -1, 64)`.
pub(crate) fn text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Returns the text for OpenMetrics, where an integer has a fraction: `1.0`.
pub(crate) fn open_metrics(value: f64) -> String {
    let mut text = text(value);
    if !text.contains(['.', 'e', 'n', 'N']) {
        text.push_str(".0");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_as_in_go() {
        let cases = [
            (0.0, "0", "0.0"),
            (1.0, "1", "1.0"),
            (0.005, "0.005", "0.005"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "1e-05"),
            (100_000.0, "100000", "100000.0"),
            (1_000_000.0, "1e+06", "1e+06"),
            (123_456_789.0, "1.23456789e+08", "1.23456789e+08"),
            (2.5e21, "2.5e+21", "2.5e+21"),
            (-2.5, "-2.5", "-2.5"),
            (f64::INFINITY, "+Inf", "+Inf"),
            (f64::NEG_INFINITY, "-Inf", "-Inf"),
        ];
        for (value, plain, with_fraction) in cases {
            assert_eq!(text(value), plain);
            assert_eq!(open_metrics(value), with_fraction);
        }
    }
}
