//! The fields of the messages of OTLP: one table for every reader and writer that is not a typed view.
//!
//! The `messages!` macro generates the tables and the views from one list of fields.

use crate::skip::SkipTable;

/// A message type of OTLP.
#[derive(Debug)]
pub struct MessageDescriptor {
    /// The name in the proto files: `Span`.
    pub name: &'static str,
    /// The fields, in the order of the proto file.
    pub fields: &'static [FieldDescriptor],
    /// The role of the message in limits and counts.
    pub role: Role,
    /// The indices in `fields` by tag, for lookup without a search.
    places_by_tag: [u8; TAGS],
    /// The indices in `fields` by a hash of the JSON name.
    places_by_name: [u8; NAMES],
    /// How the check skips the fields.
    pub(crate) skips: SkipTable,
}

/// More than the largest tag: OTLP's field numbers end at 16.
const TAGS: usize = 17 << 3;

/// The size of the table of names, for which the names of any OTLP message have no collisions.
const NAMES: usize = 64;

/// More than the length of any field name of OTLP.
const LONGEST_NAME: usize = 32;

/// The index of a missing field.
const NOWHERE: u8 = u8::MAX;

/// The role of a message in limits and ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A part of another message.
    Part,
    /// A span, a point or a log record.
    Item,
    /// An attribute.
    Attribute,
}

/// A field of a message.
#[derive(Debug)]
pub struct FieldDescriptor {
    /// The field number.
    pub number: u32,
    /// The name in OTLP/JSON: lowerCamelCase.
    pub json_name: &'static str,
    /// The JSON name with comma, quotes and colon: `,"traceId":`.
    pub(crate) json_key: &'static str,
    /// The type of the value.
    pub kind: FieldKind,
    /// Whether the values are attributes.
    pub(crate) is_attribute: bool,
    /// Whether the field is sent even if it has its default value: an `optional` field or a member of a `oneof`.
    pub explicit: bool,
}

