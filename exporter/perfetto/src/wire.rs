//! Protobuf's wire format: `encode` writes into a growing buffer, `block` combines small fields, `decode` reads borrowed
//! bytes.
//!
//! The grammar is <https://protobuf.dev/programming-guides/encoding/>.

mod block;
mod decode;
mod encode;

pub(crate) use block::Block;
pub(crate) use decode::{FieldValue, Fields};
pub use decode::{WireError, WireErrorKind};
pub(crate) use encode::{Buffer, varint_len};
