//! A message without some of its parts: every other byte stays, fields that nobody knows included.

use pulsetrain_otlp::{WireError, wire::Reader, write::Buffer};

/// What becomes of a part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It stays as it is.
    Kept,
    /// It goes.
    Gone,
    /// Something else stands in its place.
    Instead(Vec<u8>),
}

/// The message with what `each` makes of its fields of this number.
///
/// # Errors
/// Bytes that are no protobuf.
pub(super) fn rest<'m>(
    message: &'m [u8],
    number: u32,
    mut each: impl FnMut(&'m [u8]) -> Result<Part, WireError>,
) -> Result<Vec<u8>, WireError> {
    let tag = number << 3 | 2;
    let mut out = Vec::with_capacity(message.len());
    let mut reader = Reader::new(message);
    while !reader.is_at_end() {
        let start = reader.position();
        let found = reader.tag()?;
        if found != tag {
            reader.value(found)?;
            out.extend_from_slice(&message[start..reader.position()]);
            continue;
        }
        match each(reader.delimited()?)? {
            Part::Kept => out.extend_from_slice(&message[start..reader.position()]),
            Part::Gone => {}
            Part::Instead(bytes) => {
                let mut field = Buffer::with_capacity(bytes.len() + 8);
                field.delimited(number, &bytes);
                out.extend_from_slice(field.as_slice());
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_stays_to_the_byte() {
        // Field 1 twice around an unknown field 9, and a varint field 1, which is no message.
        let message = [0x0a, 1, b'a', 0x4a, 1, b'x', 0x0a, 1, b'b', 0x08, 7];
        assert_eq!(rest(&message, 1, |_| Ok(Part::Kept)).unwrap(), message);
        let without_a = rest(&message, 1, |part| {
            Ok(if part == b"a" {
                Part::Gone
            } else {
                Part::Instead(b"cc".to_vec())
            })
        });
        assert_eq!(without_a.unwrap(), [0x4a, 1, b'x', 0x0a, 2, b'c', b'c', 0x08, 7]);
        assert!(rest(&message[..5], 1, |_| Ok(Part::Kept)).is_err());
    }
}
