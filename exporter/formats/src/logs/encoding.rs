//! Inputs whose bytes are no log in any format: compressed ones, and text in UTF-16 as shells of Windows write it.

use crate::FormatError;

/// What compressed files begin with, and what decompresses them. Of the first two only those come here that are followed, or
/// that were compressed twice.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ", "xz"),
    (b"BZh91AY", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
];

/// The marks at the beginning of text in UTF-16, in both orders of bytes.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// The mark that some editors put at the beginning of text in UTF-8, which says nothing.
pub(super) const UTF_8: &[u8] = b"\xef\xbb\xbf";

/// Why no format can read what begins like this, with what to do about it.
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

/// What is a log of the first bytes: all but for the mark.
pub fn without_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(UTF_8).unwrap_or(head)
}

fn has_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(64)]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_of_utf_16_are_taken_for_it() {
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
        assert_eq!(without_mark(b"\xef\xbb\xbfstep"), b"step");
    }
}
