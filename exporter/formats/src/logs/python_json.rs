//! The JSON of Python's `json` module, which writes `NaN`, `Infinity` and `-Infinity` although they are not valid JSON.

use memchr::memchr2;
use serde_json::Value;

/// The numbers that are not valid JSON.
const NUMBERS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Parses the first object of some bytes. A non-finite number becomes a string with its name, which [`number`] reads. Also
/// returns the length of the object.
///
/// # Errors
/// The bytes are not JSON, or end inside the object ([`serde_json::Error::is_eof`]).
pub(super) fn first(bytes: &[u8]) -> serde_json::Result<(usize, Value)> {
    let (len, quoted) = quote(bytes);
    serde_json::from_slice(&quoted).map(|object| (len, object))
}

/// Parses a text that is one object, as [`first`] does.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| {
        let (len, object) = first(text.as_bytes()).ok()?;
        text[len..].trim().is_empty().then_some(object)
    })
}

/// Returns a number, finite or non-finite.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns the elements of a list, or none for any other value.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Puts non-finite numbers into quotes, up to the end of the first object. Returns the length of that object and its text with
/// quotes; all bytes if they end inside it.
fn quote(bytes: &[u8]) -> (usize, Vec<u8>) {
    let (mut quoted, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        if NUMBERS.iter().any(|number| number.starts_with(rest)) {
            // The bytes end inside the number.
            break;
        }
        let number = NUMBERS.into_iter().find(|number| rest.starts_with(number));
        let len = match byte {
            b'"' => string_len(rest),
            _ => number.map_or(1, <[u8]>::len),
        };
        let edge = number.map(|_| b'"');
        quoted.extend(edge);
        quoted.extend_from_slice(&rest[..len]);
        quoted.extend(edge);
        at += len;
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => break,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    (at, quoted)
}

/// Returns the length of the string at the start of some bytes with its quotes; all bytes if they end inside it.
fn string_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(next) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += next + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // The next character is escaped.
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_json_numbers_become_strings_and_strings_are_unchanged() {
        let text = br#"{"a": [NaN, -Infinity], "b": {"c":Infinity}, "NaN \" NaN": "x NaN \\"} {"#;
        let (len, object) = first(text).unwrap();
        assert_eq!(len, text.len() - 2);
        let expected = r#"{"a":["NaN","-Infinity"],"b":{"c":"Infinity"},"NaN \" NaN":"x NaN \\"}"#;
        assert_eq!(object, serde_json::from_str::<Value>(expected).unwrap());
        assert!(number(&object["a"][0]).unwrap().is_nan());
        assert_eq!(number(&object["b"]["c"]), Some(f64::INFINITY));
        assert_eq!(parse(r#"{"a": NaN} "#).unwrap()["a"], "NaN");
        assert_eq!(parse(r#"{"a": NaN} {"#), None);
    }

    #[test]
    fn every_prefix_of_an_object_is_reported_as_truncated() {
        let text = br#"{"a": {"b\"": NaN}, "c": "d\\"}"#;
        assert_eq!(first(text).unwrap().0, text.len());
        for end in 0..text.len() {
            assert!(first(&text[..end]).unwrap_err().is_eof(), "{end}");
        }
    }
}
