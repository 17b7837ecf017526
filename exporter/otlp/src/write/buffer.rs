//! Writes protobuf's wire format into a growing buffer: the counterpart of `wire`.

/// A growing buffer of protobuf fields.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
}

/// Fields with numbers below this have tags of one byte.
const SHORT_NUMBERS: u32 = 16;

/// The maximum number of fields of eight bytes that are written at once.
const MAX_FIXED64_FIELDS: usize = 3;

/// Returns the length of `value` as a varint, in bytes.
#[inline]
pub(crate) const fn varint_len(value: u64) -> usize {
    // Nearly all values are lengths below 128.
    if value < 0x80 {
        return 1;
    }
    // 64 - leading zeros, seven bits a byte, rounded up.
    (70 - value.leading_zeros() as usize) / 7
}

/// Returns the size of a length-delimited field with a value of `length` bytes.
#[inline]
pub(crate) const fn delimited_len(number: u32, length: usize) -> usize {
    varint_len((number as u64) << 3) + varint_len(length as u64) + length
}

/// Encodes a field of wire type 1 whose number is below 16.
#[inline]
fn short_fixed64(number: u32, value: u64) -> [u8; 9] {
    debug_assert!(number < SHORT_NUMBERS, "the tag has one byte");
    let mut field = [(number << 3 | 1) as u8; 9];
    field[1..].copy_from_slice(&value.to_le_bytes());
    field
}

