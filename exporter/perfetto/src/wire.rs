//! Protobuf's wire format, both ways: `encode` into a growing buffer, `decode` out of borrowed bytes.
//!
//! The grammar is <https://protobuf.dev/programming-guides/encoding/>.

mod decode;
mod encode;

pub(crate) use decode::{Fields, Value};
pub use decode::{WireError, WireErrorKind};
pub(crate) use encode::{Buffer, varint_len};
