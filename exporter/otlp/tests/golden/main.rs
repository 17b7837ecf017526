//! Compares OTLP/JSON in the shape of the specification's own examples, with every allowed notation, with its content (as
//! prost types, written by hand) and with the single line that this crate encodes for it.

#![allow(clippy::unwrap_used, reason = "a test says by a panic what is wrong")]

mod expected;

use prost::Message;
use pulsetrain_otlp::{Signal, json, limits::Limits};

/// Decodes an example and encodes it again; returns the protobuf bytes and the line.
fn read(text: &str, signal: Signal) -> (Vec<u8>, String) {
    let (mut bytes, mut line) = (Vec::new(), Vec::new());
    let decoded = json::decode(text.as_bytes(), &Limits::default(), &mut bytes).unwrap();
    assert_eq!((decoded.signal, decoded.unknown_fields), (Some(signal), 0));
    json::encode(signal, &bytes, &mut line).unwrap();
    line.push(b'\n');
    (bytes, String::from_utf8(line).unwrap())
}

/// Formats a message as text, in which all NaNs are equal.
fn shown<M: Message + Default + std::fmt::Debug>(bytes: &[u8]) -> String {
    format!("{:#?}", M::decode(bytes).unwrap())
}

#[test]
fn example_traces_decode_to_the_expected_messages_and_json_line() {
    let (bytes, line) = read(include_str!("traces.json"), Signal::Traces);
    let expected = expected::traces();
    assert_eq!(
        shown::<opentelemetry_proto::tonic::trace::v1::TracesData>(&bytes),
        format!("{expected:#?}")
    );
    assert_eq!(line, include_str!("traces.jsonl"));
}

#[test]
fn example_metrics_decode_to_the_expected_messages_and_json_line() {
    let (bytes, line) = read(include_str!("metrics.json"), Signal::Metrics);
    let expected = expected::metrics();
    assert_eq!(
        shown::<opentelemetry_proto::tonic::metrics::v1::MetricsData>(&bytes),
        format!("{expected:#?}")
    );
    assert_eq!(line, include_str!("metrics.jsonl"));
}

#[test]
fn example_logs_decode_to_the_expected_messages_and_json_line() {
    let (bytes, line) = read(include_str!("logs.json"), Signal::Logs);
    let expected = expected::logs();
    assert_eq!(
        shown::<opentelemetry_proto::tonic::logs::v1::LogsData>(&bytes),
        format!("{expected:#?}")
    );
    assert_eq!(line, include_str!("logs.jsonl"));
}
