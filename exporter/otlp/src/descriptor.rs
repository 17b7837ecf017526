//! What a message of OTLP consists of: one table for every reader and writer that is not a typed view.
//!
//! The `messages!` macro generates the tables and the views from one list of fields.

/// A message type of OTLP.
#[derive(Debug)]
pub struct MessageDescriptor {
    /// The name in the proto files: `Span`.
    pub name: &'static str,
    /// The fields, in the order of the proto file.
    pub fields: &'static [FieldDescriptor],
    /// What an occurrence of this message counts as.
    pub role: Role,
    /// The places in `fields` by tag, so that a field is found at once.
    places_by_tag: [u8; TAGS],
    /// The places in `fields` by a hash of the JSON name.
    places_by_name: [u8; NAMES],
}

/// More than the largest tag: OTLP's field numbers end at 16.
const TAGS: usize = 17 << 3;

/// Room for the names of a message such that no two of any of OTLP's messages fall together.
const NAMES: usize = 64;

/// The place of a field that is not there.
const NOWHERE: u8 = u8::MAX;

/// What an occurrence of a message counts as, for limits and ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A part of something else.
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
    pub kind: Kind,
    /// Whether the field is sent even where it has its default value: an `optional` field or a member of a `oneof`.
    pub explicit: bool,
}

/// The type of a field, with its encoding in protobuf and in OTLP/JSON.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `bool`.
    Bool,
    /// `uint32`.
    Uint32,
    /// `int32` and enums, which OTLP/JSON has as numbers only.
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
    /// A message; a function, since values and lists of values contain each other.
    One(fn() -> &'static MessageDescriptor),
    /// `repeated` messages.
    Many(fn() -> &'static MessageDescriptor),
}

impl Kind {
    /// Whether the field may occur several times, so that JSON has a list.
    pub fn is_repeated(self) -> bool {
        matches!(
            self,
            Self::Strings | Self::PackedFixed64 | Self::PackedUint64 | Self::PackedDouble | Self::Many(_)
        )
    }

    /// The wire type that the field is written with.
    pub const fn wire_type(self) -> u32 {
        match self {
            Self::Bool | Self::Uint32 | Self::Int32 | Self::Sint32 | Self::Int64 => 0,
            Self::Fixed64 | Self::Sfixed64 | Self::Double => 1,
            Self::Fixed32 => 5,
            _ => 2,
        }
    }

    /// The wire type of one number of a packed field that is written unpacked, which a reader must take too.
    pub const fn unpacked_wire_type(self) -> Option<u32> {
        match self {
            Self::PackedUint64 => Some(0),
            Self::PackedFixed64 | Self::PackedDouble => Some(1),
            _ => None,
        }
    }
}

impl MessageDescriptor {
    /// A message with these fields.
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
        }
    }

    /// The field with a number, with its place in `fields`.
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

    /// The field with a JSON name, with its place in `fields`.
    #[inline]
    pub fn by_json_name(&self, name: &[u8]) -> Option<(usize, &'static FieldDescriptor)> {
        let place = usize::from(self.places_by_name[name_hash(name)]);
        let field = self.fields.get(place)?;
        (field.json_name.as_bytes() == name).then_some((place, field))
    }
}

/// The hash of a field name in its message's table of names.
#[inline]
const fn name_hash(name: &[u8]) -> usize {
    match (name.first(), name.last()) {
        (Some(&first), Some(&last)) => (name.len() + 3 * first as usize + 2 * last as usize) % NAMES,
        _ => 0,
    }
}

/// The offset of the name after an `r#` prefix.
const fn name_start(bytes: &[u8]) -> usize {
    if bytes.len() > 2 && bytes[1] == b'#' { 2 } else { 0 }
}

/// Length of `snake` in lowerCamelCase.
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

/// `snake` in lowerCamelCase, as protobuf's JSON mapping derives it.
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

    /// All tables that can be reached from one.
    fn reach(table: &'static MessageDescriptor, found: &mut Vec<&'static MessageDescriptor>) {
        if found.iter().any(|other| other.name == table.name) {
            return;
        }
        found.push(table);
        for field in table.fields {
            if let Kind::One(inner) | Kind::Many(inner) = field.kind {
                reach(inner(), found);
            }
        }
    }

    #[test]
    fn every_field_of_every_message_is_found_by_tag_and_by_name() {
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
                let named = table.by_json_name(field.json_name.as_bytes());
                assert_eq!(named.unwrap().0, index, "{} {}", table.name, field.json_name);
            }
            assert!(table.by_json_name(b"").is_none());
            assert!(table.by_tag(u32::MAX).is_none());
        }
    }

    #[test]
    fn an_unpacked_number_belongs_to_its_list_and_another_wire_type_to_nothing() {
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
