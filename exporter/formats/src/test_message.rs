//! Encodes protobuf's wire format for hand-written messages of tests.

/// A number.
pub(crate) fn varint(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(number, &mut bytes);
    bytes
}

/// A field with a length.
pub(crate) fn bytes(field: u64, contents: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(contents.len() as u64),
        contents.to_vec(),
    ]
    .concat()
}
