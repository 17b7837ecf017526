//! Files and streams of OTLP: one message after the other, in every form that the Collector's file exporter writes.
//!
//! | form | how it is found |
//! |---|---|
//! | gzip (also several members), zstd, around any of the below | the first four bytes |
//! | OTLP/JSON, one object a line | begins with `{`, and the first line is a whole object or the next line begins another |
//! | OTLP/JSON, pretty-printed objects | begins with `{`, and the first line ends inside the object |
//! | one protobuf message up to the end of the input | begins with field 1, and in it the fields of a resource |
//! | protobuf, each message behind its length in four bytes, big endian | anything else whose first length is within limits |
//!
//! A message behind its length may be a zstd frame of its own, and may be OTLP/JSON. The forms cannot be taken for each other
//! while a message may have less than 144 MiB: larger lengths begin with bytes that text may begin with.

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
