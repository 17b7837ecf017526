//! Encodes the same content in different bytes: with unknown fields, fields in another order, and numbers that are not packed.

use pulsetrain_otlp::{
    Signal,
    descriptor::{FieldKind, MessageDescriptor},
    view::{LogsData, Message, MetricsData, TracesData},
    wire::{Field, Reader, WireValue},
    write::Buffer,
};

/// Field numbers that OTLP does not have.
const UNKNOWN: u32 = 1000;

/// The change that is made to every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Unknown fields between the others.
    UnknownFields,
    /// The elements of lists are scattered among the other fields.
    Scattered,
    /// Packed numbers one by one, each with its tag.
    Unpacked,
    /// Duplicate single fields, the first with another value.
    Duplicated,
}

pub(crate) fn rearrange(signal: Signal, bytes: &[u8], change: Change) -> Vec<u8> {
    let table = match signal {
        Signal::Traces => TracesData::descriptor(),
        Signal::Metrics => MetricsData::descriptor(),
        Signal::Logs => LogsData::descriptor(),
    };
    message(table, bytes, change)
}

fn message(table: &'static MessageDescriptor, bytes: &[u8], change: Change) -> Vec<u8> {
    let mut fields: Vec<Field<'_>> = Reader::new(bytes).map(Result::unwrap).collect();
    if change == Change::Scattered {
        fields = scattered(&fields);
    }
    let mut out = Buffer::default();
    for field in fields {
        let (_, row) = table.by_number(field.number).unwrap();
        let is_single_number = !row.explicit && !row.kind.is_repeated();
        match change {
            Change::UnknownFields => unknown_fields(&mut out),
            Change::Duplicated if is_single_number => other_value(&mut out, field),
            _ => {}
        }
        match (row.kind, field.value) {
            (FieldKind::One(inner) | FieldKind::Many(inner), WireValue::Bytes(bytes)) => {
                out.delimited(field.number, &message(inner(), bytes, change));
            }
            (kind, WireValue::Bytes(bytes))
                if change == Change::Unpacked && kind.unpacked_wire_type().is_some() =>
            {
                unpack(&mut out, field.number, kind, bytes);
            }
            (_, value) => write(&mut out, field.number, value),
        }
    }
    out.into_vec()
}

/// Interleaves the fields: one occurrence of each field in turn. The order within a field stays.
fn scattered<'a>(fields: &[Field<'a>]) -> Vec<Field<'a>> {
    let mut numbered: Vec<(usize, Field<'a>)> = fields
        .iter()
        .enumerate()
        .map(|(index, field)| {
            (
                fields[..index]
                    .iter()
                    .filter(|other| other.number == field.number)
                    .count(),
                *field,
            )
        })
        .collect();
    numbered.sort_by_key(|(turn, _)| *turn);
    numbered.into_iter().map(|(_, field)| field).collect()
}

fn unknown_fields(out: &mut Buffer) {
    out.uint(UNKNOWN, u64::MAX);
    out.fixed64(UNKNOWN + 1, 7);
    out.delimited(UNKNOWN + 2, b"unknown");
    out.fixed32(UNKNOWN + 3, 7);
}

fn other_value(out: &mut Buffer, field: Field<'_>) {
    match field.value {
        WireValue::Bytes(_) => out.delimited(field.number, b"other"),
        WireValue::Varint(value) => out.uint(field.number, !value & 0xff),
        WireValue::Fixed64(value) => out.fixed64(field.number, !value),
        WireValue::Fixed32(value) => out.fixed32(field.number, !value),
    }
}

fn unpack(out: &mut Buffer, number: u32, kind: FieldKind, bytes: &[u8]) {
    if matches!(kind, FieldKind::PackedUint64) {
        // `Reader` reads a varint only as the value of a field, so each varint gets a tag.
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
            let tagged = [&[0x08], &rest[..end]].concat();
            let field = Reader::new(&tagged).next().unwrap().unwrap();
            write(out, number, field.value);
            rest = &rest[end..];
        }
        return;
    }
    for chunk in bytes.as_chunks::<8>().0 {
        out.fixed64(number, u64::from_le_bytes(*chunk));
    }
}

fn write(out: &mut Buffer, number: u32, value: WireValue<'_>) {
    match value {
        WireValue::Varint(value) => out.uint(number, value),
        WireValue::Fixed64(value) => out.fixed64(number, value),
        WireValue::Bytes(value) => out.delimited(number, value),
        WireValue::Fixed32(value) => out.fixed32(number, value),
    }
}
