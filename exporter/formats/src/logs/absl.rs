//! Parses the prefix of absl's log lines: `I1121 00:33:13.624218 140413477075840 metric_logger.py:230] text`.

use pulsetrain_otlp::UnixNanos;

use super::time;

/// The fields of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    /// The time of the line: nanoseconds from 1970 to the local time, as if it were UTC.
    pub(super) local_unix_nanos: u64,
    /// The source file that logged the line.
    pub(super) file: &'a str,
}

/// Splits a line into prefix and text, or returns `None` if it has no prefix.
pub(super) fn split(line: &str, near_unix_nanos: UnixNanos) -> Option<(Prefix<'_>, &str)> {
    let (file, stamp, text) = parts(line)?;
    let local_unix_nanos = time::absl_unix_nanos(stamp, near_unix_nanos)?;
    Some((
        Prefix {
            local_unix_nanos,
            file,
        },
        text,
    ))
}

/// Returns the source file and the text of a line, without the cost of parsing its time.
pub(super) fn file_and_text(line: &str) -> Option<(&str, &str)> {
    parts(line).map(|(file, _, text)| (file, text))
}

fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let rest = line.strip_prefix(['I', 'W', 'E', 'F'])?;
    let is_dated = rest.len() > 5 && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit);
    if !is_dated {
        return None;
    }
    let (head, text) = rest.split_once(']')?;
    let mut words = head.split_ascii_whitespace();
    let (date, clock, file) = (words.next()?, words.next()?, words.next_back()?);
    let stamp = head.get(..date.len() + 1 + clock.len())?;
    let file = file.split_once(':').map_or(file, |(file, _)| file);
    Some((file, stamp, text.strip_prefix(' ').unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_time_and_file() {
        let near = UnixNanos(time::unix_nanos("2026-11-22 00:00:00").unwrap());
        let line = "I1121 00:33:13.624218 140413477075840 metric_logger.py:230] completed step: 0";
        let (prefix, text) = split(line, near).unwrap();
        assert_eq!((prefix.file, text), ("metric_logger.py", "completed step: 0"));
        assert_eq!(
            Some(prefix.local_unix_nanos),
            time::unix_nanos("2026-11-21 00:33:13.624218")
        );
    }

    #[test]
    fn lines_without_a_time_have_no_prefix() {
        for line in [
            "I0000 00:00:1795221162.374285   23181 port.cc:153] oneDNN",
            "Iteration 5] x",
            "I1121",
            "",
        ] {
            assert_eq!(split(line, UnixNanos(1_795_221_162_000_000_000)), None, "{line}");
        }
    }
}
