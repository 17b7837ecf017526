//! Encodes values that are neither messages nor lists as JSON.

use super::Encoder;
use crate::{
    descriptor::FieldKind,
    json::{base64, escape, hex},
    wire::WireValue,
};

impl<'a> Encoder<'a> {
    /// Writes a value that is neither a message nor a list.
    #[inline]
    pub(super) fn single(&mut self, kind: FieldKind, value: WireValue<'a>) {
        match (kind, value) {
            (FieldKind::String, WireValue::Bytes(text)) => escape::write_string(text, self.out),
            (FieldKind::Id, WireValue::Bytes(id)) => self.quoted(|out| hex::encode(id, out)),
            (_, WireValue::Bytes(bytes)) => self.quoted(|out| base64::encode(bytes, out)),
            (FieldKind::Double | FieldKind::PackedDouble, WireValue::Fixed64(bits)) => {
                self.double(f64::from_bits(bits));
            }
            (FieldKind::Sfixed64, WireValue::Fixed64(bits)) => self.quoted(|out| integer(bits as i64, out)),
            (_, WireValue::Fixed64(number)) => self.quoted(|out| integer(number, out)),
            (_, WireValue::Fixed32(number)) => integer(number, self.out),
            (_, WireValue::Varint(number)) => self.varint(kind, number),
        }
    }

    #[inline]
    fn varint(&mut self, kind: FieldKind, number: u64) {
        match kind {
            FieldKind::Bool => {
                let word: &[u8] = if number != 0 { b"true" } else { b"false" };
                self.out.extend_from_slice(word);
            }
            FieldKind::Int64 => self.quoted(|out| integer(number as i64, out)),
            FieldKind::PackedUint64 => self.quoted(|out| integer(number, out)),
            FieldKind::Int32 => integer(number as i32, self.out),
            FieldKind::Sint32 => {
                let zigzag = number as u32;
                integer((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32), self.out);
            }
            _ => integer(number as u32, self.out),
        }
    }

    fn double(&mut self, value: f64) {
        if value.is_finite() {
            let mut buffer = zmij::Buffer::new();
            self.out.extend_from_slice(buffer.format_finite(value).as_bytes());
        } else if value.is_nan() {
            self.out.extend_from_slice(b"\"NaN\"");
        } else if value > 0.0 {
            self.out.extend_from_slice(b"\"Infinity\"");
        } else {
            self.out.extend_from_slice(b"\"-Infinity\"");
        }
    }

    #[inline]
    fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }
}

#[inline]
fn integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(number).as_bytes());
}
