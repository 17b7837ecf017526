//! Errors of the reader: the reason and the offset of the packet.

use std::io;

use crate::WireError;

/// An error of the reader: the reason and the offset of the packet.
#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: {kind}")]
pub struct ReadError {
    /// The kind of error.
    #[source]
    pub kind: ReadErrorKind,
    /// The offset of the packet in the decompressed input, in bytes.
    pub offset: u64,
}

/// The kinds of errors in a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The input cannot be read any further, or its compression is broken.
    #[error("the input cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The input ends inside a packet.
    #[error("the trace ends in the middle of a packet")]
    TornTail,
    /// The bytes are not a trace, or no longer one at this offset.
    #[error("this is not a Perfetto trace")]
    NotATrace,
    /// A packet is larger than any that Perfetto writes.
    #[error("a packet of {0} bytes is larger than any that Perfetto writes")]
    TooLarge(u64),
    /// A packet is not valid protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A bundle of compressed packets cannot be inflated.
    #[error("compressed packets cannot be inflated: {0}")]
    Inflate(#[source] io::Error),
}
