//! Durations as Python programs print them: `0:07:45` and `1 day, 2:03:04` of `datetime.timedelta`, and `1d 2h 3m 4s`.

/// Returns the seconds of a duration, or `None` if the text is not a duration.
pub fn seconds(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once(" day") {
        Some((days, rest)) => (
            days.parse::<f64>().ok()?,
            rest.trim_start_matches('s').strip_prefix(", ")?,
        ),
        None => (0.0, text),
    };
    let seconds = clock_seconds(clock).or_else(|| parts_seconds(clock))?;
    Some(days * 86_400.0 + seconds)
}

/// Parses `7:45` or `0:07:45.5`.
fn clock_seconds(text: &str) -> Option<f64> {
    let parts: Vec<&str> = text.split(':').collect();
    if !matches!(parts.len(), 2 | 3) {
        return None;
    }
    let mut seconds = 0.0;
    for part in parts {
        seconds = seconds * 60.0 + unsigned(part)?;
    }
    Some(seconds)
}

/// Parses `1h 2m 3s`, with or without spaces.
fn parts_seconds(text: &str) -> Option<f64> {
    let (mut seconds, mut rest) = (0.0, text.trim());
    while !rest.is_empty() {
        let unit = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let factor = match rest.as_bytes()[unit] {
            b'd' => 86_400.0,
            b'h' => 3600.0,
            b'm' => 60.0,
            b's' => 1.0,
            _ => return None,
        };
        seconds += unsigned(&rest[..unit])? * factor;
        let after = &rest[unit + 1..];
        if after.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return None;
        }
        rest = after.trim_start();
    }
    (!text.trim().is_empty()).then_some(seconds)
}

fn unsigned(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_python_programs_are_seconds() {
        for (text, expected) in [
            ("0:07:45", Some(465.0)),
            ("07:45", Some(465.0)),
            ("1:02:03.5", Some(3723.5)),
            ("1 day, 0:00:01", Some(86_401.0)),
            ("3 days, 2:03:04", Some(266_584.0)),
            ("1d 2h 3m 4s", Some(93_784.0)),
            ("4m31s", Some(271.0)),
            ("31s", Some(31.0)),
            ("", None),
            ("12", None),
            ("10:00:00:00", None),
            ("-1:00", None),
            ("4ms", None),
            ("fast", None),
            ("1e3:00", None),
            ("days", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
