//! A batch of one span, for the tests of files and recorder.

use pulsetrain_otlp::{Signal, json, limits::Limits};
use pulsetrain_pipeline::Batch;

/// Returns a batch of a span with this name that lasts a nanosecond.
pub(super) fn batch(name: &str) -> Batch {
    let text = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"{name}","startTimeUnixNano":"1","endTimeUnixNano":"2"}}]}}]}}]}}"#
    );
    let mut bytes = Vec::new();
    json::decode(text.as_bytes(), &Limits::default(), &mut bytes).expect("the text is OTLP/JSON");
    Batch::new(Signal::Traces, 1, bytes)
}
