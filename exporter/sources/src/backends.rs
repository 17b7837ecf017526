//! Stores of telemetry as a source: what Tempo and Jaeger answer, as OTLP.
//!
//! `answer` reads an answer that stands in a file or came over the network; `jaeger_json` reads Jaeger's own JSON, which is
//! the one answer that is no OTLP underneath.

mod answer;
mod jaeger_json;

pub use answer::{StoredAnswer, begins_answer, convert_answer};
