//! Accessors of OTLP/JSON messages.

use std::path::Path;

use serde_json::Value;

/// Returns the messages of a file that may still be written.
pub(crate) fn messages(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = complete.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect("a line is OTLP/JSON"))
        .collect()
}

/// Returns the spans, ordered by start time.
pub(crate) fn spans(messages: &[Value]) -> Vec<Value> {
    let mut spans = below(messages, ["resourceSpans", "scopeSpans", "spans"]);
    spans.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap_or_default().to_owned());
    spans
}

/// Returns the spans of steps.
pub(crate) fn steps(messages: &[Value]) -> Vec<Value> {
    let mut steps = spans(messages);
    steps.retain(|span| span["name"] == "train.step");
    steps
}

/// Returns the points of a sum.
pub(crate) fn sums(messages: &[Value], name: &str) -> Vec<Value> {
    let metrics = below(messages, ["resourceMetrics", "scopeMetrics", "metrics"]);
    let named = metrics.into_iter().filter(|metric| metric["name"] == name);
    named
        .flat_map(|metric| {
            metric["sum"]["dataPoints"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .collect()
}

fn below(messages: &[Value], path: [&str; 3]) -> Vec<Value> {
    let mut found = messages.to_vec();
    for key in path {
        found = found
            .iter()
            .flat_map(|value| value[key].as_array().cloned().unwrap_or_default())
            .collect();
    }
    found
}

/// Returns an attribute that is a number.
pub(crate) fn number(item: &Value, name: &str) -> Option<f64> {
    attribute(item, name)?["doubleValue"].as_f64()
}

/// Returns an attribute that is a string.
pub(crate) fn text_of<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    attribute(item, name)?["stringValue"].as_str()
}

/// Returns a time of a span or a point, in Unix nanoseconds.
pub(crate) fn time(item: &Value, field: &str) -> u64 {
    let text = item[field].as_str().expect("it has its time");
    text.parse().expect("a time is a number")
}

fn attribute<'a>(item: &'a Value, name: &str) -> Option<&'a Value> {
    let attributes = item["attributes"].as_array()?;
    let found = attributes.iter().find(|attribute| attribute["key"] == name)?;
    Some(&found["value"])
}
