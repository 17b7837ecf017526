//! Finds the newest time without a zone in the text of a log, whatever its format: `2026-11-21 00:18:40`, and absl's
//! `I1121 00:33:07.258122`.

use pulsetrain_otlp::UnixNanos;

use crate::logs::time;

/// The newest time of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds since 1970, as if its clock showed UTC.
    pub(super) local_unix_nanos: u64,
    /// Whether the time is in the last line, so that it was written last.
    pub(super) is_last: bool,
}

/// Returns the last time in a text, or `None` if the text has no time or the time has a zone. The text was written near the given time.
pub(super) fn newest(text: &[u8], near_unix_nanos: UnixNanos) -> Option<Stamp> {
    let lines = text.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
    // The end of a JSON array does not count as a line.
    let mut lines = lines.filter(|line| line.iter().any(u8::is_ascii_alphanumeric));
    let first = lines.next()?;
    let found = of_line(first, near_unix_nanos).map(|time| (time, true));
    let older = || {
        lines
            .find_map(|line| of_line(line, near_unix_nanos))
            .map(|time| (time, false))
    };
    let (time, is_last) = found.or_else(older)?;
    time.map(|local_unix_nanos| Stamp {
        local_unix_nanos,
        is_last,
    })
}

/// The first time of a line: `Some(None)` for one with a zone.
fn of_line(line: &[u8], near_unix_nanos: UnixNanos) -> Option<Option<u64>> {
    (0..line.len()).find_map(|start| {
        let is_start = start == 0 || !line[start - 1].is_ascii_alphanumeric() || is_level(line, start);
        let rest = line.get(start..)?;
        is_start.then(|| iso(rest).or_else(|| absl(line, start, near_unix_nanos)))?
    })
}

/// The length of `2026-11-21 00:18:40`.
const ISO: usize = 19;

fn iso(text: &[u8]) -> Option<Option<u64>> {
    let stamp = str::from_utf8(text.get(..ISO)?).ok()?;
    let seconds = time::local_nanos(stamp)?;
    Some((!has_zone(&text[ISO..])).then_some(seconds))
}

/// Returns whether the rest of a time names a zone: `Z`, `+01:00`, `-0500`, ` UTC`.
fn has_zone(rest: &[u8]) -> bool {
    let fraction = rest
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
    let rest = &rest[fraction.count()..];
    let is_offset =
        matches!(rest, [b'+' | b'-', first, second, ..] if first.is_ascii_digit() && second.is_ascii_digit());
    is_offset || rest.starts_with(b"Z") || rest.starts_with(b" UTC") || rest.starts_with(b" +")
}

/// Returns whether a letter of absl's levels is before `start`.
fn is_level(line: &[u8], start: usize) -> bool {
    let before = start.checked_sub(2).map(|before| line[before]);
    matches!(line[start - 1], b'I' | b'W' | b'E' | b'F')
        && !before.is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// The length of `1121 00:33:07`.
const ABSL: usize = 13;

fn absl(line: &[u8], start: usize, near_unix_nanos: UnixNanos) -> Option<Option<u64>> {
    let is_absl = start > 0 && is_level(line, start);
    let stamp = str::from_utf8(line.get(start..start + ABSL)?).ok()?;
    is_absl.then(|| time::absl_unix_nanos(stamp, near_unix_nanos).map(Some))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22 00:00:00.
    const NEAR: UnixNanos = UnixNanos(1_795_305_600_000_000_000);
    /// 2026-11-21 00:18:40.
    const TIME: u64 = 1_795_220_320_000_000_000;

    #[test]
    fn last_timestamp_of_a_log_is_found_in_every_format() {
        for (text, is_last) in [
            ("[titan] 2026-11-21 00:18:40,088 - root - INFO - step: 1\n", true),
            (
                "old 2025-01-01 00:00:00\n[2026-11-21 00:18:40.5] iteration 1\n",
                true,
            ),
            (
                "I1121 00:18:40.624218 140413477075840 metric_logger.py:230] text\n",
                true,
            ),
            (
                "[\n  {\"log\": \"step\", \"time\": \"2026-11-21 00:18:40.9\", \"step\": 1}\n]\n",
                true,
            ),
            ("2026-11-21T00:18:40 start\ncompleted step: 1\n", false),
        ] {
            let expected = Stamp {
                local_unix_nanos: TIME,
                is_last,
            };
            assert_eq!(newest(text.as_bytes(), NEAR), Some(expected), "{text}");
        }
    }

    #[test]
    fn zoned_times_and_other_numbers_are_not_local_times() {
        for text in [
            "2026-11-21T00:18:40Z x\n",
            "2026-11-21T00:18:40.5+01:00 x\n",
            "2026-11-21 00:18:40 UTC x\n",
            "step 1121 00:18:40\n",
            "loss 2.5\n",
            "",
        ] {
            assert_eq!(newest(text.as_bytes(), NEAR), None, "{text}");
        }
    }
}
