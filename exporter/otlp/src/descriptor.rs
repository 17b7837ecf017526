//! What a message of OTLP consists of: one table for every reader and writer that is not a typed view.
//!
//! The tables are made by the `messages!` macro together with the views, so that a field stands in one place only.

/// A message type of OTLP.
#[derive(Debug)]
pub struct MessageDescriptor {
    /// The name in the proto files: `Span`.
    pub name: &'static str,
    /// The fields, in the order of the proto file.
    pub fields: &'static [FieldDescriptor],
    /// What an occurrence of this message counts as.
    pub role: Role,
}

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
    pub fn unpacked_wire_type(self) -> Option<u32> {
        match self {
            Self::PackedUint64 => Some(0),
            Self::PackedFixed64 | Self::PackedDouble => Some(1),
            _ => None,
        }
    }
}

impl MessageDescriptor {
    /// The field with a number, with its place in `fields`.
    #[inline]
    pub fn by_number(&self, number: u32) -> Option<(usize, &'static FieldDescriptor)> {
        self.fields
            .iter()
            .position(|field| field.number == number)
            .map(|index| (index, &self.fields[index]))
    }

    /// The field with a JSON name, with its place in `fields`.
    #[inline]
    pub fn by_json_name(&self, name: &[u8]) -> Option<(usize, &'static FieldDescriptor)> {
        self.fields
            .iter()
            .position(|field| field.json_name.as_bytes() == name)
            .map(|index| (index, &self.fields[index]))
    }
}

/// Where the name proper starts: behind the `r#` of a raw identifier.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_becomes_lower_camel_case() {
        assert_eq!(
            &camel::<{ camel_len("start_time_unix_nano") }>("start_time_unix_nano"),
            b"startTimeUnixNano"
        );
        assert_eq!(&camel::<{ camel_len("r#type") }>("r#type"), b"type");
    }
}
