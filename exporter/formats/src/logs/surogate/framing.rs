//! Finds the boundaries of records in the bytes of the file.
//!
//! Records are found by their beginnings. Strings are not escaped, so a quote or a newline in a message defeats every other
//! rule, and lists of maxima span several lines.

use std::sync::LazyLock;

use memchr::memmem;

use super::record;

/// The beginning of every record.
const START: &[u8] = b"{\"log\":";

/// The searcher of [`START`], built once, because building it costs as much as a short search.
static FIND_START: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(START));

/// The boundaries of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The offset of its first byte.
    pub(super) start: usize,
    /// The offset after its last byte.
    pub(super) end: usize,
    /// The offset of the next record.
    pub(super) next: usize,
}

/// Returns the record at `from` if its end is known: the beginning of the next record, the end of the array, or the end of the
/// input.
pub(super) fn next(bytes: &[u8], from: usize, is_last: bool) -> Option<Frame> {
    if from >= bytes.len() {
        return None;
    }
    let next = match first_start(bytes, from + START.len()) {
        Some(next) => next,
        None if is_last => bytes.len(),
        None => return before_closing(bytes, from),
    };
    let end = from + trimmed_len(&bytes[from..next]);
    Some(Frame {
        start: from,
        end,
        next,
    })
}

/// The text after the last record of an idle file. The next record overwrites it.
const CLOSING: &[u8] = b"\n]\n";

/// Returns the record at `from` if it is complete and the array is closed after it. A growing file ends there; nothing of the
/// next record is visible yet.
fn before_closing(bytes: &[u8], from: usize) -> Option<Frame> {
    let text = bytes[from..].strip_suffix(CLOSING)?;
    let end = from + text.len();
    let is_complete = |text: &str| record::parse(text).is_ok_and(|record| record.len == text.len());
    let complete = text.ends_with(b"}") && is_complete(&String::from_utf8_lossy(text));
    complete.then_some(Frame {
        start: from,
        end,
        next: end,
    })
}

/// Returns the offset from which bytes without a record must be kept, because they may be a part of one.
pub(super) fn keep_from(bytes: &[u8]) -> usize {
    let longest = START.len() + MARGIN;
    bytes.len().saturating_sub(longest)
}

/// Returns the offset before which no record begins. A beginning after it may be incomplete.
pub(super) fn searched(bytes: &[u8]) -> usize {
    (bytes.len() + 1).saturating_sub(START.len())
}

/// The maximum white space that is checked before a record.
const MARGIN: usize = 32;

/// Returns whether bytes between records are the array's own.
pub(super) fn is_punctuation(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| matches!(byte, b'[' | b']' | b',') || byte.is_ascii_whitespace())
        || bytes == b"\xef\xbb\xbf["
}

/// Returns the start of the first record at or after `from`.
pub(super) fn first_start(bytes: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    FIND_START
        .find_iter(tail)
        .map(|offset| from + offset)
        .find(|start| begins_record(&bytes[..*start]))
}

/// Returns whether a record can begin after these bytes: a new line, the beginning of the array or the end of the previous
/// record. The same text inside a message follows other text.
fn begins_record(before: &[u8]) -> bool {
    let window = &before[before.len().saturating_sub(MARGIN)..];
    let rest = window.trim_ascii_end();
    if rest.len() < window.len() && window[rest.len()..].contains(&b'\n') {
        return true;
    }
    match rest {
        [] | [.., b'['] => true,
        [head @ .., b','] => head.trim_ascii_end().ends_with(b"}"),
        _ => false,
    }
}

/// Returns the length of a record without trailing punctuation.
fn trimmed_len(bytes: &[u8]) -> usize {
    let kept = bytes
        .iter()
        .rposition(|byte| !(matches!(byte, b',' | b']') || byte.is_ascii_whitespace()));
    let end = kept.map_or(0, |last| last + 1);
    // The brackets of a truncated list belong to the record.
    if end > 0 && bytes[end - 1] == b'}' {
        end
    } else {
        bytes.trim_ascii_end().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &str) -> Vec<&str> {
        let bytes = text.as_bytes();
        let mut from = first_start(bytes, 0).unwrap_or(bytes.len());
        let mut frames = Vec::new();
        while let Some(frame) = next(bytes, from, true) {
            frames.push(&text[frame.start..frame.end]);
            from = frame.next;
        }
        frames
    }

    #[test]
    fn records_of_the_native_file_are_found() {
        let text = "[\n  {\"log\": \"a\"},\n  {\"log\": \"b\", \"x\": [\n1,\n2]}\n]\n";
        assert_eq!(
            frames(text),
            ["{\"log\": \"a\"}", "{\"log\": \"b\", \"x\": [\n1,\n2]}"]
        );
    }

    #[test]
    fn single_line_array_and_json_lines_are_both_framed() {
        assert_eq!(
            frames("[{\"log\":1},{\"log\":2}]"),
            ["{\"log\":1}", "{\"log\":2}"]
        );
        assert_eq!(
            frames("{\"log\":1}\n{\"log\":2}\n"),
            ["{\"log\":1}", "{\"log\":2}"]
        );
    }

    #[test]
    fn record_start_inside_a_message_is_text() {
        let text = "[\n  {\"log\": \"info\", \"message\": \"saw {\"log\": \"x\"} there\"}\n]\n";
        assert_eq!(frames(text).len(), 1);
    }

    #[test]
    fn last_record_stays_unread_until_it_is_terminated() {
        let bytes = b"[\n  {\"log\": 1},\n  {\"log\": 2}\n]\n";
        let first = next(bytes, 4, false).unwrap();
        assert_eq!(&bytes[first.start..first.end], b"{\"log\": 1}");
        assert_eq!(next(bytes, first.next, false), None);
    }

    const RECORD: &str =
        r#"{"log": "info", "time": "2026-11-21 00:18:40.979062193", "step": 0, "message": "x"}"#;

    #[test]
    fn closing_bracket_completes_the_last_record_and_stays_unread() {
        let file = format!("[\n  {RECORD}\n]\n");
        let frame = next(file.as_bytes(), 4, false).unwrap();
        assert_eq!(
            (&file[frame.start..frame.end], &file[frame.next..]),
            (RECORD, "\n]\n")
        );
    }

    #[test]
    fn record_truncated_at_any_offset_is_incomplete() {
        let file = format!("[\n  {RECORD}\n]\n");
        for torn in 4..file.len() {
            assert_eq!(next(&file.as_bytes()[..torn], 4, false), None, "{torn}");
        }
        // The text of a message that looks like the end of the file.
        let torn = &file.replace("\"x\"}", "\"x}");
        assert_eq!(next(torn.as_bytes(), 4, false), None);
    }
}
