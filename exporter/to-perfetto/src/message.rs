//! Writes any message of OTLP as annotations, field by field with the names of OTLP/JSON. A full trace has its points, log
//! records, resources and scopes in this form. The counterpart is `from_perfetto/message.rs`.

use pulsetrain_otlp::{
    WireError,
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor},
    view::{AnyValue, KeyValue, Message},
    wire::{Reader, WireValue},
};
use pulsetrain_perfetto::{AnnotationList, AnnotationValue, Annotations};

use super::{config::AttributePolicy, identity, values};

/// Adds the fields of a message except those with these numbers.
pub(super) fn add(
    about: &MessageDescriptor,
    bytes: &[u8],
    without: &[u32],
    map: &mut Annotations<'_>,
) -> Result<(), WireError> {
    let mut listed = 0u32;
    for field in Reader::new(bytes) {
        let field = field?;
        let Some((_, known)) = about
            .by_number(field.number)
            .filter(|_| !without.contains(&field.number))
        else {
            continue;
        };
        if !known.kind.is_repeated() {
            add_one(known, field.value, map)?;
        } else if listed >> field.number & 1 == 0 {
            listed |= 1 << field.number;
            add_all(known, bytes, map)?;
        }
    }
    Ok(())
}

fn add_one(
    field: &FieldDescriptor,
    value: WireValue<'_>,
    map: &mut Annotations<'_>,
) -> Result<(), WireError> {
    let name = field.json_name;
    match (field.kind, value) {
        (FieldKind::Id, WireValue::Bytes(id)) => identity::id(map, name, id),
        (FieldKind::String, WireValue::Bytes(text)) => map.add(name, text),
        (FieldKind::One(inner), WireValue::Bytes(bytes)) if is_value(inner()) => {
            return values::add(name.as_bytes(), AnyValue::decode(bytes)?, map);
        }
        (FieldKind::One(inner), WireValue::Bytes(bytes)) => {
            let mut outcome = Ok(());
            map.map(name, |map| outcome = add(inner(), bytes, &[], map));
            return outcome;
        }
        (kind, value) => {
            if let Some(value) = number(kind, value) {
                map.add(name, value);
            }
        }
    }
    Ok(())
}

/// Adds all occurrences of a field: attributes as a map, everything else as a list.
fn add_all(field: &FieldDescriptor, bytes: &[u8], map: &mut Annotations<'_>) -> Result<(), WireError> {
    let occurrences = Reader::new(bytes).filter(|found| {
        let number = found.as_ref().map(|found| found.number);
        number.is_ok_and(|number| number == field.number)
    });
    let mut outcome = Ok(());
    if let FieldKind::Many(inner) = field.kind
        && inner().name == "KeyValue"
    {
        map.map(field.json_name, |map| {
            outcome = occurrences.into_iter().try_for_each(|found| match found?.value {
                WireValue::Bytes(bytes) => {
                    values::attribute(&KeyValue::decode(bytes)?, &AttributePolicy::Full, map)
                }
                _ => Ok(()),
            });
        });
        return outcome;
    }
    map.list(field.json_name, |list| {
        outcome = occurrences
            .into_iter()
            .try_for_each(|found| push(field.kind, found?.value, list));
    });
    outcome
}

/// Adds one occurrence of a repeated field.
fn push(kind: FieldKind, value: WireValue<'_>, list: &mut AnnotationList<'_>) -> Result<(), WireError> {
    match (kind, value) {
        (FieldKind::Strings, WireValue::Bytes(text)) => list.push(text),
        (FieldKind::Many(inner), WireValue::Bytes(bytes)) => {
            let mut outcome = Ok(());
            list.map(|map| outcome = add(inner(), bytes, &[], map));
            return outcome;
        }
        (FieldKind::PackedUint64, WireValue::Bytes(bytes)) => {
            let mut reader = Reader::new(bytes);
            while !reader.is_at_end() {
                list.push(reader.varint()?);
            }
        }
        (FieldKind::PackedFixed64, WireValue::Bytes(bytes)) => {
            words(bytes).for_each(|word| list.push(word));
        }
        (FieldKind::PackedDouble, WireValue::Bytes(bytes)) => {
            words(bytes).for_each(|word| list.push(f64::from_bits(word)));
        }
        (FieldKind::PackedDouble, WireValue::Fixed64(word)) => list.push(f64::from_bits(word)),
        (_, WireValue::Fixed64(word) | WireValue::Varint(word)) => list.push(word),
        _ => {}
    }
    Ok(())
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes)
}

/// Converts a number of a kind, or returns `None` if its wire type is another one.
fn number<'a>(kind: FieldKind, value: WireValue<'_>) -> Option<AnnotationValue<'a>> {
    Some(match (kind, value) {
        (FieldKind::Bool, WireValue::Varint(value)) => (value != 0).into(),
        (FieldKind::Uint32, WireValue::Varint(value)) => value.into(),
        (FieldKind::Int32, WireValue::Varint(value)) => (value as i32).into(),
        (FieldKind::Sint32, WireValue::Varint(value)) => {
            let zigzag = value as u32;
            ((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32)).into()
        }
        (FieldKind::Int64, WireValue::Varint(value)) => (value as i64).into(),
        (FieldKind::Fixed32, WireValue::Fixed32(value)) => value.into(),
        (FieldKind::Fixed64, WireValue::Fixed64(value)) => value.into(),
        (FieldKind::Sfixed64, WireValue::Fixed64(value)) => (value as i64).into(),
        (FieldKind::Double, WireValue::Fixed64(value)) => f64::from_bits(value).into(),
        _ => return None,
    })
}

fn is_value(about: &MessageDescriptor) -> bool {
    about.name == "AnyValue"
}
