//! Parses the time at the beginning of a line, as Python's logging writes `asctime`: `2026-01-02 10:00:00,123 INFO ...`, also
//! in brackets.

use super::generic;
use pulsetrain_record::LoggedTime;

/// The number of bytes of the date and its separator.
const DATE: usize = 11;

/// Returns the time at the beginning of a line, or `None` for another beginning.
#[inline]
pub(super) fn leading_time(line: &str) -> Option<LoggedTime> {
    let text = line.strip_prefix('[').unwrap_or(line);
    match text.as_bytes() {
        [b'0'..=b'9', _, _, _, b'-', ..] => read(text),
        _ => None,
    }
}

#[inline(never)]
fn read(text: &str) -> Option<LoggedTime> {
    let clock = text.get(DATE..)?;
    let len = clock.find([' ', '\t', ']', '|']).unwrap_or(clock.len());
    generic::date(text[..DATE + len].trim_end_matches([',', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::time;
    use pulsetrain_record::UsedTimezone;

    #[test]
    fn asctime_at_the_beginning_of_a_line_is_its_time() {
        let noon = time::unix_nanos("2026-01-02 12:00:00").unwrap();
        for (line, milliseconds) in [
            ("2026-01-02 12:00:00 INFO step=1", 0),
            ("2026-01-02 12:00:00,123 - root - INFO - step=1", 123),
            ("[2026-01-02 12:00:00,123][root] step=1", 123),
            ("[2026-01-02 12:00:00.5] step=1", 500),
            ("2026-01-02T12:00:00.250Z step=1", 250),
            ("2026-01-02T14:00:00.250+02:00 step=1", 250),
            ("2026-01-02 12:00:00: step=1", 0),
            ("2026-01-02 12:00:00|step=1", 0),
            ("2026-01-02 12:00:00", 0),
        ] {
            assert_eq!(
                leading_time(line).map(|time| UsedTimezone::default().instant(time).0),
                Some(noon + milliseconds * 1_000_000),
                "{line}"
            );
        }
    }

    #[test]
    fn other_beginnings_are_not_a_time() {
        for line in [
            "",
            "step=1 2026-01-02 12:00:00",
            "2026-01-02 step=1",
            "2026-13-02 12:00:00 step=1",
            "2026-01-02 noon",
            "1234-5678",
            "2026-01-0é2 12:00:00",
            "[step 1]",
        ] {
            assert_eq!(leading_time(line), None, "{line}");
        }
    }
}
