//! Converts Perfetto's annotations to OTLP's values: the counterpart of the mapper's `values`.

use pulsetrain_otlp::write::Buffer;
use pulsetrain_perfetto::AnnotationData;

use pulsetrain_to_perfetto::vocabulary::{BYTES, EMPTY};

/// Fields of `AnyValue` and `KeyValue` (proto/common/v1/common.proto).
mod field {
    pub(super) const KEY: u32 = 1;
    pub(super) const VALUE: u32 = 2;
    pub(super) const STRING: u32 = 1;
    pub(super) const BOOL: u32 = 2;
    pub(super) const INT: u32 = 3;
    pub(super) const DOUBLE: u32 = 4;
    pub(super) const ARRAY: u32 = 5;
    pub(super) const MAP: u32 = 6;
    pub(super) const BYTES: u32 = 7;
    pub(super) const VALUES: u32 = 1;
}

/// The annotations of an event, or the entries of a map.
pub(super) type Entries = [(String, AnnotationData)];

/// Writes an attribute as field `number`.
pub(crate) fn attribute(number: u32, key: &str, value: &AnnotationData, out: &mut Buffer) {
    let mut pair = Buffer::default();
    pair.delimited(field::KEY, key.as_bytes());
    pair.delimited(field::VALUE, any(value).as_slice());
    out.delimited(number, pair.as_slice());
}

/// Writes attributes as field `number`.
pub(super) fn attributes<'a>(
    number: u32,
    attributes: impl IntoIterator<Item = &'a (String, AnnotationData)>,
    out: &mut Buffer,
) {
    for (key, value) in attributes {
        attribute(number, key, value, out);
    }
}

/// Encodes an `AnyValue` message.
pub(super) fn any(value: &AnnotationData) -> Buffer {
    let mut out = Buffer::default();
    match value {
        AnnotationData::Bool(value) => out.uint(field::BOOL, u64::from(*value)),
        AnnotationData::Int(value) => out.uint(field::INT, *value as u64),
        AnnotationData::Uint(value) => match i64::try_from(*value) {
            Ok(value) => out.uint(field::INT, value as u64),
            // OTLP has no unsigned integers; a text keeps every digit.
            Err(_) => out.delimited(field::STRING, value.to_string().as_bytes()),
        },
        AnnotationData::Double(value) => out.double(field::DOUBLE, *value),
        AnnotationData::Text(text) => out.delimited(field::STRING, text.as_bytes()),
        AnnotationData::List(values) => {
            let mut list = Buffer::default();
            for value in values {
                list.delimited(field::VALUES, any(value).as_slice());
            }
            out.delimited(field::ARRAY, list.as_slice());
        }
        AnnotationData::Map(entries) => map(entries, &mut out),
        _ => {}
    }
    out
}

/// Encodes a map, or a value that the mapper writes as a map because Perfetto has no type for it.
fn map(entries: &Entries, out: &mut Buffer) {
    match entries {
        [(key, AnnotationData::Text(text))] if key == BYTES => {
            use base64::{Engine, engine::general_purpose::STANDARD};
            out.delimited(field::BYTES, &STANDARD.decode(text).unwrap_or_default());
        }
        [(key, AnnotationData::Text(text))] if key == EMPTY => match text.as_str() {
            "list" => out.delimited(field::ARRAY, &[]),
            "map" => out.delimited(field::MAP, &[]),
            _ => {}
        },
        entries => {
            let mut map = Buffer::default();
            attributes(field::VALUES, entries, &mut map);
            out.delimited(field::MAP, map.as_slice());
        }
    }
}

/// Returns the value of a key.
pub(super) fn get<'a>(entries: &'a Entries, key: &str) -> Option<&'a AnnotationData> {
    entries
        .iter()
        .find(|(other, _)| other == key)
        .map(|(_, value)| value)
}

/// Returns the number of a key.
pub(super) fn number(entries: &Entries, key: &str) -> Option<u64> {
    integer(get(entries, key)?)
}

/// Returns an integer, a negative one as its two's complement.
pub(super) fn integer(value: &AnnotationData) -> Option<u64> {
    match value {
        AnnotationData::Uint(value) => Some(*value),
        AnnotationData::Int(value) => Some(*value as u64),
        AnnotationData::Bool(value) => Some(u64::from(*value)),
        _ => None,
    }
}

/// Returns the text of a key.
pub(super) fn text<'a>(entries: &'a Entries, key: &str) -> Option<&'a str> {
    match get(entries, key)? {
        AnnotationData::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the entries of a map under a key.
pub(super) fn entries<'a>(entries: &'a Entries, key: &str) -> Option<&'a Entries> {
    match get(entries, key)? {
        AnnotationData::Map(entries) => Some(entries),
        _ => None,
    }
}

/// Iterates over the maps of a list under a key.
pub(super) fn maps<'a>(entries: &'a Entries, key: &str) -> impl Iterator<Item = &'a Entries> + use<'a> {
    let list = match get(entries, key) {
        Some(AnnotationData::List(list)) => list.as_slice(),
        _ => &[],
    };
    list.iter().filter_map(|value| match value {
        AnnotationData::Map(entries) => Some(entries.as_slice()),
        _ => None,
    })
}

/// Returns the bytes of a hexadecimal id under a key.
pub(super) fn id(entries: &Entries, key: &str) -> Vec<u8> {
    bytes_of_hex(text(entries, key).unwrap_or_default())
}

/// Decodes hexadecimal digits. The result is empty if another character occurs.
pub(super) fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.unwrap_or_default();
    digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}
