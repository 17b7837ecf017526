//! Encodes protobuf bytes as OTLP/JSON: one pass over the bytes, directly into the text.
//!
//! JSON requires the elements of a list to be adjacent and each name to occur once; protobuf allows any order. Nearly all
//! writers send fields in a suitable order, so the first attempt encodes them in that order. If a field continues after
//! another one, a second attempt visits every message once per field.

use super::escape;
use crate::{
    Signal,
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor},
    limits::MAX_DEPTH,
    lookup, place,
    wire::{Reader, WireError, WireErrorKind, WireValue},
};

mod value;

/// Appends the OTLP/JSON of a message: one object, compact, with no line end.
///
/// Fields with their default value are omitted, and so are unknown fields, which have no JSON name.
///
/// # Errors
///
/// The bytes are not valid protobuf, or messages are nested deeper than [`MAX_DEPTH`]; `out` is then unchanged.
pub fn encode(signal: Signal, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    out.reserve(bytes.len() * 3);
    let table = lookup::top(signal);
    let mut encoder = Encoder {
        whole: bytes,
        out,
        regroup: false,
    };
    let mut result = encoder.message(table, bytes, 1);
    if matches!(result, Err(EncodeError::FieldAgain)) {
        encoder.out.truncate(start);
        encoder.regroup = true;
        result = encoder.message(table, bytes, 1);
    }
    match result {
        Err(EncodeError::Wire(error)) => {
            out.truncate(start);
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The reason why an attempt ends early.
enum EncodeError {
    Wire(WireError),
    /// A field continues after another one, and the encoder does not regroup.
    FieldAgain,
}

struct Encoder<'a> {
    whole: &'a [u8],
    out: &'a mut Vec<u8>,
    regroup: bool,
}

impl<'a> Encoder<'a> {
    fn message(
        &mut self,
        table: &'static MessageDescriptor,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<(), EncodeError> {
        if depth > MAX_DEPTH {
            let kind = WireErrorKind::TooDeep;
            return Err(self.stop(WireError { kind, offset: 0 }, bytes));
        }
        self.out.push(b'{');
        if self.regroup {
            for (place, field) in table.fields.iter().enumerate() {
                let is_of_field = |tag| table.by_tag(tag).is_some_and(|(found, _)| found == place);
                self.write_scattered_field(field, is_of_field, bytes, depth)?;
            }
        } else {
            self.fields_in_order(table, bytes, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn fields_in_order(
        &mut self,
        table: &'static MessageDescriptor,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<(), EncodeError> {
        let mut reader = Reader::new(bytes);
        let (mut seen, mut list) = (0u32, None);
        while !reader.is_at_end() {
            let tag = reader.tag().map_err(|error| self.stop(error, bytes))?;
            let value = reader.value(tag).map_err(|error| self.stop(error, bytes))?;
            let Some((index, field)) = table.by_tag(tag) else {
                continue;
            };
            if is_empty_run(field, value) {
                continue;
            }
            if list != Some(index) {
                if list.take().is_some() {
                    self.out.push(b']');
                }
                if seen & 1 << index != 0 {
                    return Err(EncodeError::FieldAgain);
                }
                seen |= 1 << index;
                if field.kind.is_repeated() {
                    self.name(field);
                    self.out.push(b'[');
                    list = Some(index);
                }
            }
            self.occurrence(field, value, depth)?;
        }
        if list.is_some() {
            self.out.push(b']');
        }
        Ok(())
    }

    /// Writes all occurrences of one field: all elements of a list, or the last one of any other field.
    fn write_scattered_field(
        &mut self,
        field: &'static FieldDescriptor,
        is_of_field: impl Fn(u32) -> bool,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<(), EncodeError> {
        let mut reader = Reader::new(bytes);
        let mut found = None;
        while !reader.is_at_end() {
            let tag = reader.tag().map_err(|error| self.stop(error, bytes))?;
            let value = reader.value(tag).map_err(|error| self.stop(error, bytes))?;
            if !is_of_field(tag) || is_empty_run(field, value) {
                continue;
            }
            if field.kind.is_repeated() {
                if found.is_none() {
                    self.name(field);
                    self.out.push(b'[');
                }
                self.occurrence(field, value, depth)?;
            }
            found = Some(value);
        }
        match found {
            Some(_) if field.kind.is_repeated() => self.out.push(b']'),
            Some(value) => self.occurrence(field, value, depth)?,
            None => {}
        }
        Ok(())
    }

    /// Writes an element of a list that is open, or a complete member.
    #[inline]
    fn occurrence(
        &mut self,
        field: &'static FieldDescriptor,
        value: WireValue<'a>,
        depth: usize,
    ) -> Result<(), EncodeError> {
        match (field.kind, value) {
            (FieldKind::Many(table), WireValue::Bytes(bytes)) => {
                self.comma();
                self.message(table(), bytes, depth + 1)
            }
            (FieldKind::One(table), WireValue::Bytes(bytes)) => {
                self.name(field);
                self.message(table(), bytes, depth + 1)
            }
            (FieldKind::Strings, WireValue::Bytes(text)) => {
                self.comma();
                escape::write_string(text, self.out);
                Ok(())
            }
            (FieldKind::PackedFixed64 | FieldKind::PackedUint64 | FieldKind::PackedDouble, value) => {
                self.packed(field.kind, value)
            }
            _ => {
                if field.explicit || !is_default(value) {
                    self.name(field);
                    self.single(field.kind, value);
                }
                Ok(())
            }
        }
    }

    fn packed(&mut self, kind: FieldKind, value: WireValue<'a>) -> Result<(), EncodeError> {
        let WireValue::Bytes(bytes) = value else {
            self.comma();
            self.single(kind, value);
            return Ok(());
        };
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let number = match kind {
                FieldKind::PackedUint64 => reader.varint().map(WireValue::Varint),
                _ => reader.fixed64().map(WireValue::Fixed64),
            };
            let number = number.map_err(|error| self.stop(error, bytes))?;
            self.comma();
            self.single(kind, number);
        }
        Ok(())
    }

    #[inline]
    fn name(&mut self, field: &FieldDescriptor) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(field.json_name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Writes the comma before a member or an element, unless it is the first.
    #[inline]
    fn comma(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[')) {
            self.out.push(b',');
        }
    }

    #[cold]
    fn stop(&self, error: WireError, bytes: &[u8]) -> EncodeError {
        EncodeError::Wire(place::of_error(error, self.whole, bytes))
    }
}

/// Returns whether a value is an empty packed list, which is the same as no field.
#[inline]
fn is_empty_run(field: &FieldDescriptor, value: WireValue<'_>) -> bool {
    matches!(value, WireValue::Bytes([])) && field.kind.unpacked_wire_type().is_some()
}

#[inline]
fn is_default(value: WireValue<'_>) -> bool {
    matches!(
        value,
        WireValue::Varint(0) | WireValue::Fixed64(0) | WireValue::Fixed32(0) | WireValue::Bytes([])
    )
}
