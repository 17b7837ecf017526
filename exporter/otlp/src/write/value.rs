//! Encodes attributes: keys from the registry, values of every type.

use pulsetrain_semconv as semconv;

use super::buffer::{Buffer, delimited_len, varint_len};

/// The value of an attribute or the body of a log record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue<'a> {
    /// Text.
    Text(&'a str),
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list.
    List(&'a [AttributeValue<'a>]),
    /// A map, in the order of its entries.
    Map(&'a [(&'a str, AttributeValue<'a>)]),
}

/// An attribute: its definition and its value.
pub type Attribute<'a> = (&'static semconv::Attribute, AttributeValue<'a>);

impl<'a> From<&'a str> for AttributeValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for AttributeValue<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for AttributeValue<'_> {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<bool> for AttributeValue<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl AttributeValue<'_> {
    /// Returns the size of the value as an `AnyValue` message, in bytes.
    #[inline]
    pub(super) fn encoded_len(&self) -> usize {
        match self {
            Self::Text(text) => delimited_len(1, text.len()),
            Self::Bool(_) => 2,
            Self::Int(value) => 1 + varint_len(*value as u64),
            Self::Double(_) => 9,
            Self::List(values) => delimited_len(5, list_len(values)),
            Self::Map(entries) => delimited_len(6, map_len(entries)),
            Self::Bytes(bytes) => delimited_len(7, bytes.len()),
        }
    }

    /// Writes the value as the fields of an `AnyValue` message.
    #[inline]
    pub(super) fn encode(&self, out: &mut Buffer) {
        match self {
            Self::Text(text) => out.delimited(1, text.as_bytes()),
            Self::Bool(value) => out.uint(2, u64::from(*value)),
            Self::Int(value) => out.uint(3, *value as u64),
            Self::Double(value) => out.double(4, *value),
            Self::List(values) => {
                out.delimited_head(5, list_len(values));
                values.iter().for_each(|value| value.encode_as(1, out));
            }
            Self::Map(entries) => {
                out.delimited_head(6, map_len(entries));
                entries
                    .iter()
                    .for_each(|(key, value)| key_value(1, key, value, out));
            }
            Self::Bytes(bytes) => out.delimited(7, bytes),
        }
    }

    /// Writes the value as field `number`, an `AnyValue` message.
    fn encode_as(&self, number: u32, out: &mut Buffer) {
        out.delimited_head(number, self.encoded_len());
        self.encode(out);
    }
}

fn list_len(values: &[AttributeValue<'_>]) -> usize {
    values
        .iter()
        .map(|value| delimited_len(1, value.encoded_len()))
        .sum()
}

fn map_len(entries: &[(&str, AttributeValue<'_>)]) -> usize {
    entries
        .iter()
        .map(|(key, value)| delimited_len(1, key_value_len(key, value)))
        .sum()
}

#[inline]
fn key_value_len(key: &str, value: &AttributeValue<'_>) -> usize {
    delimited_len(1, key.len()) + delimited_len(2, value.encoded_len())
}

/// Writes one `KeyValue` message as field `number`.
#[inline]
pub(super) fn key_value(number: u32, key: &str, value: &AttributeValue<'_>, out: &mut Buffer) {
    match value {
        AttributeValue::Double(value) => return double(number, key, *value, out),
        AttributeValue::Text(value) if key.len() + value.len() < SHORT => {
            return short_text(number, key, value, out);
        }
        _ => {}
    }
    let value_len = value.encoded_len();
    out.delimited_head(number, delimited_len(1, key.len()) + delimited_len(2, value_len));
    out.delimited(1, key.as_bytes());
    out.delimited_head(2, value_len);
    value.encode(out);
}

/// The length limit for key and text together, up to which all lengths of an attribute have one byte.
const SHORT: usize = 0x80 - 6;

/// Writes a text attribute. Most attributes of series and options are texts, and nearly all are short.
#[inline]
fn short_text(number: u32, key: &str, text: &str, out: &mut Buffer) {
    let text_len = text.len() as u8;
    short_head(number, key, 4 + text.len(), out);
    out.append(&[2 << 3 | 2, text_len + 2, 1 << 3 | 2, text_len]);
    out.append(text.as_bytes());
}

/// Writes a number attribute in one piece: everything but the key has a fixed length. Most attributes of spans are numbers.
#[inline]
fn double(number: u32, key: &str, value: f64, out: &mut Buffer) {
    let mut field = [2 << 3 | 2, 9, 4 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0];
    field[3..].copy_from_slice(&value.to_le_bytes());
    if key.len() + field.len() < SHORT {
        short_head(number, key, field.len(), out);
    } else {
        out.delimited_head(number, delimited_len(1, key.len()) + field.len());
        out.delimited(1, key.as_bytes());
    }
    out.append(&field);
}

/// Begins a `KeyValue` message of less than 128 bytes, with `rest` bytes after the key.
#[inline]
fn short_head(number: u32, key: &str, rest: usize, out: &mut Buffer) {
    out.short_message_of_text(number, 2 + key.len() + rest, (1, key));
}

/// Returns the size of `attributes` as `KeyValue` messages in field `number`, in bytes.
#[inline]
pub(super) fn attributes_len(number: u32, attributes: &[Attribute<'_>]) -> usize {
    let len =
        |(attribute, value): &Attribute<'_>| delimited_len(number, key_value_len(attribute.name, value));
    attributes.iter().map(len).sum()
}

/// Writes `attributes` as `KeyValue` messages in field `number`.
#[inline]
pub(super) fn attributes(number: u32, attributes: &[Attribute<'_>], out: &mut Buffer) {
    for (attribute, value) in attributes {
        key_value(number, attribute.name, value, out);
    }
}
