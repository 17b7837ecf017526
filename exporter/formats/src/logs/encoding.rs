//! Detects inputs that no format can read: compressed files, and text in UTF-16 as Windows shells write it.

use std::borrow::Cow;

use crate::FormatError;

/// Magic numbers of compressed files, with the program that decompresses each. gzip and zstd arrive here only from followed
/// files and from doubly compressed ones.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ", "xz"),
    (b"BZh91AY", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
];

/// The byte order marks of UTF-16.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The byte order mark of UTF-8.
pub(super) const UTF_8: &[u8] = b"\xef\xbb\xbf";

/// Returns the error of an input that no format can read.
pub fn unreadable(input: &str, head: &[u8]) -> Option<FormatError> {
    let name = || input.to_owned();
    if let Some((_, program)) = COMPRESSED.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(FormatError::Compressed {
            name: name(),
            program,
        });
    }
    let is_utf_16 = UTF_16.iter().any(|mark| head.starts_with(mark)) && head.get(2..).is_some_and(has_nul);
    is_utf_16.then(|| FormatError::Utf16 { name: name() })
}

/// Returns the head without a byte order mark.
pub fn without_byte_order_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(UTF_8).unwrap_or(head)
}

/// Returns the head of a text without zero bytes, which a crash, or a truncation of a file that is written, leaves in it. Other bytes are
/// returned as they are.
pub(super) fn without_zeros(head: &[u8]) -> Cow<'_, [u8]> {
    /// The most bytes of a text for one zero.
    const BYTES_OF_ZERO: usize = 64;
    let leading = head.iter().take_while(|byte| **byte == 0).count();
    let text = &head[leading..];
    let zeros = memchr::memchr_iter(0, text).count();
    match zeros {
        0 => Cow::Borrowed(text),
        _ if zeros * BYTES_OF_ZERO < text.len() => text.iter().copied().filter(|byte| *byte != 0).collect(),
        _ => Cow::Borrowed(head),
    }
}

fn has_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(64)]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_detected_by_its_mark_and_zero_bytes() {
        let utf_16 = |text: &str| {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
        };
        let found = unreadable("log", &utf_16("step 1"));
        assert!(matches!(found, Some(FormatError::Utf16 { .. })), "{found:?}");
        assert!(unreadable("log", b"\xff\xfe\xfd\xfc garbage without a zero").is_none());
        assert!(unreadable("log", b"step 1").is_none());
        assert!(unreadable("log", b"BZh91AY&SY").is_some());
        assert!(unreadable("log", b"BZhukov wrote this log").is_none());
        assert_eq!(without_byte_order_mark(b"\xef\xbb\xbfstep"), b"step");
    }
}
