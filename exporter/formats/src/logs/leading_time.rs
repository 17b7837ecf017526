//! Returns the time before the message of a line, and removes the place in the source from it.

use super::{prefix::Prefix, timestamp::DateOrder};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::LoggedTime;

/// Returns the time before the message of a line, or `None` for another beginning.
#[inline]
pub(super) fn leading_time(line: &str, near_unix_nanos: UnixNanos, order: &DateOrder) -> Option<LoggedTime> {
    let of_prefix = |line| Prefix::parse(line, near_unix_nanos, order).time;
    // ESPnet writes the host in brackets before the time. Transformers writes `[INFO|trainer.py:2409]` before that of its own
    // messages; its records have no time, and must not follow those of the messages.
    let after_bracket = || {
        let (host, rest) = line.strip_prefix('[')?.split_once("] ")?;
        (!host.contains('|')).then(|| of_prefix(rest))?
    };
    match line.as_bytes().first()? {
        b'[' => of_prefix(line)
            .filter(|_| !is_of_transformers(line))
            .or_else(after_bracket),
        first if first.is_ascii_alphanumeric() || matches!(first, b'(' | b'<') => {
            of_prefix(line).or_else(|| after_host(line, near_unix_nanos, order))
        }
        _ => None,
    }
}

fn is_of_transformers(line: &str) -> bool {
    line.split_once(']')
        .is_some_and(|(inside, _)| inside.contains('|'))
}

/// Parses the time after one word and a delimiter: `alpha: 2026-01-02 10:00:00`, `app-1  | 2026-01-02 10:00:00`.
#[inline]
fn after_host(line: &str, near_unix_nanos: UnixNanos, order: &DateOrder) -> Option<LoggedTime> {
    if !line.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let (host, rest) = line.split_once([':', '|'])?;
    let rest = rest.strip_prefix(' ')?;
    let is_host = !host.trim_end().contains(' ');
    is_host.then(|| Prefix::parse(rest, near_unix_nanos, order).time)?
}

/// Returns the message of a line after the place in the source, whose line number is not a value: after `| train:main:42 - ` of
/// loguru, after `[gpu01] 2026-01-02 12:00:00,123 (trainer:737) INFO: `, and after `[train.py:893] (0/8) ` of icefall, where 0
/// is the rank.
pub(super) fn without_source_line(line: &str) -> &str {
    let is_place = |place: &str, colons: usize| {
        let number = place.rsplit_once(':').map(|(_, number)| number);
        place.matches(':').count() == colons
            && !place.contains(' ')
            && number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let of_loguru = line.split_once(" - ").filter(|(head, _)| {
        head.rsplit_once("| ")
            .is_some_and(|(_, place)| is_place(place, 2))
    });
    let of_level = || {
        let (head, rest) = line.split_once(") ")?;
        let (before, place) = head.rsplit_once(" (")?;
        let (level, message) = rest.split_once(": ")?;
        let is_prefix = is_place(place, 1)
            && LEVELS.contains(&level)
            && leading_time(before, UnixNanos::default(), &DateOrder::default()).is_some();
        is_prefix.then_some(message)
    };
    let of_rank = || {
        let (head, rest) = line.split_once("] (")?;
        let (_, place) = head.rsplit_once('[')?;
        let (rank, message) = rest.split_once(") ")?;
        let (rank, ranks) = rank.split_once('/')?;
        let is_rank = rank.parse::<u32>().is_ok() && ranks.parse::<u32>().is_ok();
        (is_rank && is_place(place, 1) && place.contains(".py:")).then_some(message)
    };
    of_loguru
        .map(|(_, message)| message)
        .or_else(of_level)
        .or_else(of_rank)
        .unwrap_or(line)
}

/// The levels of Python's logging.
const LEVELS: [&str; 5] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::time;
    use pulsetrain_record::UsedTimezone;

    #[test]
    fn only_the_place_in_the_source_is_removed_from_a_line() {
        for (line, message) in [
            (
                "2026-01-02 12:00:00.5 | INFO     | train:main:42 - step=1",
                "step=1",
            ),
            (
                "[gpu01] 2026-01-02 12:00:00,123 (trainer:737) INFO: step=1",
                "step=1",
            ),
            (
                "2026-01-02 12:00:00,123 INFO [train.py:893] (0/8) step=1",
                "step=1",
            ),
        ] {
            assert_eq!(without_source_line(line), message);
        }
        for line in [
            "2026-01-02 12:00:00 | INFO | step:100 - loss: 2.5",
            "2026-01-02 12:00:00 | INFO | epoch:1 - loss 2.5 lr 0.1",
            "| step:100 | lr:1 - loss: 2.5",
            "Train (epoch 1, step:10) INFO: loss 2.5",
            "INFO [epoch:1] (10/100) loss 2.5",
            "2026-01-02 12:00:00 Train (epoch 1, step:10) INFO: loss 2.5",
        ] {
            assert_eq!(without_source_line(line), line);
        }
    }

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
            ("2026-01-02,12:00:00 | INFO | step=1", 0),
            ("[2026-01-02:12:00:00:INFO:root:log] step=1", 0),
            ("[gpu01] 2026-01-02 12:00:00,123 (trainer:737) INFO: step=1", 123),
            ("01/02/2026 12:00:00 - INFO - __main__ - step=1", 0),
            ("I0102 12:00:00.123000 140413477075840 train.py:99] step=1", 123),
            ("[01/02/26 12:00:00] INFO     step=1   train.py:42", 0),
            ("node01: 2026-01-02 12:00:00,123 step=1", 123),
            ("node01: [2026-01-02 12:00:00,123] step=1", 123),
            ("trainer-1  | 2026-01-02 12:00:00 INFO step: 1", 0),
        ] {
            assert_eq!(
                leading_time(line, UnixNanos(noon), &DateOrder::default())
                    .map(|time| UsedTimezone::default().instant(time).0),
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
            "the start: 2026-01-02 12:00:00",
            "2026-01-02 step=1",
            "2026-13-02 12:00:00 step=1",
            "2026-01-02 noon",
            "1234-5678",
            "[INFO|trainer.py:2409] 2026-01-02 12:00:00 >> step=1",
            "12/100 steps - loss",
            "1/2/3 - x",
            "2026-01-0é2 12:00:00",
            "[step 1]",
            "E0000 00:00:1795221162.374285   23181 port.cc:153] oneDNN",
        ] {
            assert_eq!(
                leading_time(line, UnixNanos::default(), &DateOrder::default()),
                None,
                "{line}"
            );
        }
    }
}
