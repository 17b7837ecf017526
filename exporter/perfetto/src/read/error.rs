//! Why a packet is not read, and where it begins.

use std::io;

use crate::WireError;

/// Why a packet is not read, and where it begins.
#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: {kind}")]
pub struct ReadError {
    /// What is wrong.
    #[source]
    pub kind: ReadErrorKind,
    /// Where the packet begins, in bytes of what is read after decompression.
    pub offset: u64,
}

/// What can be wrong with a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The input cannot be read any further, or its compression is broken.
    #[error("the input cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The input ends inside a packet.
    #[error("the trace ends in the middle of a packet")]
    TornTail,
    /// The bytes are no trace, or stop being one here.
    #[error("this is not a Perfetto trace")]
    NotATrace,
    /// A packet is larger than any that Perfetto writes.
    #[error("a packet of {0} bytes is larger than any that Perfetto writes")]
    TooLarge(u64),
    /// A packet is no protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Compressed packets cannot be inflated.
    #[error("compressed packets cannot be inflated: {0}")]
    Inflate(#[source] io::Error),
}
