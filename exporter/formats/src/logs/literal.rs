//! Parses flat objects of JSON and Python literals: `{"loss": 2.3, "epoch": NaN}` and `{'loss': '4.471', 'done': True}`.
//!
//! Python's `json` writes `NaN` and `Infinity`, which strict parsers refuse. A diverged loss must not be lost for that.

use pulsetrain_mapping::{Decimal, Field, FieldValue, number_text};
use std::borrow::Cow;

/// The maximum depth of nested objects whose fields are read.
pub(super) const DEPTH: usize = 16;

/// The size of a parsed object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    /// The number of bytes of the object.
    pub(super) len: usize,
    /// The number of keys whose value is `null` or `None`.
    pub(super) nulls: u64,
}

/// Appends the fields of the object at the beginning of `text`. Returns `None` if the object is incomplete. Fields of objects
/// up to `depth` levels inside have keys joined by dots. Lists and deeper objects are kept as text; `null` and `None` are only
/// counted.
pub(super) fn read<'a>(text: &'a str, depth: usize, fields: &mut Vec<Field<'a>>) -> Option<Object> {
    let mut nulls = 0;
    let mut field = |key: Cow<'a, str>, value: Option<FieldValue<'a>>| match value {
        Some(value) => fields.push((key, value)),
        None => nulls += 1,
    };
    let mut cursor = Cursor { text, at: 0 };
    cursor.fields(depth, "", &mut field)?;
    Some(Object {
        len: cursor.at,
        nulls,
    })
}

/// Returns the fields of the object at the beginning of `text`, without those of objects inside it, and its length.
pub(super) fn object(text: &str) -> Option<(Vec<Field<'_>>, usize)> {
    let mut fields = Vec::with_capacity(24);
    let object = read(text, 0, &mut fields)?;
    Some((fields, object.len))
}

/// Returns the value of `key` if it is text.
pub(super) fn text<'f>(fields: &'f [Field<'_>], key: &str) -> Option<&'f str> {
    fields
        .iter()
        .find(|(name, _)| name == key)
        .and_then(|(_, value)| match value {
            FieldValue::Text(text) => Some(text.as_ref()),
            FieldValue::Number(_) => None,
        })
}

/// Returns the value of `key` as a number.
pub(super) fn number(fields: &[Field<'_>], key: &str) -> Option<f64> {
    fields
        .iter()
        .find(|(name, _)| name == key)
        .and_then(|(_, value)| value.number())
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Calls `field` with each key of an object and its value. `outer` is the path of a nested object.
    fn fields<F>(&mut self, depth: usize, outer: &str, field: &mut F) -> Option<()>
    where
        F: FnMut(Cow<'a, str>, Option<FieldValue<'a>>),
    {
        self.take(b'{')?;
        while self.peek()? != b'}' {
            let key = self.string()?;
            self.take(b':')?;
            if self.peek()? == b'{' && depth > 0 {
                self.fields(depth - 1, &[outer, &key, "."].concat(), field)?;
            } else {
                let value = self.value()?;
                field(joined(outer, key), value);
            }
            if self.peek()? == b',' {
                self.at += 1;
            } else if self.peek()? != b'}' {
                return None;
            }
        }
        self.at += 1;
        Some(())
    }

    fn value(&mut self) -> Option<Option<FieldValue<'a>>> {
        match self.peek()? {
            b'"' | b'\'' => self.string().map(|text| Some(FieldValue::Text(text))),
            b'{' | b'[' => self
                .nested()
                .map(|text| Some(FieldValue::Text(Cow::Borrowed(text)))),
            _ => self.word(),
        }
    }

    /// Returns the text of a list or an object. The nesting depth is unlimited, because nothing here recurses.
    fn nested(&mut self) -> Option<&'a str> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' | b'\'' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += self.text[self.at..].chars().next()?.len_utf8();
            if depth == 0 {
                return Some(&self.text[start..self.at]);
            }
        }
    }

    fn word(&mut self) -> Option<Option<FieldValue<'a>>> {
        let rest = &self.text[self.at..];
        if let Some((number, len)) = plain_number(rest.as_bytes()) {
            self.at += len;
            return Some(Some(FieldValue::Number(number)));
        }
        if let Some((value, len)) = called(rest) {
            self.at += len;
            return Some(Some(value));
        }
        let len = rest.bytes().position(ends_word)?;
        let word = &rest[..len];
        self.at += len;
        match word {
            "true" | "True" | "np.True_" => Some(Some(FieldValue::Number(1.0))),
            "false" | "False" | "np.False_" => Some(Some(FieldValue::Number(0.0))),
            "null" | "None" => Some(None),
            _ => number_text::any(word).map(|number| Some(FieldValue::Number(number))),
        }
    }

    /// Parses a string in either kind of quotes. It is copied only if it has escapes.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        let quote = self.peek()?;
        if quote != b'"' && quote != b'\'' {
            return None;
        }
        let start = self.at + 1;
        let rest = &self.text.as_bytes()[start..];
        let mut end = memchr::memchr2(quote, b'\\', rest)?;
        let is_plain = rest[end] == quote;
        while rest[end] != quote {
            let next = end + 2;
            end = next + memchr::memchr2(quote, b'\\', rest.get(next..)?)?;
        }
        self.at = start + end + 1;
        let raw = &self.text[start..start + end];
        Some(if is_plain {
            Cow::Borrowed(raw)
        } else {
            Cow::Owned(unescape(raw))
        })
    }

    /// Returns the next byte after white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

