//! Parses one record into typed fields.
//!
//! The text resembles JSON. Strings are not escaped, so a string ends at the first quote that the rest of a record can follow.
//! `nan` and `inf` occur bare and quoted.

use std::fmt;

use pulsetrain_mapping::{Decimal, number_text};
use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};

use crate::logs::time;
use pulsetrain_record::{LoggedTime, Recorder, UsedTimezone};

/// A record of the log.
#[derive(Debug, PartialEq)]
pub(super) struct Record<'a> {
    /// The kind: `step`, `eval`, `gpu` ...
    pub(super) kind: &'a str,
    /// The time of the record, as the log prints it.
    pub(super) time: LoggedTime,
    /// The same time in nanoseconds since 1970: in UTC until [`resolve`](Self::resolve) is called.
    pub(super) time_unix_nanos: UnixNanos,
    /// The step that it belongs to.
    pub(super) step: i64,
    /// All other fields, in the order of the text.
    pub(super) fields: Vec<(&'a str, RecordValue<'a>)>,
    /// The length of the record in bytes.
    pub(super) len: usize,
}

impl Record<'_> {
    /// Resolves the time by the zone of the log.
    pub(super) fn resolve(&mut self, recorder: &mut Recorder<'_>) {
        self.time_unix_nanos = recorder.instant(self.time);
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecordValue<'a> {
    Int(i64),
    Double(f64),
    Bool(bool),
    Text(&'a str),
    List(Vec<RecordValue<'a>>),
    Map(Vec<(&'a str, RecordValue<'a>)>),
}

/// Returns the first field with this key.
pub(super) fn field<'r, 'a>(
    fields: &'r [(&'a str, RecordValue<'a>)],
    key: &str,
) -> Option<&'r RecordValue<'a>> {
    let found = fields.iter().find(|(name, _)| *name == key);
    found.map(|(_, value)| value)
}

/// Returns the first text with this key.
pub(super) fn text<'a>(fields: &[(&'a str, RecordValue<'a>)], key: &str) -> Option<&'a str> {
    fields
        .iter()
        .find_map(|(name, value)| value.text().filter(|_| *name == key))
}

impl<'a> RecordValue<'a> {
    /// Returns the value if it is text.
    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(*text),
            _ => None,
        }
    }

    /// Returns the value as a number: a number, or the text of a non-finite one.
    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            Self::Text(text) => number_text::non_finite(text),
            _ => None,
        }
    }

    /// Returns the text of a list or a map.
    pub(super) fn nested_text(&self) -> Option<String> {
        matches!(self, Self::List(_) | Self::Map(_)).then(|| self.to_string())
    }

    /// Converts the value. `nested` is the text of a list or a map.
    pub(super) fn as_out<'o>(&'o self, nested: Option<&'o str>) -> Out<'o> {
        match self {
            Self::Int(value) => Out::Int(*value),
            Self::Double(value) => Out::Double(*value),
            Self::Bool(value) => Out::Bool(*value),
            Self::Text(text) => Out::Text(text),
            Self::List(_) | Self::Map(_) => Out::Text(nested.unwrap_or_default()),
        }
    }
}

/// Formats the value like the log.
impl fmt::Display for RecordValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number}"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::List(values) => {
                let values = values.iter().map(ToString::to_string);
                write!(f, "[{}]", values.collect::<Vec<_>>().join(", "))
            }
            Self::Map(fields) => {
                let fields = fields.iter().map(|(key, value)| format!("\"{key}\": {value}"));
                write!(f, "{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The error of a text that is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordError {
    /// The expected syntax.
    pub(super) expected: &'static str,
    /// The offset in the text.
    pub(super) offset: usize,
    /// Whether the text ends there, so that the record may be incomplete.
    pub(super) is_cut_off: bool,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.is_cut_off {
            "the end of the text"
        } else {
            "other text"
        };
        write!(f, "expected {}, found {found}", self.expected)
    }
}

/// The initial capacity for fields: the size of the longest frequent kind of record.
const FIELD_CAPACITY: usize = 20;

/// Parses one record from the beginning of `text`.
pub(super) fn parse(text: &str) -> Result<Record<'_>, RecordError> {
    let mut fields = Vec::with_capacity(FIELD_CAPACITY);
    let (mut kind, mut time, mut step) = (None, None, None);
    let mut cursor = Cursor {
        text,
        at: 0,
        depth: 0,
    };
    cursor.fields(|key, value| match (key, value) {
        ("log", RecordValue::Text(text)) if kind.is_none() => kind = Some(text),
        ("time", RecordValue::Text(text)) if time.is_none() => time = time::logged(text),
        ("step", RecordValue::Int(number)) if step.is_none() => step = Some(number),
        field => fields.push(field),
    })?;
    let missing = |expected| RecordError {
        expected,
        offset: 0,
        is_cut_off: false,
    };
    let kind = kind.ok_or(missing("a field \"log\" with the record's kind"))?;
    let time = time.ok_or(missing("a field \"time\" like 2026-11-21 00:18:40.978996216"))?;
    Ok(Record {
        kind,
        time,
        time_unix_nanos: UsedTimezone::default().instant(time),
        step: step.unwrap_or_default(),
        fields,
        len: cursor.at,
    })
}

/// The maximum nesting of lists and maps. The format has two levels.
const MAX_DEPTH: u32 = 8;

