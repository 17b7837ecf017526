//! The raw codec of gRPC, for clients and servers: messages are encoded already, tonic only frames them.

use bytes::{Buf, BufMut, Bytes};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// The size of the frame header: a flag, and the length in four bytes (gRPC over HTTP/2, "Length-Prefixed-Message").
pub(crate) const FRAME_HEADER_BYTES: usize = 5;

/// The beginnings of tonic's messages about a message over a limit, before and after decompression.
const TONIC_LIMIT: [&str; 2] = [
    "Error, decoded message length too large",
    "Error decompressing: size limit",
];

/// Returns whether tonic rejected a message over its limit: a response in a client, or a request in a server.
pub fn is_message_limit(status: &Status) -> bool {
    TONIC_LIMIT
        .iter()
        .any(|beginning| status.message().starts_with(beginning))
}

/// Passes messages through unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct RawCodec {
    buffer: BufferSettings,
}

impl RawCodec {
    /// Returns the codec for a message of `length` bytes, so that its buffer is allocated once.
    pub fn for_message(length: usize) -> Self {
        let whole = length + FRAME_HEADER_BYTES;
        Self {
            buffer: BufferSettings::new(whole, whole),
        }
    }
}

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.buffer
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
