//! Files and streams of OTLP: a sequence of messages, in every format that the Collector's file exporter writes.
//!
//! | form | how it is found |
//! |---|---|
//! | gzip (also several members), zstd, around any of the below | the first four bytes |
//! | OTLP/JSON, one object a line | begins with `{`, and the first line is a complete object or the next line begins another |
//! | OTLP/JSON, pretty-printed objects | begins with `{`, and the first line ends inside the object |
//! | one protobuf message up to the end of the input | begins with field 1, and in it the fields of a resource |
//! | length-delimited protobuf: a length of four bytes, big endian, before each message | any other first length within limits |
//!
//! A length-delimited message may be a zstd frame of its own, and may be OTLP/JSON. The forms are unambiguous while a message
//! is smaller than 144 MiB: the first byte of a larger length could also begin text.

mod error;
mod input;
mod reader;
mod signal_of;
mod text;
mod unframed;
mod window;
mod write;

pub use error::{FrameError, FrameErrorKind};
pub use input::inflated;
pub use reader::{Frame, FrameReader};
pub use signal_of::signal_of;
pub use unframed::is_unframed;
pub use write::{append_binary, append_json_line};

#[cfg(test)]
mod tests;
