//! Parses the time at the beginning of a line, as Python's logging writes `asctime`: `2026-01-02 10:00:00,123 INFO ...`, also
//! in brackets, with slashes, or as Transformers' examples do: `01/02/2026 10:00:00 - INFO - ...`.

use super::generic;
use pulsetrain_record::LoggedTime;

/// The number of bytes of the date and its separator.
const DATE: usize = 11;

/// Returns the time at the beginning of a line, or `None` for another beginning.
#[inline]
pub(super) fn leading_time(line: &str) -> Option<LoggedTime> {
    let text = line.strip_prefix('[').unwrap_or(line);
    match text.as_bytes() {
        [b'0'..=b'9', _, _, _, b'-' | b'/', ..] => read(text),
        [b'0'..=b'9', _, b'/', _, _, b'/', ..] => read_month_first(text),
        _ => None,
    }
}

/// The levels of Python's logging.
const LEVELS: [&str; 5] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/// Parses the beginning of a line of Transformers' examples, `%m/%d/%Y %H:%M:%S - LEVEL - `. Other programs may write the day
/// first, so another continuation is rejected.
#[inline(never)]
fn read_month_first(text: &str) -> Option<LoggedTime> {
    let (time, rest) = text.split_once(" - ")?;
    let (level, _) = rest.split_once(" - ")?;
    if !LEVELS.contains(&level) {
        return None;
    }
    let (date, clock) = time.split_once(' ')?;
    let (month_and_day, year) = date.rsplit_once('/')?;
    generic::date(&format!("{year}/{month_and_day} {clock}"))
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
            ("[2026/01/02 12:00:00] step=1", 0),
            ("01/02/2026 12:00:00 - INFO - __main__ - step=1", 0),
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
            "01/02/2026 12:00:00 step=1",
            "13/02/2026 12:00:00 - INFO - step=1",
            "01/02/2026 12:00:00 - step=1",
            "12/100 steps - loss",
            "1/2/3 - x",
            "2026-01-0é2 12:00:00",
            "[step 1]",
        ] {
            assert_eq!(leading_time(line), None, "{line}");
        }
    }
}
