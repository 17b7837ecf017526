//! Decodes annotations into any message of OTLP, field by field under its name in OTLP/JSON: the counterpart of
//! `to_perfetto/message.rs`.

use pulsetrain_otlp::{
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor},
    write::Buffer,
};
use pulsetrain_perfetto::AnnotationData;

use super::values::{self, Entries};

/// Encodes the fields in the annotations except those in `without`.
pub(super) fn encode(about: &MessageDescriptor, fields: &Entries, without: &[&str], out: &mut Buffer) {
    for (name, value) in fields {
        if let Some((_, known)) = about.by_json_name(name.as_bytes())
            && !without.contains(&known.json_name)
        {
            field(known, value, out);
        }
    }
}

fn field(about: &FieldDescriptor, value: &AnnotationData, out: &mut Buffer) {
    let number = about.number;
    match about.kind {
        FieldKind::String => out.delimited(number, text(value).as_bytes()),
        FieldKind::Id => out.delimited(number, &values::bytes_of_hex(text(value))),
        FieldKind::Strings => list(value).for_each(|value| out.delimited(number, text(value).as_bytes())),
        FieldKind::PackedFixed64 => {
            let words =
                list(value).flat_map(|value| values::integer(value).unwrap_or_default().to_le_bytes());
            out.delimited(number, &words.collect::<Vec<_>>());
        }
        FieldKind::PackedDouble => {
            let words = list(value).flat_map(|value| double(value).to_le_bytes());
            out.delimited(number, &words.collect::<Vec<_>>());
        }
        FieldKind::PackedUint64 => {
            let mut packed = Buffer::default();
            list(value).for_each(|value| packed.varint(values::integer(value).unwrap_or_default()));
            out.delimited(number, packed.as_slice());
        }
        FieldKind::One(inner) | FieldKind::Many(inner) => messages(number, inner(), about.kind, value, out),
        kind => scalar(number, kind, value, out),
    }
}

fn messages(
    number: u32,
    about: &MessageDescriptor,
    kind: FieldKind,
    value: &AnnotationData,
    out: &mut Buffer,
) {
    match (about.name, kind) {
        ("AnyValue", FieldKind::One(_)) => out.delimited(number, values::any(value).as_slice()),
        ("KeyValue", FieldKind::Many(_)) => values::attributes(number, entries(value), out),
        (_, FieldKind::One(_)) => message(number, about, value, out),
        _ => list(value).for_each(|value| message(number, about, value, out)),
    }
}

fn message(number: u32, about: &MessageDescriptor, value: &AnnotationData, out: &mut Buffer) {
    let mut inner = Buffer::default();
    encode(about, entries(value), &[], &mut inner);
    out.delimited(number, inner.as_slice());
}

fn scalar(number: u32, kind: FieldKind, value: &AnnotationData, out: &mut Buffer) {
    let integer = values::integer(value);
    match (kind, integer) {
        (FieldKind::Double, _) => out.double(number, double(value)),
        (FieldKind::Fixed64 | FieldKind::Sfixed64, Some(value)) => out.fixed64(number, value),
        (FieldKind::Fixed32, Some(value)) => out.fixed32(number, value as u32),
        (FieldKind::Sint32, Some(value)) => {
            let value = value as i32;
            out.uint(number, u64::from((value << 1 ^ value >> 31) as u32));
        }
        (FieldKind::Bool | FieldKind::Uint32 | FieldKind::Int32 | FieldKind::Int64, Some(value)) => {
            out.uint(number, value);
        }
        _ => {}
    }
}

fn text(value: &AnnotationData) -> &str {
    match value {
        AnnotationData::Text(text) => text,
        _ => "",
    }
}

fn double(value: &AnnotationData) -> f64 {
    match value {
        AnnotationData::Double(value) => *value,
        _ => 0.0,
    }
}

fn entries(value: &AnnotationData) -> &Entries {
    match value {
        AnnotationData::Map(entries) => entries,
        _ => &[],
    }
}

fn list(value: &AnnotationData) -> std::slice::Iter<'_, AnnotationData> {
    match value {
        AnnotationData::List(values) => values.iter(),
        _ => [].iter(),
    }
}
