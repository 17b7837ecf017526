//! Protobuf's wire format, both ways: `encode` into a growing buffer, small fields as a `block`, `decode` out of borrowed bytes.
//!
//! The grammar is <https://protobuf.dev/programming-guides/encoding/>.

mod block;
mod decode;
mod encode;

pub(crate) use block::Block;
pub(crate) use decode::{Fields, Value};
pub use decode::{WireError, WireErrorKind};
pub(crate) use encode::{Buffer, varint_len};
