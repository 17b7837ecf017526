//! Writes one message as a frame of a file.

use crate::{
    Signal, WireError, json,
    limits::{Exceeded, Limit},
};

/// Appends a message as one line of OTLP/JSON, with its line end.
///
/// # Errors
///
/// The bytes are not a message; `out` is then unchanged.
pub fn append_json_line(signal: Signal, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    json::encode(signal, bytes, out)?;
    out.push(b'\n');
    Ok(())
}

/// Appends a length-delimited message: the length in four bytes, big endian, then the message.
///
/// # Errors
///
/// The message is longer than four bytes can represent; `out` is then unchanged.
pub fn append_binary(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Exceeded> {
    let length = u32::try_from(bytes.len()).map_err(|_| Exceeded {
        limit: Limit::Bytes,
        allowed: u32::MAX as usize,
    })?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}
