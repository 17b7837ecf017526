//! Fields into a growing buffer.

/// A growing buffer of protobuf fields.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

/// The number of bytes of `value` as a varint.
#[inline]
pub(crate) const fn varint_len(value: u64) -> usize {
    // 64 - leading zeros, at least one bit, seven bits a byte, rounded up.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// A tag: the field's number and its wire type.
#[inline]
const fn tag(number: u32, wire_type: u32) -> u64 {
    (number << 3 | wire_type) as u64
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

    #[cfg(test)]
    pub(crate) fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A field of wire type 0; a negative number is its two's complement.
    #[inline]
    pub(crate) fn uint(&mut self, number: u32, value: u64) {
        self.varint(tag(number, 0));
        self.varint(value);
    }

    /// A field of wire type 1.
    #[inline]
    pub(crate) fn fixed64(&mut self, number: u32, value: u64) {
        self.varint(tag(number, 1));
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A string, bytes or an encoded message.
    #[inline]
    pub(crate) fn delimited(&mut self, number: u32, value: &[u8]) {
        self.head(number, value.len());
        self.bytes.extend_from_slice(value);
    }

    /// Tag and length of a value whose `length` bytes follow.
    #[inline]
    pub(crate) fn head(&mut self, number: u32, length: usize) {
        self.varint(tag(number, 2));
        self.varint(length as u64);
    }

    /// A message that `write` appends. One byte is kept free for its length, which is all that most messages need; a longer
    /// one is moved along.
    #[inline]
    pub(crate) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let start = self.open(number);
        write(self);
        self.close(start);
    }

    /// Begins a message and says where its body starts, for [`Buffer::close`].
    #[inline]
    pub(crate) fn open(&mut self, number: u32) -> usize {
        self.varint(tag(number, 2));
        self.bytes.push(0);
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
    use crate::wire::{Fields, Value};

    #[test]
    fn a_message_of_any_length_is_read_back() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 3_000_000] {
            let body = vec![7; length];
            let mut buffer = Buffer::default();
            buffer.message(11, |inner| inner.append(&body));
            buffer.uint(1, 5);
            let fields: Vec<_> = Fields::new(buffer.as_slice()).map(Result::unwrap).collect();
            assert_eq!(fields, [(11, Value::Bytes(&body)), (1, Value::Varint(5))]);
        }
    }

    #[test]
    fn lengths_of_varints_are_foretold_exactly() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut buffer = Buffer::default();
            buffer.varint(value);
            assert_eq!(buffer.len(), varint_len(value), "{value}");
        }
    }
}
