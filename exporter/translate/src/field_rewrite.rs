//! Rewrites one field of a protobuf message. All other bytes are unchanged, unknown fields included.

use pulsetrain_otlp::{WireError, wire::Reader, write::Buffer};

/// The action for an occurrence of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldAction {
    /// Keep its bytes.
    Keep,
    /// Remove it.
    Remove,
    /// Replace its value.
    Replace(Vec<u8>),
}

/// Applies `action` to each length-delimited field with this number, and returns the resulting message.
///
/// # Errors
/// The bytes are not valid protobuf.
pub(crate) fn rewrite_field<'m>(
    message: &'m [u8],
    number: u32,
    mut action: impl FnMut(&'m [u8]) -> Result<FieldAction, WireError>,
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
        match action(reader.delimited()?)? {
            FieldAction::Keep => out.extend_from_slice(&message[start..reader.position()]),
            FieldAction::Remove => {}
            FieldAction::Replace(bytes) => {
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
    fn other_fields_are_preserved_byte_for_byte() {
        // Field 1 twice around an unknown field 9, and a varint field 1, which is not a message.
        let message = [0x0a, 1, b'a', 0x4a, 1, b'x', 0x0a, 1, b'b', 0x08, 7];
        assert_eq!(
            rewrite_field(&message, 1, |_| Ok(FieldAction::Keep)).unwrap(),
            message
        );
        let without_a = rewrite_field(&message, 1, |field| {
            Ok(if field == b"a" {
                FieldAction::Remove
            } else {
                FieldAction::Replace(b"cc".to_vec())
            })
        });
        assert_eq!(without_a.unwrap(), [0x4a, 1, b'x', 0x0a, 2, b'c', b'c', 0x08, 7]);
        assert!(rewrite_field(&message[..5], 1, |_| Ok(FieldAction::Keep)).is_err());
    }
}