impl Buffer {
    /// Creates an empty buffer with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
        }
    }

    /// Creates an empty buffer in the memory of `bytes`.
    pub(super) fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes }
    }

    /// Reserves room for `more` bytes.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize) {
        self.bytes.reserve(more);
    }

    /// Returns the bytes so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes the bytes and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Converts the buffer into its bytes.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes a varint.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        if value < 0x80 {
            self.bytes.push(value as u8);
        } else {
            self.long_varint(value);
        }
    }

    fn long_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a field of wire type 0.
    #[inline]
    pub fn uint(&mut self, number: u32, value: u64) {
        self.tag(number, 0);
        self.varint(value);
    }

    /// Writes a field of wire type 1.
    #[inline]
    pub fn fixed64(&mut self, number: u32, value: u64) {
        if number < SHORT_NUMBERS {
            // One copy of a fixed length is faster than two.
            return self.bytes.extend_from_slice(&short_fixed64(number, value));
        }
        self.tag(number, 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes two fields of wire type 1 whose numbers are below 16, with one copy, which is faster than two.
    #[inline]
    pub(super) fn two_fixed64(&mut self, [first, second]: [(u32, u64); 2]) {
        let mut fields = [0; 18];
        fields[..9].copy_from_slice(&short_fixed64(first.0, first.1));
        fields[9..].copy_from_slice(&short_fixed64(second.0, second.1));
        self.bytes.extend_from_slice(&fields);
    }

    /// Begins a message with up to three fields of wire type 1; the caller appends the remaining `more` bytes. All field
    /// numbers are below 16. A short message, as nearly all are, is written with one copy.
    #[inline]
    pub(super) fn message_of_fixed64<const N: usize>(
        &mut self,
        number: u32,
        fields: [(u32, u64); N],
        more: usize,
    ) {
        const { assert!(N <= MAX_FIXED64_FIELDS) };
        let mut piece = [0; 2 + 9 * MAX_FIXED64_FIELDS];
        for (place, (number, value)) in piece[2..].chunks_exact_mut(9).zip(fields) {
            place.copy_from_slice(&short_fixed64(number, value));
        }
        let len = 9 * N + more;
        if len < 0x80 {
            piece[..2].copy_from_slice(&[(number << 3 | 2) as u8, len as u8]);
            self.bytes.extend_from_slice(&piece[..2 + 9 * N]);
        } else {
            self.delimited_head(number, len);
            self.bytes.extend_from_slice(&piece[2..2 + 9 * N]);
        }
    }

    /// Writes a `double` field.
    #[inline]
    pub fn double(&mut self, number: u32, value: f64) {
        self.fixed64(number, value.to_bits());
    }

    /// Writes a field of wire type 5.
    #[inline]
    pub fn fixed32(&mut self, number: u32, value: u32) {
        self.tag(number, 5);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a string, bytes or an encoded message.
    #[inline]
    pub fn delimited(&mut self, number: u32, value: &[u8]) {
        self.delimited_head(number, value.len());
        self.bytes.extend_from_slice(value);
    }

    /// Writes a string unless it is empty, which is its default.
    #[inline]
    pub fn text(&mut self, number: u32, value: &str) {
        if !value.is_empty() {
            self.delimited(number, value.as_bytes());
        }
    }

    /// Writes tag and length of a length-delimited field whose `length` bytes follow.
    #[inline]
    pub fn delimited_head(&mut self, number: u32, length: usize) {
        if number < SHORT_NUMBERS && length < 0x80 {
            return self
                .bytes
                .extend_from_slice(&[(number << 3 | 2) as u8, length as u8]);
        }
        self.tag(number, 2);
        self.varint(length as u64);
    }

    /// Begins a message of less than 128 bytes with its first field, a text of less than 128 bytes.
    #[inline]
    pub(super) fn short_message_of_text(&mut self, number: u32, length: usize, (inner, text): (u32, &str)) {
        debug_assert!(
            length < 0x80 && text.len() < 0x80 && inner < SHORT_NUMBERS,
            "each is one byte"
        );
        let [length, text_len] = [length, text.len()].map(|length| length as u8);
        let inner = (inner << 3 | 2) as u8;
        if number < SHORT_NUMBERS {
            let head = [(number << 3 | 2) as u8, length, inner, text_len];
            self.bytes.extend_from_slice(&head);
        } else {
            self.tag(number, 2);
            self.bytes.extend_from_slice(&[length, inner, text_len]);
        }
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Appends fields that are already encoded.
    #[inline]
    pub fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    /// Appends encoded fields and returns them as a mutable slice.
    #[inline]
    pub(super) fn append_piece(&mut self, fields: &[u8]) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(fields);
        &mut self.bytes[start..]
    }

    /// Extends the length of the last message, which begins at `start`, by `more` bytes; the caller appends them. The number
    /// of the message's field is below 16.
    pub(super) fn extend_last(&mut self, start: usize, more: usize) {
        let (all, start) = (self.bytes.len() - start, start + 1);
        let body = (1..=10).find_map(|digits| {
            let body = all.checked_sub(1 + digits)?;
            (varint_len(body as u64) == digits).then_some(body)
        });
        let body = body.expect("invariant: one message reaches from `start` to the end");
        let mut length = (body + more) as u64;
        for _ in varint_len(body as u64)..varint_len(length) {
            self.bytes.insert(start, 0);
        }
        for place in start..start + varint_len(length) {
            let is_last = length < 0x80;
            self.bytes[place] = length as u8 & 0x7f | if is_last { 0 } else { 0x80 };
            length >>= 7;
        }
    }

    /// Appends packed numbers of eight bytes each, in one block.
    #[inline]
    pub(super) fn append_words<N: Copy>(&mut self, numbers: &[N], to_bytes: impl Fn(N) -> [u8; 8]) {
        let start = self.bytes.len();
        self.bytes.resize(start + 8 * numbers.len(), 0);
        for (place, number) in self.bytes[start..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&to_bytes(*number));
        }
    }

    #[inline]
    fn tag(&mut self, number: u32, wire_type: u32) {
        self.varint(u64::from(number << 3 | wire_type));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Reader, WireValue};

    #[test]
    fn every_written_field_type_is_read_back() {
        let mut buffer = Buffer::default();
        buffer.uint(1, 300);
        buffer.double(2, f64::NAN);
        buffer.text(3, "loss");
        buffer.fixed32(16, 7);
        let values: Vec<_> = Reader::new(buffer.as_slice())
            .map(|field| field.unwrap().value)
            .collect();
        assert_eq!(
            values,
            [
                WireValue::Varint(300),
                WireValue::Fixed64(f64::NAN.to_bits()),
                WireValue::Bytes(b"loss"),
                WireValue::Fixed32(7)
            ]
        );
    }

    #[test]
    fn extending_a_message_updates_its_length_prefix_even_if_the_prefix_grows() {
        for before in [0, 1, 100, 127, 128, 16_340, 16_383, 16_384] {
            for more in [1, 48, 200] {
                let mut buffer = Buffer::default();
                buffer.uint(2, 300);
                let start = buffer.len();
                buffer.delimited(1, &vec![7; before]);
                buffer.extend_last(start, more);
                buffer.append(&vec![9; more]);
                let expected = [vec![7; before], vec![9; more]].concat();
                let values: Vec<_> = Reader::new(buffer.as_slice())
                    .map(|field| field.unwrap().value)
                    .collect();
                assert_eq!(
                    values,
                    [WireValue::Varint(300), WireValue::Bytes(&expected)],
                    "{before}+{more}"
                );
            }
        }
    }

    #[test]
    fn predicted_varint_and_field_lengths_are_exact() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut buffer = Buffer::default();
            buffer.varint(value);
            assert_eq!(buffer.len(), varint_len(value), "{value}");
        }
        let mut buffer = Buffer::default();
        buffer.delimited(16, &[0; 200]);
        assert_eq!(buffer.len(), delimited_len(16, 200));
    }
}
