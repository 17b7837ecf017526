//! An identity codec: messages are encoded already.

use bytes::{Buf, BufMut, Bytes};
use tonic::{
    Status,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

/// The size of the gRPC frame header: a flag and a length.
const FRAME_HEADER_BYTES: usize = 5;

/// Passes messages through unchanged.
#[derive(Clone, Copy)]
pub(super) struct RawCodec {
    buffer: BufferSettings,
}

impl RawCodec {
    /// Returns the codec for a request of `length` bytes, so that its buffer is allocated once.
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

/// Decodes responses, which are small.
pub(super) struct RawDecoder;

impl Decoder for RawDecoder {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
