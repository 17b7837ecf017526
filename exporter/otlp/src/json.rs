//! OTLP/JSON: conversion to and from protobuf bytes, without a tree in between.
//!
//! Both directions use the descriptors. The encoding is protobuf's JSON mapping with OTLP's own rules
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>): ids are hexadecimal, enum values are numbers,
//! unknown fields are ignored. Names are written in lowerCamelCase. The names of the proto files (`trace_id`) are read too,
//! which protobuf requires, although OTLP does not allow them.
//!
//! ```
//! # use pulsetrain_otlp::{Signal, json, limits::Limits};
//! let text = r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "train.step"}]}]}]}"#;
//! let mut bytes = Vec::new();
//! let decoded = json::decode(text.as_bytes(), &Limits::default(), &mut bytes)?;
//! assert_eq!((decoded.signal, decoded.counts.items), (Some(Signal::Traces), 1));
//!
//! let mut again = Vec::new();
//! json::encode(Signal::Traces, &bytes, &mut again)?;
//! assert_eq!(again, br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"train.step"}]}]}]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod base64;
mod decode;
mod encode;
mod error;
mod escape;
mod hex;
mod last_wins;
mod number;
mod order;
mod output;
mod pieces;
mod scalar;
mod stored;
mod token;
mod truncated;
mod value_text;

pub use decode::{Decoded, Dialect, UnknownField, decode, decode_dialect};
pub use encode::encode;
pub use error::{JsonError, JsonErrorKind};
pub use pieces::{Piece, Pieces};
pub use truncated::close_truncated;
pub use value_text::value_text;

#[cfg(test)]
mod tests;