/// Reads the text from left to right.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Cursor<'a> {
    /// Parses a map from its `{` to its `}`.
    fn fields(&mut self, mut take: impl FnMut(&'a str, RecordValue<'a>)) -> Result<(), RecordError> {
        self.take(b'{', "{")?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            let key = self.key()?;
            self.skip_space();
            take(key, self.value(false)?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.expected(", or }")),
            }
        }
    }

    /// Parses a key with its colon.
    fn key(&mut self) -> Result<&'a str, RecordError> {
        self.take(b'"', "a key in quotes")?;
        let rest = &self.text.as_bytes()[self.at..];
        let Some(len) = rest.iter().position(|byte| *byte == b'"') else {
            self.at = self.text.len();
            return Err(self.expected("the end of a key"));
        };
        let key = &self.text[self.at..self.at + len];
        self.at += len + 1;
        self.skip_space();
        self.take(b':', ":")?;
        Ok(key)
    }

    fn value(&mut self, in_list: bool) -> Result<RecordValue<'a>, RecordError> {
        match self.peek() {
            Some(b'"') => self.string(in_list).map(RecordValue::Text),
            Some(b'{') => self.nested(|cursor| {
                let mut fields = Vec::new();
                cursor.fields(|key, value| fields.push((key, value)))?;
                Ok(RecordValue::Map(fields))
            }),
            Some(b'[') => self.nested(Self::list),
            _ => self.word(),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<RecordValue<'a>, RecordError>,
    ) -> Result<RecordValue<'a>, RecordError> {
        if self.depth == MAX_DEPTH {
            return Err(self.expected("a value that is nested less deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Result<RecordValue<'a>, RecordError> {
        self.take(b'[', "[")?;
        let mut values = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(RecordValue::List(values));
                }
                Some(b',') => self.at += 1,
                _ => values.push(self.value(true)?),
            }
        }
    }

    /// Parses a string up to the first quote that the rest of a record can follow.
    fn string(&mut self, in_list: bool) -> Result<&'a str, RecordError> {
        let start = self.at + 1;
        for quote in memchr::memchr_iter(b'"', &self.text.as_bytes()[start..]).map(|offset| start + offset) {
            if ends_string(&self.text.as_bytes()[quote + 1..], in_list) {
                self.at = quote + 1;
                return Ok(&self.text[start..quote]);
            }
        }
        self.at = self.text.len();
        Err(self.expected("the end of a string"))
    }

    /// Parses a number, `true`, `false`, `null` or a bare non-finite number.
    fn word(&mut self) -> Result<RecordValue<'a>, RecordError> {
        let rest = &self.text[self.at..];
        if let Some((number, len)) = plain_number(rest.as_bytes()) {
            self.at += len;
            return Ok(number);
        }
        let word = &rest[..rest.bytes().position(ends_word).unwrap_or(rest.len())];
        let value = match word {
            "true" => RecordValue::Bool(true),
            "false" => RecordValue::Bool(false),
            "null" | "None" => RecordValue::Text(""),
            _ => number(word).ok_or_else(|| self.expected("a value"))?,
        };
        self.at += word.len();
        Ok(value)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8, expected: &'static str) -> Result<(), RecordError> {
        if self.peek() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn expected(&self, expected: &'static str) -> RecordError {
        RecordError {
            expected,
            offset: self.at,
            is_cut_off: self.at >= self.text.trim_end().len(),
        }
    }
}

/// Returns whether a number or a bare word ends before this byte.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace()
}

/// Parses the plain number at the beginning of `bytes`, with its length. Returns `None` for a value of any other form.
#[inline]
fn plain_number(bytes: &[u8]) -> Option<(RecordValue<'_>, usize)> {
    let decimal = Decimal::prefix(bytes)?;
    if !bytes.get(decimal.len).is_none_or(|byte| ends_word(*byte)) {
        return None;
    }
    let value = match decimal.is_integer {
        true => number(str::from_utf8(&bytes[..decimal.len]).ok()?)?,
        false => RecordValue::Double(decimal.value),
    };
    Some((value, decimal.len))
}

/// Parses a number: an integer if it has no point, exponent or letters.
fn number(word: &str) -> Option<RecordValue<'_>> {
    let bytes = word.as_bytes();
    let is_integer = bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    if is_integer && let Ok(value) = word.parse() {
        return Some(RecordValue::Int(value));
    }
    number_text::finite(word)
        .or_else(|| number_text::non_finite(word))
        .map(RecordValue::Double)
}

/// Returns whether a quote before `rest` ends a string. In a map a key or the end of the map follows, in a list an element or
/// the end of the list.
fn ends_string(rest: &[u8], in_list: bool) -> bool {
    let rest = rest.trim_ascii_start();
    match (rest.first(), in_list) {
        (None | Some(b']'), true) | (None, false) => true,
        (Some(b','), true) => true,
        (Some(b','), false) => begins_with_key(rest[1..].trim_ascii_start()),
        (Some(b'}'), _) => {
            let after = rest[1..].trim_ascii_start();
            after.is_empty() || matches!(after[0], b',' | b']' | b'}')
        }
        _ => false,
    }
}

/// Returns whether text begins with a quoted name and a colon.
fn begins_with_key(text: &[u8]) -> bool {
    let Some(text) = text.strip_prefix(b"\"") else {
        return false;
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'.');
    let len = text.iter().take_while(|byte| is_name(byte)).count();
    len > 0
        && text[len..]
            .strip_prefix(b"\"")
            .is_some_and(|text| text.trim_ascii_start().starts_with(b":"))
}
