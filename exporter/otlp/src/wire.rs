//! Protobuf's wire format: decodes fields from borrowed bytes.
//!
//! Nothing is allocated or copied; a length-delimited value is a slice of the input. The grammar is
//! <https://protobuf.dev/programming-guides/encoding/>.

/// An error in protobuf bytes: its kind and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct WireError {
    /// The kind of error.
    pub kind: WireErrorKind,
    /// The offset from the start of the reader's input, in bytes.
    pub offset: usize,
}

/// The kinds of errors in protobuf bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The input ends inside a field.
    #[error("the message ends inside a field")]
    Truncated,
    /// A varint has more than ten bytes, or its value more than 64 bits.
    #[error("a varint is longer than 64 bits")]
    VarintTooLong,
    /// A field number is 0 or over 2^29 - 1.
    #[error("a field number is out of range")]
    BadFieldNumber,
    /// A wire type is 6 or 7, or a group (3, 4), which OTLP has never had.
    #[error("a field has a wire type that OTLP does not use")]
    BadWireType,
    /// Messages are nested deeper than the limit.
    #[error("messages are nested too deep")]
    TooDeep,
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// The field number.
    pub number: u32,
    /// The value, as its wire type carries it.
    pub value: WireValue<'a>,
}

/// The value of a field, as its wire type carries it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1, little endian.
    Fixed64(u64),
    /// Wire type 2: a string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5, little endian.
    Fixed32(u32),
}

