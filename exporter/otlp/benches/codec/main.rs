//! Throughput of the codec against prost and serde, in one run: MB/s of each, and the ratio.
//!
//! The two sides of a pair are measured alternately, in many short rounds, and the best round counts, so that other load on
//! the machine affects both sides alike. Ratios can be compared between machines, MB/s cannot.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench reads the clock, prints its table, and stops at what it does not expect"
)]

mod batches;
mod rounds;
mod walk;

use batches::{points_by_prost, points_by_writer, records, short_spans, spans_by_prost, spans_by_writer};
use opentelemetry_proto::tonic::{metrics::v1::MetricsData, trace::v1::TracesData};
use prost::Message;
use pulsetrain_otlp::{
    Signal, json,
    limits::{Limits, check},
};
use rounds::{alone, compare, title};

fn main() {
    println!("cargo bench -p pulsetrain-otlp --bench codec");
    println!("one core, best of interleaved rounds; serde_json with float_roundtrip, as exact as ours\n");
    traces();
    metrics();
    println!("\n{:<34} {:>10}", "MB/s of the check", "ours");
    for (what, signal, bytes) in [
        ("512 spans with 3 attributes", Signal::Traces, short_spans()),
        ("512 log records with 2 attributes", Signal::Logs, records()),
    ] {
        alone(what, bytes.len(), || {
            check(signal, &bytes, &Limits::default()).unwrap()
        });
    }
}

fn traces() {
    let bytes = spans_by_writer();
    let text = to_json(Signal::Traces, &bytes);
    let data = TracesData::decode(&*bytes).unwrap();
    assert!(data == spans_by_prost(), "both sides do the same work");
    title("512 spans with 5 attributes", &bytes, &text);
    compare(
        "walk every field / prost decode",
        bytes.len(),
        || walk::spans(&bytes),
        || TracesData::decode(&*bytes),
    );
    compare(
        "write / prost build and encode",
        bytes.len(),
        spans_by_writer,
        || spans_by_prost().encode_to_vec(),
    );
    compare("write / prost encode alone", bytes.len(), spans_by_writer, || {
        data.encode_to_vec()
    });
    compare(
        "JSON read / serde_json",
        text.len(),
        || from_json(&text),
        || serde_json::from_slice::<TracesData>(&text).unwrap(),
    );
    compare(
        "JSON write / serde_json",
        text.len(),
        || to_json(Signal::Traces, &bytes),
        || serde_json::to_vec(&data).unwrap(),
    );
    alone("check", bytes.len(), || {
        check(Signal::Traces, &bytes, &Limits::default()).unwrap()
    });
    println!();
}

fn metrics() {
    let bytes = points_by_writer();
    let text = to_json(Signal::Metrics, &bytes);
    let data = MetricsData::decode(&*bytes).unwrap();
    assert!(data == points_by_prost(), "both sides do the same work");
    title("2048 points with 4 attributes", &bytes, &text);
    compare(
        "walk every field / prost decode",
        bytes.len(),
        || walk::points(&bytes),
        || MetricsData::decode(&*bytes),
    );
    compare(
        "write / prost build and encode",
        bytes.len(),
        points_by_writer,
        || points_by_prost().encode_to_vec(),
    );
    compare(
        "write / prost encode alone",
        bytes.len(),
        points_by_writer,
        || data.encode_to_vec(),
    );
    compare(
        "JSON read / serde_json",
        text.len(),
        || from_json(&text),
        || serde_json::from_slice::<MetricsData>(&text).unwrap(),
    );
    compare(
        "JSON write / serde_json",
        text.len(),
        || to_json(Signal::Metrics, &bytes),
        || serde_json::to_vec(&data).unwrap(),
    );
    alone("check", bytes.len(), || {
        check(Signal::Metrics, &bytes, &Limits::default()).unwrap()
    });
}

fn to_json(signal: Signal, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    json::encode(signal, bytes, &mut text).unwrap();
    text
}

fn from_json(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 3);
    json::decode(text, &Limits::default(), &mut bytes).unwrap();
    bytes
}
