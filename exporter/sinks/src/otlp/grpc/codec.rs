//! A codec that codes nothing: messages are bytes already.

use bytes::{Buf, BufMut, Bytes};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// The gRPC frame before a message: a flag and a length.
const FRAME_HEADER_BYTES: usize = 5;

/// Passes messages through as they are.
#[derive(Clone, Copy)]
pub(super) struct RawCodec {
    buffer: BufferSettings,
}

impl RawCodec {
    /// For a request of `length` bytes, so that its buffer is allocated once.
    pub(super) fn for_message(length: usize) -> Self {
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
    type Decoder = RawDecoder;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> RawDecoder {
        RawDecoder
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

/// The answers, which are small.
pub(super) struct RawDecoder;

impl Decoder for RawDecoder {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
