//! The JSON of Python's `json` module, which writes `NaN`, `Infinity` and `-Infinity` although JSON lacks them.

use memchr::memchr2;
use serde_json::Value;

/// The numbers that JSON lacks.
const NUMBERS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Parses an object whose numbers may be no JSON; such a number becomes its name as a string.
pub(super) fn parse(object: &[u8]) -> Option<Value> {
    serde_json::from_slice(object).ok().or_else(|| {
        let (_, quoted) = quote(object)?;
        serde_json::from_slice(&quoted).ok()
    })
}

/// Puts the numbers that JSON lacks into quotes. Returns the length of the first object of some bytes and its text with quotes, or
/// `None` if the object is incomplete.
pub(super) fn quote(bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (mut quoted, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let number = NUMBERS.into_iter().find(|number| rest.starts_with(number));
        let len = match byte {
            b'"' => string_len(rest)?,
            _ => number.map_or(1, <[u8]>::len),
        };
        let edge = number.map(|_| b'"');
        quoted.extend(edge);
        quoted.extend_from_slice(&rest[..len]);
        quoted.extend(edge);
        at += len;
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some((at, quoted)),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the length of the string at the start of some bytes with its quotes.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', &bytes[at..])?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            // The next character is escaped.
            _ if at + 2 <= bytes.len() => at += 2,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_strings_and_strings_are_untouched() {
        let text = br#"{"a": [NaN, -Infinity], "b": {"c":Infinity}, "NaN \" NaN": "x NaN \\"} {"#;
        let (len, quoted) = quote(text).unwrap();
        assert_eq!(len, text.len() - 2);
        let expected = r#"{"a": ["NaN", "-Infinity"], "b": {"c":"Infinity"}, "NaN \" NaN": "x NaN \\"}"#;
        assert_eq!(String::from_utf8(quoted).unwrap(), expected);
        assert_eq!(parse(&text[..len]).unwrap()["b"]["c"], "Infinity");
    }

    #[test]
    fn every_part_of_an_object_is_incomplete() {
        let text = br#"{"a": {"b\"": NaN}, "c": "d\\"}"#;
        assert_eq!(quote(text).unwrap().0, text.len());
        for end in 0..text.len() {
            assert!(quote(&text[..end]).is_none(), "{end}");
        }
    }
}
