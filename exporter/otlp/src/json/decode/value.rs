//! Decodes values into wire format by the type of their field.

use super::{Decoder, Dialect, text_of};
use crate::{
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor, Role},
    json::{
        base64,
        error::{JsonError, JsonErrorKind},
        hex::{self, BadId},
        stored,
        token::Raw,
    },
    limits::Limit,
};

impl<'a> Decoder<'a> {
    /// Reads the value of a field of a message at a depth.
    #[inline]
    pub(super) fn value(&mut self, field: &'static FieldDescriptor, depth: usize) -> Result<(), JsonError> {
        match field.kind {
            FieldKind::One(inner) => self.nested(field, inner(), depth),
            FieldKind::Many(inner) => self.messages(field, inner(), depth),
            FieldKind::String => self.string(field),
            FieldKind::Id => self.id(field),
            FieldKind::Bytes => self.bytes(field, depth),
            FieldKind::Strings => self.strings(field),
            FieldKind::PackedDouble => self.packed(field, FieldKind::Double, depth),
            FieldKind::PackedFixed64 | FieldKind::PackedUint64 => {
                self.packed(field, FieldKind::Fixed64, depth)
            }
            _ => self.scalar_field(field),
        }
    }

    fn nested(
        &mut self,
        field: &FieldDescriptor,
        table: &'static MessageDescriptor,
        depth: usize,
    ) -> Result<(), JsonError> {
        let open = self.output.open(field.number, depth);
        self.message(table, depth + 1)?;
        self.output.close(&open);
        Ok(())
    }

    fn messages(
        &mut self,
        field: &FieldDescriptor,
        table: &'static MessageDescriptor,
        depth: usize,
    ) -> Result<(), JsonError> {
        self.cursor.expect(b'[', "a list of objects")?;
        let (mut first, mut count) = (true, 0);
        while self.cursor.next_element(&mut first)? {
            count += 1;
            if table.role == Role::Attribute {
                self.admit(Limit::Attributes, count)?;
            }
            self.nested(field, table, depth)?;
        }
        Ok(())
    }

    fn strings(&mut self, field: &FieldDescriptor) -> Result<(), JsonError> {
        self.cursor.expect(b'[', "a list of strings")?;
        let mut first = true;
        while self.cursor.next_element(&mut first)? {
            let raw = self.cursor.string("a string")?;
            self.write_text(field.number, &raw)?;
        }
        Ok(())
    }

    fn packed(&mut self, field: &FieldDescriptor, element: FieldKind, depth: usize) -> Result<(), JsonError> {
        self.cursor.expect(b'[', "a list of numbers")?;
        let wire_type = field.kind.unpacked_wire_type().unwrap_or_default();
        let open = self.output.open(field.number, depth);
        let mut first = true;
        while self.cursor.next_element(&mut first)? {
            let bits = self.scalar(element)?;
            self.output.number(wire_type, bits);
        }
        self.output.close_unless_empty(&open);
        Ok(())
    }

    #[inline]
    fn string(&mut self, field: &FieldDescriptor) -> Result<(), JsonError> {
        let raw = self.cursor.string("a string")?;
        if field.explicit || !raw.inside.is_empty() {
            self.write_text(field.number, &raw)?;
        }
        Ok(())
    }

    #[inline]
    fn write_text(&mut self, number: u32, raw: &Raw<'a>) -> Result<(), JsonError> {
        if raw.escapes > 0 || !self.is_utf8 {
            return self.write_decoded_text(number, raw);
        }
        match self.cursor.chunk(raw.offset) {
            Some(chunk) if raw.inside.len() <= chunk.len() => {
                self.output.short(number, chunk, raw.inside.len());
            }
            _ => self.output.delimited(number, raw.inside),
        }
        Ok(())
    }

    #[cold]
    fn write_decoded_text(&mut self, number: u32, raw: &Raw<'a>) -> Result<(), JsonError> {
        let text = text_of(raw)?;
        self.output
            .delimited(number, String::from_utf8_lossy(&text).as_bytes());
        Ok(())
    }

    #[inline]
    fn id(&mut self, field: &FieldDescriptor) -> Result<(), JsonError> {
        if self.dialect == Dialect::Otlp && self.take_plain_id(field.number) {
            return Ok(());
        }
        let raw = self.cursor.string("a hexadecimal id as a string")?;
        let digits = text_of(&raw)?;
        if digits.is_empty() {
            return Ok(());
        }
        if self.dialect == Dialect::Stored
            && let Some(id) = stored::id(field.json_name, &digits)
        {
            self.output.delimited(field.number, &id);
            return Ok(());
        }
        self.output.tag(field.number, 2);
        self.output.varint(digits.len() as u64 / 2);
        hex::decode(&digits, self.output.bytes).map_err(|bad| match bad {
            BadId::Odd => JsonError::new(JsonErrorKind::OddId, raw.offset),
            BadId::NoDigit(index) => {
                JsonError::new(JsonErrorKind::Expected("a hexadecimal digit"), raw.offset + index)
            }
        })
    }

    /// Reads an id of the expected length, if one is next.
    #[inline]
    fn take_plain_id(&mut self, number: u32) -> bool {
        if let Some(id) = self.cursor.take_string(hex::span_id) {
            self.output.delimited(number, &id);
            return true;
        }
        let id = self.cursor.take_string(hex::trace_id);
        if let Some(id) = id {
            self.output.delimited(number, &id);
        }
        id.is_some()
    }

    fn bytes(&mut self, field: &FieldDescriptor, depth: usize) -> Result<(), JsonError> {
        let raw = self.cursor.string("bytes as a base64 string")?;
        let text = text_of(&raw)?;
        let open = self.output.open(field.number, depth);
        if !base64::decode(&text, self.output.bytes) {
            return Err(JsonError::new(JsonErrorKind::Expected("base64 text"), raw.offset));
        }
        if field.explicit {
            self.output.close(&open);
        } else {
            self.output.close_unless_empty(&open);
        }
        Ok(())
    }

    #[inline]
    fn scalar_field(&mut self, field: &FieldDescriptor) -> Result<(), JsonError> {
        let bits = self.scalar(field.kind)?;
        if field.explicit || bits != 0 {
            let wire_type = field.kind.wire_type();
            self.output.scalar(field.number, wire_type, bits);
        }
        Ok(())
    }

    /// Reads a number or a boolean and returns its bits for the wire.
    #[inline]
    fn scalar(&mut self, kind: FieldKind) -> Result<u64, JsonError> {
        match kind {
            FieldKind::Bool => self.cursor.boolean_value(),
            FieldKind::Double => self.cursor.double().map(f64::to_bits),
            FieldKind::Int32 if self.dialect == Dialect::Stored && self.cursor.peek() == Some(b'"') => {
                let raw = self.cursor.string("an integer, or the name of an enum value")?;
                stored::enum_value(raw.inside).ok_or_else(|| {
                    JsonError::new(JsonErrorKind::Expected("an enum value of OTLP"), raw.offset)
                })
            }
            _ => self.cursor.integer(kind),
        }
    }
}
