//! Any metrics to the Prometheus endpoint: a strict parser of each format accepts every page that it serves.
//!
//! The bytes are decoded as parameters of metrics (`odd_metrics`), and also delivered as OTLP, usually invalid.

#![no_main]

#[path = "../../src/exposition.rs"]
mod exposition;
#[path = "../../tests/judges/prometheus/odd_metrics.rs"]
#[allow(dead_code, reason = "the tests of the endpoint use all of it")]
mod odd_metrics;

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use exposition::{Exposition, read_page};
use libfuzzer_sys::fuzz_target;
use odd_metrics::Bytes;
use prost::Message;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Sink};
use pulsetrain_prometheus::PrometheusSink;

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let config = bytes.config();
    let mut sink = PrometheusSink::new(&config);
    deliver(&mut sink, bytes.metrics().encode_to_vec());
    deliver(&mut sink, input.to_vec());
    deliver(&mut sink, bytes.metrics().encode_to_vec());
    let counts = sink.store().counts();
    assert!(counts.bytes <= counts.max_bytes + (4 << 20), "{counts:?}");
    for (format, media) in [
        (Exposition::Text, "text/plain;version=1.0.0"),
        (Exposition::OpenMetrics, "application/openmetrics-text;version=1.0.0"),
        (
            Exposition::Protobuf,
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
        ),
    ] {
        for escaping in ["allow-utf-8", "underscores", "dots", "values"] {
            let mut page = Vec::new();
            sink.store().write_page(&format!("{media};escaping={escaping}"), &mut page);
            if let Err(error) = read_page(&page, format, escaping == "allow-utf-8") {
                panic!("{media} {escaping}: {error}\n{}", String::from_utf8_lossy(&page));
            }
        }
    }
});

/// Delivers a batch; the sink may reject it.
fn deliver(sink: &mut PrometheusSink, message: Vec<u8>) {
    let batch = Batch::new(Signal::Metrics, 1, message);
    let delivered = pin!(sink.deliver(&batch));
    match delivered.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(_) => {}
        Poll::Pending => panic!("the sink waits for something"),
    }
}
