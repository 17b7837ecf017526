//! The error of a frame, with its offset.

use std::io;

use crate::{
    json::JsonError,
    limits::{Exceeded, LimitError},
    wire::WireErrorKind,
};

/// The error of a frame, with its offset.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", self.place())]
pub struct FrameError {
    /// The kind of error.
    #[source]
    pub kind: FrameErrorKind,
    /// The offset of the frame in the decompressed input, in bytes.
    pub offset: u64,
    /// The line of the error, counted from 1, if the input is text.
    pub line: Option<u64>,
}

/// The kinds of errors of frames.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameErrorKind {
    /// The input cannot be read any further, or its compression is broken.
    #[error("the input cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The input ends inside a frame.
    #[error("the input ends in the middle of a message")]
    TornTail,
    /// The input ends inside a frame; the complete spans, metrics or log records of that frame were returned.
    #[error("the input ends in the middle of a message; the data before byte {complete_until} is used")]
    TornText {
        /// The offset of the first incomplete element, in decompressed bytes.
        complete_until: u64,
    },
    /// The input has none of the known formats.
    #[error("this is neither OTLP/JSON nor length-delimited OTLP protobuf")]
    NotOtlp,
    /// A line is not valid OTLP/JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// An object has no top-level name of a signal.
    #[error("the object has none of resourceSpans, resourceMetrics and resourceLogs")]
    NoSignal,
    /// A protobuf message is malformed or exceeds a limit.
    #[error(transparent)]
    Protobuf(#[from] LimitError),
    /// A protobuf message matches none of the three signals.
    #[error("the message has no spans, metrics or log records in their form")]
    UnknownSignal,
    /// A frame exceeds a size limit.
    #[error("the message has {0}; raise the limit or split the file")]
    TooLarge(Exceeded),
    /// A field of a message that is read in parts exceeds the limit for a message, and is skipped.
    #[error("one field of the message has {0} and is left out")]
    FieldTooLarge(Exceeded),
    /// A part of a message is malformed, and the rest of that message is skipped.
    #[error("{0}; the rest of this part of the message is left out")]
    Broken(WireErrorKind),
    /// The compression of one message is broken.
    #[error("the message cannot be decompressed: {0}")]
    Inflate(#[source] io::Error),
}

impl FrameError {
    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("line {line}"),
            None => format!("byte {}", self.offset),
        }
    }
}
