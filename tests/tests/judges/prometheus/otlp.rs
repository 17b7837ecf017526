//! OTLP for these tests, written as JSON and converted to protobuf by our own codec.

use pulsetrain_otlp::{Signal, json, limits::Limits};
use pulsetrain_tests::unix_nanos;
use serde_json::{Value, json};

/// Returns metrics of one resource as protobuf.
pub(crate) fn encode(resource: &[(&str, &str)], metrics: &[Value]) -> Vec<u8> {
    let message = json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(resource)},
        "scopeMetrics": [{"scope": {"name": "test", "version": "1"}, "metrics": metrics}],
    }]});
    let mut bytes = Vec::new();
    json::decode(message.to_string().as_bytes(), &Limits::default(), &mut bytes).expect("OTLP/JSON");
    assert!(pulsetrain_otlp::limits::check(Signal::Metrics, &bytes, &Limits::default()).is_ok());
    bytes
}

pub(crate) fn attributes(pairs: &[(&str, &str)]) -> Value {
    pairs
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect()
}

/// Returns a gauge with one point at the current time; NaN and infinities are values.
pub(crate) fn gauge(name: &str, unit: &str, value: f64) -> Value {
    let value = match value {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        value if value.is_nan() => json!("NaN"),
        value => json!(value),
    };
    json!({"name": name, "unit": unit, "gauge": {"dataPoints": [
        {"timeUnixNano": unix_nanos().to_string(), "asDouble": value}]}})
}

/// Returns the end of a gauge's series.
pub(crate) fn end(name: &str, unit: &str) -> Value {
    json!({"name": name, "unit": unit, "gauge": {"dataPoints": [{"timeUnixNano": unix_nanos().to_string(), "flags": 1}]}})
}
