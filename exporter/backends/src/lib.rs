//! Clients of telemetry backends: what Tempo, Jaeger and Prometheus answer, as OTLP.
//!
//! `tempo`, `jaeger` and `prometheus` each ask one store through `client`, by `tls` where it wants that; where an answer cannot
//! hold all, `window` asks for less at a time. `answer` reads an answer from the network or a file;
//! `jaeger_json` reads Jaeger's own JSON, which is the one answer that is no OTLP underneath. `zipkin_json` reads files of Zipkin's spans.

mod client;
mod error;
mod jaeger;
mod jaeger_json;
mod prometheus;
mod query;
mod response;
mod tempo;
mod tls;
mod window;
mod zipkin_json;

pub use client::BackendOptions;
pub use error::BackendError;
pub use jaeger::JaegerBackend;
pub use prometheus::{PrometheusBackend, Samples};
pub use response::{QueryResponse, convert_response, looks_like_response, read_responses};
pub use tempo::TempoBackend;
pub use window::{TimeWindow, TraceSearch};
pub use zipkin_json::read_zipkin;