/// Reads the fields of one message, in their order on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of one message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns the number of bytes that have been read.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns whether all bytes have been read.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    /// Returns the bytes between two positions of this reader.
    #[inline]
    pub(crate) fn between(&self, start: usize, end: usize) -> &'a [u8] {
        &self.bytes[start..end]
    }

    /// Returns the next tag: field number and wire type as one number. [`Reader::delimited`] and similar methods then read or
    /// skip the value, which is fast for a message with few relevant fields.
    ///
    /// # Errors
    /// A field number is out of range, or as for [`Reader::varint`].
    #[inline(always)]
    pub fn tag(&mut self) -> Result<u32, WireError> {
        match self.bytes.get(self.position) {
            // Fields 1 to 15.
            Some(&tag @ 8..0x80) => {
                self.position += 1;
                Ok(tag.into())
            }
            _ => self.long_tag(),
        }
    }

    #[inline(never)]
    fn long_tag(&mut self) -> Result<u32, WireError> {
        let start = self.position;
        let tag = self.varint()?;
        match u32::try_from(tag) {
            Ok(tag) if tag >> 3 != 0 => Ok(tag),
            _ => Err(WireError {
                kind: WireErrorKind::BadFieldNumber,
                offset: start,
            }),
        }
    }

    /// Consumes the next `N` bytes if there are as many and `read` accepts them. This is fast for fields that look the same in
    /// nearly all messages.
    #[inline(always)]
    pub fn take_chunk<const N: usize, T>(
        &mut self,
        read: impl FnOnce(&'a [u8; N]) -> Option<T>,
    ) -> Option<T> {
        let taken = read(self.bytes.get(self.position..)?.first_chunk()?)?;
        self.position += N;
        Some(taken)
    }

    /// Skips fields that have this one-byte tag and a value shorter than 128 bytes, while `skip` returns `true` for the value.
    #[inline(always)]
    pub fn skip_short(&mut self, tag: u8, skip: impl Fn(&'a [u8]) -> bool) {
        while let Some([next, length @ ..0x80]) =
            self.bytes.get(self.position..).and_then(<[u8]>::first_chunk)
            && *next == tag
        {
            let start = self.position + 2;
            let end = start + usize::from(*length);
            match self.bytes.get(start..end) {
                Some(value) if skip(value) => self.position = end,
                _ => return,
            }
        }
    }

    /// Reads a varint, for example an element of a packed field.
    ///
    /// # Errors
    /// The bytes end inside the varint, or it has more than 64 bits.
    #[inline(always)]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        match self.bytes.get(self.position) {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(byte))
            }
            Some(&low) => match self.bytes.get(self.position + 1) {
                // The length of most items has two bytes.
                Some(&high) if high < 0x80 => {
                    self.position += 2;
                    Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
                }
                _ => self.long_varint(),
            },
            None => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, WireError> {
        let start = self.position;
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.position) else {
                return Err(self.error(WireErrorKind::Truncated));
            };
            self.position += 1;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError {
            kind: WireErrorKind::VarintTooLong,
            offset: start,
        })
    }

    /// Reads eight bytes as a number.
    ///
    /// # Errors
    /// Fewer than eight bytes are left.
    #[inline(always)]
    pub fn fixed64(&mut self) -> Result<u64, WireError> {
        match self.bytes.get(self.position..).and_then(<[u8]>::first_chunk::<8>) {
            Some(chunk) => {
                self.position += 8;
                Ok(u64::from_le_bytes(*chunk))
            }
            None => Err(self.error(WireErrorKind::Truncated)),
        }
    }

    /// Reads four bytes as a number.
    ///
    /// # Errors
    /// Fewer than four bytes are left.
    #[inline(always)]
    pub fn fixed32(&mut self) -> Result<u32, WireError> {
        match self.bytes.get(self.position..).and_then(<[u8]>::first_chunk::<4>) {
            Some(chunk) => {
                self.position += 4;
                Ok(u32::from_le_bytes(*chunk))
            }
            None => Err(self.error(WireErrorKind::Truncated)),
        }
    }

    /// Reads a length-delimited value.
    ///
    /// # Errors
    /// The bytes end inside the value.
    #[inline(always)]
    pub fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let (start, length) = match self.bytes.get(self.position..) {
            Some(&[length @ ..0x80, ..]) => (self.position + 1, usize::from(length)),
            // The length of most items has two bytes.
            Some(&[low, high @ ..0x80, ..]) => (
                self.position + 2,
                usize::from(low & 0x7f) | usize::from(high) << 7,
            ),
            _ => return self.long_delimited(),
        };
        if let Some(value) = self.bytes.get(start..start + length) {
            self.position = start + length;
            return Ok(value);
        }
        self.long_delimited()
    }

    #[inline(never)]
    fn long_delimited(&mut self) -> Result<&'a [u8], WireError> {
        let start = self.position;
        let length = self.varint()?;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| self.position.checked_add(length));
        match end.and_then(|end| self.bytes.get(self.position..end)) {
            Some(value) => {
                self.position += value.len();
                Ok(value)
            }
            None => Err(WireError {
                kind: WireErrorKind::Truncated,
                offset: start,
            }),
        }
    }

    /// Reads the value that follows `tag`.
    ///
    /// # Errors
    /// OTLP does not use the wire type, or the bytes end inside the value.
    #[inline(always)]
    pub fn value(&mut self, tag: u32) -> Result<WireValue<'a>, WireError> {
        Ok(match tag & 7 {
            0 => WireValue::Varint(self.varint()?),
            1 => WireValue::Fixed64(self.fixed64()?),
            2 => WireValue::Bytes(self.delimited()?),
            5 => WireValue::Fixed32(self.fixed32()?),
            _ => return Err(self.error(WireErrorKind::BadWireType)),
        })
    }

    fn error(&self, kind: WireErrorKind) -> WireError {
        WireError {
            kind,
            offset: self.position,
        }
    }

    fn next_field(&mut self) -> Result<Field<'a>, WireError> {
        let tag = self.tag()?;
        Ok(Field {
            number: tag >> 3,
            value: self.value(tag)?,
        })
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Field<'a>, WireError>;

    /// Returns the next field, or `None` at the end and after an error.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end() {
            return None;
        }
        let field = self.next_field();
        if field.is_err() {
            self.position = self.bytes.len();
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
        Reader::new(bytes).collect()
    }

    #[test]
    fn every_wire_type_is_read() {
        let bytes = [
            0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, b'h', b'i', 0x25, 7, 0, 0, 0,
        ];
        let values: Vec<_> = fields(&bytes)
            .unwrap()
            .iter()
            .map(|field| (field.number, field.value))
            .collect();
        assert_eq!(
            values,
            [
                (1, WireValue::Varint(150)),
                (2, WireValue::Fixed64(1)),
                (3, WireValue::Bytes(b"hi")),
                (4, WireValue::Fixed32(7))
            ]
        );
    }

    #[test]
    fn accepted_chunk_is_consumed_and_a_rejected_one_is_not() {
        let bytes = [0x08, 1, 0x10, 2];
        let mut reader = Reader::new(&bytes);
        assert_eq!(
            reader.take_chunk(|[tag, value]| (*tag == 0x10).then_some(*value)),
            None
        );
        assert_eq!(
            reader.take_chunk(|[tag, value]| (*tag == 0x08).then_some(*value)),
            Some(1)
        );
        assert_eq!(reader.take_chunk(|field: &[u8; 3]| Some(field.len())), None);
        assert_eq!(
            (reader.position(), reader.tag(), reader.varint()),
            (2, Ok(0x10), Ok(2))
        );
    }

    #[test]
    fn short_field_skipping_stops_at_other_long_truncated_and_requested_fields() {
        let short = b"\x4a\x01a\x4a\x00".as_slice();
        let ends = [
            b"".as_slice(),
            b"\x4b\x01a",
            b"\x4a",
            b"\x4a\x02x",
            b"\x4a\x01b\x4a\x01a",
        ];
        let long = [b"\x4a\x80\x01".as_slice(), &[b'x'; 128]].concat();
        for end in ends.into_iter().chain([long.as_slice()]) {
            let bytes = [short, end].concat();
            let mut reader = Reader::new(&bytes);
            reader.skip_short(0x4a, |value| value != b"b");
            assert_eq!(reader.position(), short.len(), "{end:?}");
        }
    }

    #[test]
    fn truncation_is_an_error_except_between_fields() {
        let bytes = [0x08, 0x96, 0x01, 0x1a, 2, b'h', b'i'];
        let whole: Vec<usize> = (0..=bytes.len())
            .filter(|&cut| fields(&bytes[..cut]).is_ok())
            .collect();
        assert_eq!(whole, [0, 3, 7]);
    }

    #[test]
    fn varints_of_eleven_bytes_and_of_65_bits_are_rejected() {
        let eleven = [
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(fields(&eleven).unwrap_err().kind, WireErrorKind::VarintTooLong);
        let bits65 = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(fields(&bits65).unwrap_err().kind, WireErrorKind::VarintTooLong);
    }

    #[test]
    fn length_beyond_the_end_of_the_input_is_rejected() {
        assert_eq!(
            fields(&[0x0a, 5, 1]).unwrap_err(),
            WireError {
                kind: WireErrorKind::Truncated,
                offset: 1
            }
        );
        let huge = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fields(&huge).unwrap_err().kind, WireErrorKind::Truncated);
    }

    #[test]
    fn field_number_zero_and_group_wire_types_are_rejected() {
        assert_eq!(
            fields(&[0x00, 0]).unwrap_err().kind,
            WireErrorKind::BadFieldNumber
        );
        for wire_type in [3, 4, 6, 7] {
            assert_eq!(
                fields(&[0x08 | wire_type, 0]).unwrap_err().kind,
                WireErrorKind::BadWireType
            );
        }
    }
}