/// The type of a field, with its encoding in protobuf and in OTLP/JSON.
#[derive(Clone, Copy, Debug)]
pub enum FieldKind {
    /// `bool`.
    Bool,
    /// `uint32`.
    Uint32,
    /// `int32` and enums, which are always numbers in OTLP/JSON.
    Int32,
    /// `sint32`.
    Sint32,
    /// `int64`; a decimal string in JSON.
    Int64,
    /// `fixed32`.
    Fixed32,
    /// `fixed64`; a decimal string in JSON.
    Fixed64,
    /// `sfixed64`; a decimal string in JSON.
    Sfixed64,
    /// `double`; NaN and the infinities are strings in JSON.
    Double,
    /// `string`.
    String,
    /// `bytes`; base64 in JSON.
    Bytes,
    /// `bytes` that hold a trace or span id; hexadecimal in JSON.
    Id,
    /// `repeated string`.
    Strings,
    /// `repeated fixed64`, packed.
    PackedFixed64,
    /// `repeated uint64`, packed.
    PackedUint64,
    /// `repeated double`, packed.
    PackedDouble,
    /// A message. It is a function, since values and lists of values contain each other.
    One(fn() -> &'static MessageDescriptor),
    /// `repeated` messages.
    Many(fn() -> &'static MessageDescriptor),
}

impl FieldKind {
    /// Returns whether the field may occur several times, so that it is a list in JSON.
    pub fn is_repeated(self) -> bool {
        matches!(
            self,
            Self::Strings | Self::PackedFixed64 | Self::PackedUint64 | Self::PackedDouble | Self::Many(_)
        )
    }

    /// Returns the wire type that the field is written with.
    pub const fn wire_type(self) -> u32 {
        match self {
            Self::Bool | Self::Uint32 | Self::Int32 | Self::Sint32 | Self::Int64 => 0,
            Self::Fixed64 | Self::Sfixed64 | Self::Double => 1,
            Self::Fixed32 => 5,
            _ => 2,
        }
    }

    /// Returns the wire type of the elements of a packed field in their unpacked form, which a reader must accept too.
    pub const fn unpacked_wire_type(self) -> Option<u32> {
        match self {
            Self::PackedUint64 => Some(0),
            Self::PackedFixed64 | Self::PackedDouble => Some(1),
            _ => None,
        }
    }
}

impl MessageDescriptor {
    /// Creates the descriptor of a message with these fields.
    pub(crate) const fn new(name: &'static str, role: Role, fields: &'static [FieldDescriptor]) -> Self {
        let (mut places_by_tag, mut places_by_name) = ([NOWHERE; TAGS], [NOWHERE; NAMES]);
        let mut index = 0;
        while index < fields.len() {
            let FieldDescriptor { number, kind, .. } = &fields[index];
            let place = index as u8;
            places_by_tag[(*number << 3 | kind.wire_type()) as usize] = place;
            if let Some(wire_type) = kind.unpacked_wire_type() {
                places_by_tag[(*number << 3 | wire_type) as usize] = place;
            }
            places_by_name[name_hash(fields[index].json_name.as_bytes())] = place;
            index += 1;
        }
        Self {
            name,
            fields,
            role,
            places_by_tag,
            places_by_name,
            skips: SkipTable::new(fields),
        }
    }

    /// Returns the field with a number, and its index in `fields`.
    pub fn by_number(&self, number: u32) -> Option<(usize, &'static FieldDescriptor)> {
        self.fields
            .iter()
            .position(|field| field.number == number)
            .map(|index| (index, &self.fields[index]))
    }

    /// Returns the field of a tag and its index in `fields`. An element of a packed field may also have a tag of its own.
    #[inline]
    pub fn by_tag(&self, tag: u32) -> Option<(usize, &'static FieldDescriptor)> {
        let place = usize::from(*self.places_by_tag.get(tag as usize)?);
        self.fields.get(place).map(|field| (place, field))
    }

    /// Returns the field with a JSON name, and its index in `fields`.
    #[inline]
    pub fn by_json_name(&self, name: &[u8]) -> Option<(usize, &'static FieldDescriptor)> {
        let place = usize::from(self.places_by_name[name_hash(name)]);
        let field = self.fields.get(place)?;
        (field.json_name.as_bytes() == name).then_some((place, field))
    }

    /// Returns the field with a JSON name or a name in the proto files (`trace_id`), and its index in `fields`. Parsers of
    /// protobuf's JSON mapping must accept both.
    #[inline]
    pub fn by_name(&self, name: &[u8]) -> Option<(usize, &'static FieldDescriptor)> {
        self.by_json_name(name).or_else(|| self.by_proto_name(name))
    }

    #[cold]
    fn by_proto_name(&self, name: &[u8]) -> Option<(usize, &'static FieldDescriptor)> {
        let (mut camel, mut length, mut is_after_underscore) = ([0_u8; LONGEST_NAME], 0, false);
        for byte in name {
            if *byte != b'_' {
                *camel.get_mut(length)? = if is_after_underscore {
                    byte.to_ascii_uppercase()
                } else {
                    *byte
                };
                length += 1;
            }
            is_after_underscore = *byte == b'_';
        }
        self.by_json_name(&camel[..length])
    }
}

/// Returns the hash of a field name in the name table of its message.
#[inline]
const fn name_hash(name: &[u8]) -> usize {
    match (name.first(), name.last()) {
        (Some(&first), Some(&last)) => (name.len() + 3 * first as usize + 2 * last as usize) % NAMES,
        _ => 0,
    }
}

/// Returns the offset of the name after an `r#` prefix.
const fn name_start(bytes: &[u8]) -> usize {
    if bytes.len() > 2 && bytes[1] == b'#' { 2 } else { 0 }
}

/// Returns the length of `snake` in lowerCamelCase.
pub(crate) const fn camel_len(snake: &str) -> usize {
    let bytes = snake.as_bytes();
    let (mut index, mut length) = (name_start(bytes), 0);
    while index < bytes.len() {
        if bytes[index] != b'_' {
            length += 1;
        }
        index += 1;
    }
    length
}

/// Converts `snake` to lowerCamelCase, as protobuf's JSON mapping does.
pub(crate) const fn camel<const N: usize>(snake: &str) -> [u8; N] {
    let bytes = snake.as_bytes();
    let mut out = [0; N];
    let (mut index, mut length) = (name_start(bytes), 0);
    while index < bytes.len() {
        if bytes[index] == b'_' {
            index += 1;
            out[length] = bytes[index].to_ascii_uppercase();
        } else {
            out[length] = bytes[index];
        }
        length += 1;
        index += 1;
    }
    out
}

/// Returns a member's name with a leading comma, quotes and a colon.
pub(crate) const fn json_key<const N: usize>(name: &str) -> [u8; N] {
    let mut out = [b'"'; N];
    out[0] = b',';
    let mut index = 0;
    while index < name.len() {
        out[index + 2] = name.as_bytes()[index];
        index += 1;
    }
    out[N - 1] = b':';
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects all descriptors that can be reached from one.
    fn reach(table: &'static MessageDescriptor, found: &mut Vec<&'static MessageDescriptor>) {
        if found.iter().any(|other| other.name == table.name) {
            return;
        }
        found.push(table);
        for field in table.fields {
            if let FieldKind::One(inner) | FieldKind::Many(inner) = field.kind {
                reach(inner(), found);
            }
        }
    }

    /// Returns the name in the proto files for a JSON name.
    fn proto_name(json_name: &str) -> String {
        let letters = json_name.chars().map(|letter| match letter {
            'A'..='Z' => format!("_{}", letter.to_ascii_lowercase()),
            _ => letter.to_string(),
        });
        letters.collect()
    }

    #[test]
    fn every_field_can_be_looked_up_by_tag_and_by_both_names() {
        let mut tables = Vec::new();
        for signal in crate::Signal::ALL {
            reach(crate::lookup::top(signal), &mut tables);
        }
        assert!(tables.len() > 30, "all messages are reached");
        for table in tables {
            for (index, field) in table.fields.iter().enumerate() {
                let tag = field.number << 3 | field.kind.wire_type();
                assert_eq!(
                    table.by_tag(tag).unwrap().0,
                    index,
                    "{} {}",
                    table.name,
                    field.json_name
                );
                assert_eq!(field.json_key, format!(",\"{}\":", field.json_name));
                let holds_attributes =
                    matches!(field.kind, FieldKind::Many(inner) if inner().role == Role::Attribute);
                assert_eq!(field.is_attribute, holds_attributes);
                for name in [field.json_name, &proto_name(field.json_name)] {
                    let named = table.by_name(name.as_bytes());
                    assert_eq!(named.unwrap().0, index, "{} {name}", table.name);
                }
            }
            for unknown in [&b""[..], b"_", b"unknown_name", &[b'a'; 2 * LONGEST_NAME]] {
                assert!(table.by_name(unknown).is_none());
            }
            assert!(table.by_tag(u32::MAX).is_none());
        }
    }

    #[test]
    fn tag_lookup_accepts_unpacked_elements_and_rejects_other_wire_types() {
        let table = <crate::view::HistogramPoint<'_> as crate::view::Message>::descriptor();
        let (bounds, _) = table.by_number(7).unwrap();
        assert_eq!(table.by_tag(7 << 3 | 1).unwrap().0, bounds);
        assert!(table.by_tag(7 << 3).is_none());
    }

    #[test]
    fn snake_case_becomes_lower_camel_case() {
        assert_eq!(
            &camel::<{ camel_len("start_time_unix_nano") }>("start_time_unix_nano"),
            b"startTimeUnixNano"
        );
        assert_eq!(&camel::<{ camel_len("r#type") }>("r#type"), b"type");
    }
}
