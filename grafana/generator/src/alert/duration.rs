//! Durations in Prometheus' notation, such as `1h30m`.

/// Returns the milliseconds of a duration, or `None` if it is not one.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut millis = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        millis += number.parse::<u64>().ok()?.checked_mul(unit)?;
        rest = next;
    }
    (!text.is_empty()).then_some(millis)
}

/// Returns milliseconds in Prometheus' notation.
pub(crate) fn format(millis: u64) -> String {
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    let mut rest = millis;
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_duration_is_parsed_and_formatted() {
        assert_eq!(parse("1h30m"), Some(5_400_000));
        assert_eq!(parse("1d"), Some(86_400_000));
        assert_eq!(format(5_400_000), "1h30m");
        assert_eq!(format(1_500), "1s500ms");
        for wrong in ["", "5", "m", "5 m", "5y"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
