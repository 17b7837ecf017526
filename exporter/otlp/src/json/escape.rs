//! Escapes text for JSON strings, and decodes escapes.

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Returns the length of the longest prefix of `bytes` without a quote, backslash or control character, eight bytes at a time.
#[inline]
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let special = special_bytes(u64::from_le_bytes(*chunk));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes[at..].iter().position(|&byte| is_special(byte));
    rest.map_or(bytes.len(), |index| at + index)
}

/// Returns whether `bytes` are ASCII without a character to escape.
#[inline]
fn is_plain_ascii(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let is_plain = |word: u64| special_bytes(word) | (word & HIGHS) == 0;
    words.iter().all(|chunk| is_plain(u64::from_le_bytes(*chunk)))
        && rest.iter().all(|&byte| byte.is_ascii() && !is_special(byte))
}

/// Returns the high bit of every quote, backslash and control character; bytes above the first match may be marked wrongly.
#[inline]
fn special_bytes(word: u64) -> u64 {
    zero_bytes(word ^ (ONES * b'"' as u64))
        | zero_bytes(word ^ (ONES * b'\\' as u64))
        | (word.wrapping_sub(ONES * b' ' as u64) & !word & HIGHS)
}

/// Returns the high bit of every byte that is zero; bytes above the first match may be marked wrongly.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
#[inline]
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if is_plain_ascii(text) || (plain_len(text) == text.len() && is_utf8(text)) {
        out.extend_from_slice(text);
    } else {
        write_escaped(text, out);
    }
    out.push(b'"');
}

#[inline]
fn is_utf8(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok()
}

#[cold]
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid().as_bytes();
        while !rest.is_empty() {
            let (plain, special) = rest.split_at(plain_len(rest));
            out.extend_from_slice(plain);
            rest = match special.split_first() {
                Some((&byte, rest)) => {
                    write_escape(byte, out);
                    rest
                }
                None => &[],
            };
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(REPLACEMENT);
        }
    }
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            return super::hex::encode(&[byte], out);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends the decoded content of a JSON string; a lone surrogate becomes U+FFFD.
///
/// # Errors
///
/// Returns the index of a backslash that begins no valid escape.
pub(super) fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = 0;
    while let Some(skip) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + skip]);
        at += skip;
        at += unescape_one(&raw[at..], out).ok_or(at)?;
    }
    out.extend_from_slice(&raw[at..]);
    Ok(())
}

/// Appends the decoded escape at the start of `raw`; returns the length of the escape.
fn unescape_one(raw: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let byte = match *raw.get(1)? {
        byte @ (b'"' | b'\\' | b'/') => byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unescape_unicode(raw, out),
        _ => return None,
    };
    out.push(byte);
    Some(2)
}

fn unescape_unicode(raw: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let unit = code_unit(raw)?;
    let pair = (0xd800..0xdc00)
        .contains(&unit)
        .then(|| code_unit(raw.get(6..)?).filter(|low| (0xdc00..0xe000).contains(low)))
        .flatten();
    let (code, length) = match pair {
        Some(low) => (0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00), 12),
        None => (unit, 6),
    };
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(length)
}

/// Returns the number of a `\uXXXX` at the start of `raw`.
fn code_unit(raw: &[u8]) -> Option<u32> {
    let digits = raw.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &[u8]) -> String {
        let mut out = Vec::new();
        write_string(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn read(raw: &str) -> Result<String, usize> {
        let mut out = Vec::new();
        unescape(raw.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn byte_that_needs_escaping_is_found_at_every_position() {
        for length in 0..40 {
            for at in 0..length {
                for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
                    let mut text = vec![0xff; length];
                    text[at] = special;
                    text[at + 1..].fill(special ^ 1);
                    assert_eq!(plain_len(&text), at, "{special} at {at} of {length}");
                }
            }
            assert_eq!(plain_len(&vec![b'!'; length]), length);
        }
    }

    #[test]
    fn only_quotes_backslashes_and_control_characters_are_escaped() {
        assert_eq!(
            written(b"a\"b\\c\n\r\t\x01\x7f"),
            "\"a\\\"b\\\\c\\n\\r\\t\\u0001\u{7f}\""
        );
        assert_eq!(
            written("größe 損失 \u{1f525}".as_bytes()),
            "\"größe 損失 \u{1f525}\""
        );
    }

    #[test]
    fn invalid_utf8_is_written_as_the_replacement_character() {
        assert_eq!(written(b"a\xffb\xc3"), "\"a\u{fffd}b\u{fffd}\"");
    }

    #[test]
    fn every_json_escape_is_decoded() {
        assert_eq!(
            read(r#"\"\\\/\b\f\n\r\tA\u00e9\ud83d\uDD25z"#).unwrap(),
            "\"\\/\u{8}\u{c}\n\r\tAé\u{1f525}z"
        );
    }

    #[test]
    fn lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(read(r"\ud83dx").unwrap(), "\u{fffd}x");
        assert_eq!(read(r"\udd25").unwrap(), "\u{fffd}");
        assert_eq!(read(r"\ud83d\ud83d\udd25").unwrap(), "\u{fffd}\u{1f525}");
    }

    #[test]
    fn invalid_escape_is_reported_with_its_offset() {
        assert_eq!(read(r"ab\x"), Err(2));
        assert_eq!(read(r"\u12g4"), Err(0));
        assert_eq!(read(r"\u12"), Err(0));
    }
}
