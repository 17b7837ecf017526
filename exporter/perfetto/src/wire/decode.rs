//! Decodes fields from borrowed bytes, without allocation or copies.

/// An error in protobuf bytes: its kind and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct WireError {
    /// The kind of error.
    pub kind: WireErrorKind,
    /// The offset from the start of the message, in bytes.
    pub offset: usize,
}

/// The kinds of errors in protobuf bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// The message ends inside a field.
    #[error("the message ends inside a field")]
    Truncated,
    /// A varint has more than ten bytes.
    #[error("a varint is longer than 64 bits")]
    VarintTooLong,
    /// A field number is 0 or over 2^29 - 1.
    #[error("a field number is out of range")]
    BadFieldNumber,
    /// A wire type is 6 or 7, or a group (3, 4), which Perfetto does not use.
    #[error("a field has a wire type that Perfetto does not use")]
    BadWireType,
    /// Values are nested deeper than the limit of the reader.
    #[error("values are nested too deep")]
    TooDeep,
}

/// The value of a field, as its wire type carries it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FieldValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> FieldValue<'a> {
    /// Returns the bytes of a string or a message, which are empty if the field has another wire type.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Returns the number, regardless of its wire type.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value,
            Self::Fixed32(value) => u64::from(value),
            Self::Bytes(_) => 0,
        }
    }

    pub(crate) fn double(self) -> f64 {
        f64::from_bits(self.number())
    }

    pub(crate) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

/// Iterates over the fields of one message as (number, value), in their order; the iteration ends after an error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    fn field(&mut self) -> Result<(u32, FieldValue<'a>), WireError> {
        let start = self.position;
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 || number >= 1 << 29 {
            return Err(Self::error(WireErrorKind::BadFieldNumber, start));
        }
        let value = match tag & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => FieldValue::Fixed64(u64::from_le_bytes(self.chunk()?)),
            2 => FieldValue::Bytes(self.delimited()?),
            5 => FieldValue::Fixed32(u32::from_le_bytes(self.chunk()?)),
            _ => return Err(Self::error(WireErrorKind::BadWireType, start)),
        };
        Ok((number as u32, value))
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let start = self.position;
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.position) else {
                return Err(Self::error(WireErrorKind::Truncated, self.position));
            };
            self.position += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Self::error(WireErrorKind::VarintTooLong, start))
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let rest = self.bytes.get(self.position..);
        match rest.and_then(<[u8]>::first_chunk::<N>) {
            Some(chunk) => {
                self.position += N;
                Ok(*chunk)
            }
            None => Err(Self::error(WireErrorKind::Truncated, self.position)),
        }
    }

    fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let start = self.position;
        let length = usize::try_from(self.varint()?).ok();
        let end = length.and_then(|length| self.position.checked_add(length));
        match end.and_then(|end| self.bytes.get(self.position..end)) {
            Some(value) => {
                self.position += value.len();
                Ok(value)
            }
            None => Err(Self::error(WireErrorKind::Truncated, start)),
        }
    }

    fn error(kind: WireErrorKind, offset: usize) -> WireError {
        WireError { kind, offset }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, FieldValue<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.position = self.bytes.len();
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_is_an_error_except_between_fields() {
        let bytes = [0x08, 0x96, 0x01, 0x1a, 2, b'h', b'i'];
        let complete: Vec<usize> = (0..=bytes.len())
            .filter(|&cut| Fields::new(&bytes[..cut]).all(|field| field.is_ok()))
            .collect();
        assert_eq!(complete, [0, 3, 7]);
    }

    #[test]
    fn invalid_encoding_is_rejected_with_its_offset() {
        let kinds = [
            (&[0x08, 0x01, 0x00, 0x00][..], WireErrorKind::BadFieldNumber, 2),
            (&[0x0b, 0x00], WireErrorKind::BadWireType, 0),
            (
                &[
                    0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
                ],
                WireErrorKind::VarintTooLong,
                1,
            ),
            (
                &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                WireErrorKind::Truncated,
                1,
            ),
        ];
        for (bytes, kind, offset) in kinds {
            let error = Fields::new(bytes).find_map(Result::err);
            assert_eq!(error, Some(WireError { kind, offset }));
        }
    }
}
