//! Encodes fields into a growing buffer.

use super::block::Block;

/// A growing buffer of protobuf fields.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

/// Returns the length of `value` as a varint, in bytes.
#[inline]
pub(crate) const fn varint_len(value: u64) -> usize {
    // Seven bits a byte, rounded up: n / 7 equals 9n / 64 for up to 64 bits.
    ((64 - (value | 1).leading_zeros()) * 9 + 64) as usize / 64
}

impl Buffer {
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends fields that are already encoded.
    #[inline]
    pub(crate) fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    /// Appends a block with one store of its full capacity; the excess is then truncated.
    #[inline(always)]
    pub(crate) fn block(&mut self, block: Block) {
        let end = self.bytes.len() + block.len();
        self.bytes.extend_from_slice(&block.padded());
        self.bytes.truncate(end);
    }

    /// Appends a field of wire type 0; a negative number is its two's complement.
    #[inline]
    pub(crate) fn uint(&mut self, number: u32, value: u64) {
        self.block(Block::uint(number, value));
    }

    /// Appends a field of wire type 1.
    #[inline]
    pub(crate) fn fixed64(&mut self, number: u32, value: u64) {
        self.block(Block::fixed64(number, value));
    }

    /// Appends a string, bytes or an encoded message.
    #[inline]
    pub(crate) fn delimited(&mut self, number: u32, value: &[u8]) {
        self.head(number, value.len());
        self.bytes.extend_from_slice(value);
    }

    /// Appends the tag and the length of a value whose `length` bytes follow.
    #[inline]
    pub(crate) fn head(&mut self, number: u32, length: usize) {
        self.block(Block::head(number, length));
    }

    /// Appends a message whose body `write` appends. One byte is reserved for its length, which is enough for most messages; a
    /// longer body is moved.
    #[inline]
    pub(crate) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let start = self.open(number);
        write(self);
        self.close(start);
    }

    /// Begins a message and returns where its body starts, for [`Buffer::close`].
    #[inline]
    pub(crate) fn open(&mut self, number: u32) -> usize {
        self.block(Block::head(number, 0));
        self.bytes.len()
    }

    /// Ends the message whose body starts at `start`.
    #[inline]
    pub(crate) fn close(&mut self, start: usize) {
        let length = self.bytes.len() - start;
        if length < 0x80 {
            self.bytes[start - 1] = length as u8;
        } else {
            self.close_long(start, length);
        }
    }

    fn close_long(&mut self, start: usize, length: usize) {
        let extra = varint_len(length as u64) - 1;
        self.bytes.resize(self.bytes.len() + extra, 0);
        self.bytes.copy_within(start..start + length, start + extra);
        let mut rest = length as u64;
        for byte in &mut self.bytes[start - 1..start + extra - 1] {
            *byte = rest as u8 | 0x80;
            rest >>= 7;
        }
        self.bytes[start + extra - 1] = rest as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{FieldValue, Fields};

    #[test]
    fn message_of_every_length_round_trips() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 3_000_000] {
            let body = vec![7; length];
            let mut buffer = Buffer::default();
            buffer.message(11, |inner| inner.append(&body));
            buffer.uint(1, 5);
            let fields: Vec<_> = Fields::new(buffer.as_slice()).map(Result::unwrap).collect();
            assert_eq!(
                fields,
                [(11, FieldValue::Bytes(&body)), (1, FieldValue::Varint(5))]
            );
        }
    }

    #[test]
    fn lengths_of_varints_are_predicted_exactly() {
        for bit in 0..64 {
            let ahead = |value: u64| (1..=10).find(|bytes| 7 * bytes > 63 || value >> (7 * bytes) == 0);
            for value in [1_u64 << bit, (1 << bit) - 1] {
                assert_eq!(Some(varint_len(value)), ahead(value), "{value}");
            }
        }
    }
}
