//! Decodes the bytes of a log to text: removes control sequences and backspaces, replaces invalid UTF-8.

use std::{borrow::Cow, ops::Range, str::Utf8Error, string::FromUtf8Error};

/// Decodes lines of bytes that are mostly clean text. UTF-8 is validated for many lines at once, because validating each line
/// costs more than parsing it.
pub(super) struct CleanText<'a> {
    bytes: &'a [u8],
    /// The offset of `text` in the bytes.
    start: usize,
    /// The validated text without escapes.
    text: &'a str,
}

/// The number of bytes validated at once. It bounds the work if every line has an escape.
const BLOCK_BYTES: usize = 1 << 16;

impl<'a> CleanText<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            start: 0,
            text: "",
        }
    }

    /// Returns the text of a line. Lines must be requested in order.
    #[inline]
    pub(super) fn line(&mut self, line: Range<usize>) -> Cow<'a, str> {
        if line.end > self.start + self.text.len() {
            self.check(line.start);
        }
        let text = self.text.get(line.start - self.start..line.end - self.start);
        text.map_or_else(|| clean(&self.bytes[line]), Cow::Borrowed)
    }

    fn check(&mut self, start: usize) {
        let stretch = &self.bytes[start..self.bytes.len().min(start + BLOCK_BYTES)];
        let plain = &stretch[..memchr::memchr(ESCAPE, stretch).unwrap_or(stretch.len())];
        self.start = start;
        self.text = valid(plain);
    }
}

/// Returns the valid UTF-8 at the beginning of some bytes.
pub(super) fn valid(bytes: &[u8]) -> &str {
    checked(bytes).unwrap_or_else(|error| {
        str::from_utf8(&bytes[..error.valid_up_to()]).expect("invariant: it is valid up to there")
    })
}

/// Returns the bytes as text, or the error of the standard library.
fn checked(bytes: &[u8]) -> Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| str::from_utf8(bytes))
}

/// Decodes bytes and replaces invalid UTF-8.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // Validates all bytes first, which is much faster and nearly always succeeds.
    checked(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Decodes bytes, removes control sequences and replaces invalid UTF-8.
pub(super) fn clean(bytes: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(ESCAPE, bytes).is_none() {
        return lossy(bytes);
    }
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(escape) = memchr::memchr(ESCAPE, rest) {
        kept.extend_from_slice(&rest[..escape]);
        rest = &rest[escape + sequence_len(&rest[escape..])..];
    }
    kept.extend_from_slice(rest);
    // Colored progress bars of Keras move back before they are redrawn.
    kept.retain(|byte| *byte != BACKSPACE);
    let lossy = |torn: FromUtf8Error| String::from_utf8_lossy(torn.as_bytes()).into_owned();
    Cow::Owned(String::from_utf8(kept).unwrap_or_else(lossy))
}

const ESCAPE: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;

/// Returns the length of the control sequence (ECMA-48) at the beginning of `bytes`, its escape included.
fn sequence_len(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        // OSC, DCS, SOS, PM and APC: strings such as OSC 8 hyperlinks
        // (https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda).
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string_len(bytes),
        Some(b'[') => {
            let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(bytes.len(), |end| end + 3)
        }
        Some(_) => 2,
        None => 1,
    }
}

/// Returns the length of a control string, with its terminator: BEL or ST. Without one only the introducer is dropped, so that no
/// text is lost.
fn string_len(bytes: &[u8]) -> usize {
    const INTRODUCER: usize = 2;
    let mut ends = memchr::memchr2_iter(BELL, ESCAPE, &bytes[INTRODUCER..]).map(|end| INTRODUCER + end);
    let end = ends.find(|end| bytes[*end] == BELL || bytes.get(end + 1) == Some(&b'\\'));
    end.map_or(
        INTRODUCER,
        |end| if bytes[end] == BELL { end + 1 } else { end + 2 },
    )
}

const BELL: u8 = 0x07;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backspaces_in_a_coloured_progress_bar_are_removed() {
        assert_eq!(
            clean(b"\x1b[1m1/4\x1b[0m - loss: 2.5\x08\x08\x08"),
            "1/4 - loss: 2.5"
        );
    }

    #[test]
    fn hyperlinks_are_removed_with_either_terminator() {
        for (line, text) in [
            ("\x1b]8;;https://a/b\x07loss\x1b]8;;\x07: 2.5", "loss: 2.5"),
            (
                "\x1b]8;id=1;file:///a.py\x1b\\loss\x1b]8;;\x1b\\: 2.5",
                "loss: 2.5",
            ),
            ("\x1b]0;title\x07\x1b[1mloss\x1b[0m: 2.5", "loss: 2.5"),
            ("\x1bP1$q\x1b\\loss: 2.5", "loss: 2.5"),
            // Without a terminator the text stays.
            ("\x1b]8;;https://a loss: 2.5", "8;;https://a loss: 2.5"),
            ("\x1b]", ""),
            ("\x1b", ""),
        ] {
            assert_eq!(clean(line.as_bytes()), text, "{line:?}");
        }
    }

    #[test]
    fn cleaning_a_block_equals_cleaning_each_line_separately() {
        let mut bytes = Vec::new();
        for number in 0..20_000 {
            bytes.extend_from_slice(match number % 7 {
                0 => b"\x1b[1m>> eval\x1b[22m 1".as_slice(),
                1 => "gr\u{f6}\u{df}e".as_bytes(),
                2 if number % 5 == 0 => b"torn \xc3",
                _ => b":: step 1 | loss 2.5",
            });
            bytes.push(b'\n');
        }
        let mut texts = CleanText::new(&bytes);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &bytes) {
            assert_eq!(texts.line(start..end), clean(&bytes[start..end]), "{start}");
            start = end + 1;
        }
    }

    #[test]
    fn line_longer_than_a_block_is_not_truncated() {
        let bytes = vec![b'x'; 3 * BLOCK_BYTES];
        assert_eq!(
            CleanText::new(&bytes).line(10..bytes.len()).len(),
            bytes.len() - 10
        );
    }
}
