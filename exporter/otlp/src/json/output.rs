//! Protobuf fields whose length is known only when they are complete.
//!
//! Space for a length is reserved before the field, as long as that of the last message at the same depth; if that prediction
//! is wrong, the message is moved by the difference.

use crate::{limits::MAX_DEPTH, write::varint_len};

/// The size up to which text is copied as one fixed-size chunk; most text is shorter.
const SHORT: usize = 32;

/// The protobuf output of a text.
#[derive(Debug)]
pub(super) struct Output<'o> {
    pub(super) bytes: &'o mut Vec<u8>,
    widths: [u8; MAX_DEPTH + 2],
}

/// A length-delimited field that is not complete.
#[derive(Debug)]
#[must_use]
pub(super) struct Open {
    /// The offset of its tag.
    tag_at: usize,
    /// The offset of its value.
    start: usize,
    depth: usize,
}

impl<'o> Output<'o> {
    pub(super) fn new(bytes: &'o mut Vec<u8>) -> Self {
        Self {
            bytes,
            widths: [1; MAX_DEPTH + 2],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    #[inline]
    pub(super) fn tag(&mut self, number: u32, wire_type: u32) {
        self.varint(u64::from(number << 3 | wire_type));
    }

    /// Writes a number in the encoding of a wire type.
    #[inline]
    pub(super) fn number(&mut self, wire_type: u32, bits: u64) {
        match wire_type {
            0 => self.varint(bits),
            1 => self.bytes.extend_from_slice(&bits.to_le_bytes()),
            _ => self.bytes.extend_from_slice(&(bits as u32).to_le_bytes()),
        }
    }

    /// Writes a field that is a number.
    #[inline]
    pub(super) fn scalar(&mut self, number: u32, wire_type: u32, bits: u64) {
        let tag = number << 3 | wire_type;
        if wire_type == 1 && tag < 0x80 {
            let mut field = [tag as u8; 9];
            field[1..].copy_from_slice(&bits.to_le_bytes());
            self.bytes.extend_from_slice(&field);
        } else {
            self.tag(number, wire_type);
            self.number(wire_type, bits);
        }
    }

    /// Writes a length-delimited field.
    #[inline]
    pub(super) fn delimited(&mut self, number: u32, value: &[u8]) {
        if value.len() < 0x80 {
            self.head(number, value.len() as u8);
        } else {
            self.tag(number, 2);
            self.varint(value.len() as u64);
        }
        self.bytes.extend_from_slice(value);
    }

    /// Writes a length-delimited field with the first `length` bytes of a chunk. The chunk is copied completely, which takes
    /// one instruction, and the output is then truncated.
    #[inline]
    pub(super) fn short(&mut self, number: u32, chunk: &[u8; SHORT], length: usize) {
        self.head(number, length as u8);
        let end = self.len() + length;
        self.bytes.extend_from_slice(chunk);
        self.bytes.truncate(end);
    }

    /// Writes the tag of a length-delimited field and a length of one byte.
    #[inline]
    fn head(&mut self, number: u32, length: u8) {
        let tag = number << 3 | 2;
        if tag < 0x80 {
            self.bytes.extend_from_slice(&[tag as u8, length]);
        } else {
            self.tag(number, 2);
            self.bytes.push(length);
        }
    }

    /// Begins a length-delimited field at nesting level `depth`.
    #[inline]
    pub(super) fn open(&mut self, number: u32, depth: usize) -> Open {
        let tag_at = self.len();
        self.head(number, 0);
        let width = self.widths[depth];
        if width > 1 {
            self.bytes.resize(self.len() + usize::from(width) - 1, 0);
        }
        Open {
            tag_at,
            start: self.len(),
            depth,
        }
    }

    /// Ends the field that was begun last and sets its length.
    #[inline]
    pub(super) fn close(&mut self, field: &Open) {
        let length = self.len() - field.start;
        let left = self.widths[field.depth] as usize;
        if left == 1 && length < 0x80 {
            self.bytes[field.start - 1] = length as u8;
        } else {
            self.close_long(field, length, left);
        }
    }

    #[inline(never)]
    fn close_long(&mut self, field: &Open, length: usize, left: usize) {
        let needed = varint_len(length as u64);
        if left != needed {
            self.make_room(field.start, left, needed);
            self.widths[field.depth] = needed as u8;
        }
        let mut rest = length;
        let (last, others) = self.bytes[field.start - left..][..needed]
            .split_last_mut()
            .expect("invariant: a varint has a byte at least");
        for byte in others {
            *byte = rest as u8 | 0x80;
            rest >>= 7;
        }
        *last = rest as u8;
    }

    /// Ends the field that was begun last, or removes it if it is empty.
    #[inline]
    pub(super) fn close_unless_empty(&mut self, field: &Open) {
        if self.len() == field.start {
            self.bytes.truncate(field.tag_at);
        } else {
            self.close(field);
        }
    }

    #[cold]
    fn make_room(&mut self, start: usize, left: usize, needed: usize) {
        let end = self.len();
        if needed > left {
            self.bytes.resize(end + needed - left, 0);
            self.bytes.copy_within(start..end, start + needed - left);
        } else {
            self.bytes.copy_within(start..end, start - (left - needed));
            self.bytes.truncate(end - (left - needed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Reader, WireValue};

    #[test]
    fn short_text_fast_path_writes_the_same_bytes_as_the_general_path() {
        let chunk: [u8; SHORT] = std::array::from_fn(|place| place as u8);
        for length in 0..=SHORT {
            let (mut bytes, mut plain) = (Vec::new(), Vec::new());
            Output::new(&mut bytes).short(5, &chunk, length);
            Output::new(&mut plain).delimited(5, &chunk[..length]);
            assert_eq!(bytes, plain);
        }
    }

    #[test]
    fn length_prefixes_are_correct_and_minimal_after_fields_of_any_size() {
        let mut bytes = Vec::new();
        let mut output = Output::new(&mut bytes);
        let lengths = [0usize, 5, 200, 3, 20_000, 127, 128];
        for length in lengths {
            let field = output.open(1, 1);
            output.bytes.resize(output.len() + length, 7);
            output.close(&field);
        }
        let heads: usize = lengths.iter().map(|&length| 1 + varint_len(length as u64)).sum();
        assert_eq!(bytes.len(), heads + lengths.iter().sum::<usize>());
        for (field, length) in Reader::new(&bytes).zip(lengths) {
            assert_eq!(field.unwrap().value, WireValue::Bytes(&vec![7; length]));
        }
    }
}
