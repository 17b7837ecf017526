//! Compares the readers and writers of this crate with `opentelemetry-proto`'s prost types and their serde.
//!
//! `generate` makes messages with every field from random bytes, `from_view` turns the views into prost types, and `rearrange`
//! encodes the same content in different bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod check;
mod from_view;
mod generate;
mod json;
mod protobuf;
mod rearrange;
mod source;
mod split;

use generate::Shape;
use opentelemetry_proto::tonic::{logs::v1::LogsData, metrics::v1::MetricsData, trace::v1::TracesData};
use proptest::{collection::vec, prelude::*, test_runner::Config};
use prost::Message as _;
use pulsetrain_otlp::Signal;
use source::Source;

/// The number of cases of each property: enough to cover every field with every kind of value.
fn config() -> Config {
    Config {
        failure_persistence: None,
        ..Config::with_cases(400)
    }
}

/// Random bytes, from which messages are generated.
fn seeds() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..3000)
}

/// Returns the same message, for each signal, as prost encodes it.
fn messages(seed: &[u8], shape: Shape) -> [(Signal, Vec<u8>); 3] {
    let generate = || generate::Generator::new(Source::new(seed), shape);
    [
        (Signal::Traces, generate().traces().encode_to_vec()),
        (Signal::Metrics, generate().metrics().encode_to_vec()),
        (Signal::Logs, generate().logs().encode_to_vec()),
    ]
}

/// Decodes and encodes again with prost.
fn through_prost(signal: Signal, bytes: &[u8]) -> Result<Vec<u8>, prost::DecodeError> {
    Ok(match signal {
        Signal::Traces => TracesData::decode(bytes)?.encode_to_vec(),
        Signal::Metrics => MetricsData::decode(bytes)?.encode_to_vec(),
        Signal::Logs => LogsData::decode(bytes)?.encode_to_vec(),
    })
}
