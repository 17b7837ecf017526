//! Views of `opentelemetry/proto/common/v1/common.proto` and `opentelemetry/proto/resource/v1/resource.proto`.

use super::{
    Message, Repeated, Text,
    message::{json_key, messages},
};
use crate::{
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor, Role},
    wire::{Reader, WireError},
};

messages! {
    /// The entity that produced the telemetry.
    Part Resource {
        1 attributes: many KeyValue,
        2 dropped_attributes_count: uint32,
        3 entity_refs: many EntityRef,
    }

    /// The library that wrote the telemetry.
    Part InstrumentationScope {
        1 name: string,
        2 version: string,
        3 attributes: many KeyValue,
        4 dropped_attributes_count: uint32,
    }

    /// A reference from a resource to an entity that its attributes describe.
    Part EntityRef {
        1 schema_url: string,
        2 r#type: string,
        3 id_keys: strings,
        4 description_keys: strings,
    }

    /// An attribute.
    Attribute KeyValue {
        1 key: string,
        2 value: one AnyValue,
        3 key_strindex: int32,
    }

    /// The values of a list.
    Part ArrayValue {
        1 values: many AnyValue,
    }

    /// The entries of a map.
    Part KeyValueList {
        1 values: many KeyValue,
    }
}

/// The value of an attribute or the body of a log record.
#[derive(Clone, Copy, Debug, Default)]
pub enum AnyValue<'a> {
    /// An empty value, which is valid too.
    #[default]
    Empty,
    /// Text.
    String(Text<'a>),
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
    /// A list.
    Array(Repeated<'a, AnyValue<'a>>),
    /// A map, with its entries in the order of the wire.
    Map(Repeated<'a, KeyValue<'a>>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An index into a string table, used by profiles only.
    StringIndex(i32),
}

/// A field of the descriptor of `AnyValue`, whose fields are all members of one `oneof`.
macro_rules! any {
    ($number:literal, $json_name:literal, $kind:expr) => {
        FieldDescriptor {
            number: $number,
            json_name: $json_name,
            json_key: json_key!($json_name),
            kind: $kind,
            is_attribute: false,
            explicit: true,
        }
    };
}

impl<'a> Message<'a> for AnyValue<'a> {
    fn descriptor() -> &'static MessageDescriptor {
        const FIELDS: &[FieldDescriptor] = &[
            any!(1, "stringValue", FieldKind::String),
            any!(2, "boolValue", FieldKind::Bool),
            any!(3, "intValue", FieldKind::Int64),
            any!(4, "doubleValue", FieldKind::Double),
            any!(5, "arrayValue", FieldKind::One(ArrayValue::descriptor)),
            any!(6, "kvlistValue", FieldKind::One(KeyValueList::descriptor)),
            any!(7, "bytesValue", FieldKind::Bytes),
            any!(8, "stringValueStrindex", FieldKind::Int32),
        ];
        static TABLE: MessageDescriptor = MessageDescriptor::new("AnyValue", Role::Part, FIELDS);
        &TABLE
    }

    #[inline]
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut value = AnyValue::Empty;
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let tag = reader.tag()?;
            value = match tag {
                0x0a => AnyValue::String(Text(reader.delimited()?)),
                0x10 => AnyValue::Bool(reader.varint()? != 0),
                0x18 => AnyValue::Int(reader.varint()? as i64),
                0x21 => AnyValue::Double(f64::from_bits(reader.fixed64()?)),
                0x2a => AnyValue::Array(ArrayValue::decode(reader.delimited()?)?.values),
                0x32 => AnyValue::Map(KeyValueList::decode(reader.delimited()?)?.values),
                0x3a => AnyValue::Bytes(reader.delimited()?),
                0x40 => AnyValue::StringIndex(reader.varint()? as i32),
                _ => {
                    reader.value(tag)?;
                    value
                }
            };
        }
        Ok(value)
    }
}