fn joined<'a>(outer: &str, key: Cow<'a, str>) -> Cow<'a, str> {
    if outer.is_empty() {
        return key;
    }
    Cow::Owned([outer, &key].concat())
}

/// Parses the plain number at the beginning of `bytes`, with its length. Returns `None` for a value of any other form.
#[inline(always)]
fn plain_number(bytes: &[u8]) -> Option<(f64, usize)> {
    let decimal = Decimal::prefix(bytes)?;
    let ends = bytes.get(decimal.len).is_some_and(|byte| ends_word(*byte));
    ends.then_some((decimal.value, decimal.len))
}

/// Parses the constructor call that Python prints for a number of a library, with its length: `np.float64(0.85)`, `tensor(1.5,
/// device='cuda:0')`.
fn called(text: &str) -> Option<(FieldValue<'_>, usize)> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    let name = text.bytes().take_while(|byte| is_of_name(byte)).count();
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let inside = text[name..].strip_prefix('(').filter(|_| begins)?;
    let mut depth = 1_usize;
    let end = inside.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let first = inside[..end].split(',').next().unwrap_or_default();
    let len = name + 1 + end + 1;
    let number = number_text::any(first.trim_ascii()).map(FieldValue::Number);
    Some((
        number.unwrap_or(FieldValue::Text(Cow::Borrowed(&text[..len]))),
        len,
    ))
}

/// Returns whether a number or a bare word ends before this byte.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
}

/// Replaces escapes by their characters. An unknown escape stays as it is.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let Some(letter) = after.chars().next() else { break };
        rest = &after[letter.len_utf8()..];
        match letter {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'u' => {
                let (character, len) = unicode(rest);
                text.push(character);
                rest = rest.get(len..).unwrap_or_default();
            }
            other => text.push(other),
        }
    }
    text.push_str(rest);
    text
}

/// Returns the character of the digits after `\u`, and their length. JSON writes a character beyond 16 bits as two escapes.
fn unicode(digits: &str) -> (char, usize) {
    let unit = |start| u16::from_str_radix(digits.get(start..start + 4)?, 16).ok();
    let second = unit(6).filter(|_| digits.get(4..6) == Some("\\u"));
    let units = [unit(0), second].into_iter().map_while(|unit| unit);
    match char::decode_utf16(units).next() {
        Some(Ok(character)) if character.len_utf16() == 2 => (character, 10),
        Some(Ok(character)) => (character, 4),
        // A half of a surrogate pair alone is not a character.
        _ => (char::REPLACEMENT_CHARACTER, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(String, FieldValue<'_>)>> {
        let (fields, len) = object(text)?;
        assert!(len <= text.len());
        Some(
            fields
                .into_iter()
                .map(|(key, value)| (key.into_owned(), value))
                .collect(),
        )
    }

    #[test]
    fn escapes_of_characters_are_replaced() {
        for (escaped, text) in [
            (r"a\ud83d\ude00b", "a\u{1f600}b"),
            (r"\u00e9\u00e8", "\u{e9}\u{e8}"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\u12", "\u{fffd}"),
            (r"\t\q", "\tq"),
        ] {
            assert_eq!(unescape(escaped), text, "{escaped}");
        }
    }

    #[test]
    fn json_with_non_finite_numbers_is_parsed() {
        let fields = read(r#"{"a": 1.5e-3, "b": NaN, "c": -Infinity, "d": null, "e": true}"#).unwrap();
        assert_eq!(fields[0].1, FieldValue::Number(0.0015));
        assert!(matches!(fields[1].1, FieldValue::Number(number) if number.is_nan()));
        assert_eq!(fields[2].1, FieldValue::Number(f64::NEG_INFINITY));
        assert_eq!(fields[3], ("e".to_owned(), FieldValue::Number(1.0)));
    }

    #[test]
    fn python_dictionary_literals_are_parsed() {
        let fields = read("{'loss': '4.471', 'n': 640, 'best': None, 'x': \"it's\"}").unwrap();
        assert_eq!(fields[0].1.number(), Some(4.471));
        assert_eq!(fields[1].1, FieldValue::Number(640.0));
        assert_eq!(fields[2].1, FieldValue::Text("it's".into()));
    }

    #[test]
    fn nested_values_of_any_depth_are_kept_as_text() {
        let deep = format!(
            "{{\"x\": {}1{}, \"y\": 2}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(read(&deep).unwrap()[1].1, FieldValue::Number(2.0));
        let fields = read(r#"{"x": {"a": "}"}, "y": "\u00e9\n\"q\""}"#).unwrap();
        assert_eq!(fields[0].1, FieldValue::Text(r#"{"a": "}"}"#.into()));
        assert_eq!(fields[1].1, FieldValue::Text("é\n\"q\"".into()));
    }

    #[test]
    fn incomplete_objects_are_refused() {
        for text in [
            "",
            "{",
            "{\"a\": 1",
            "{\"a\": 1.5,",
            "{\"a\" 1}",
            "{a: 1}",
            "{\"a\": x}",
            "{\"a\\",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
