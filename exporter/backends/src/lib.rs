//! Clients of telemetry backends, which convert the answers of Tempo, Jaeger and Prometheus to OTLP.
//!
//! `tempo`, `jaeger` and `prometheus` each query one store through `client`. If one
//! answer cannot hold every match, `window` bisects the time window. `response` reads an answer from the network or a
//! file. `jaeger_json` reads Jaeger's own JSON, the only answer that is not OTLP underneath. `zipkin_json` reads files of
//! Zipkin's spans.

mod client;
mod error;
mod jaeger;
mod jaeger_json;
mod prometheus;
mod query;
mod response;
mod tempo;
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
