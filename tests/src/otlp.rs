//! Accessors of OTLP/JSON.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

/// Returns the messages in the complete lines of a file that may still be written.
pub fn messages(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = complete.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect("a line is OTLP/JSON"))
        .collect()
}

/// Returns the elements of a list; nothing if the value is not a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the items of a message by the names of the lists of its resources, their scopes and the items.
pub fn below<'m>(
    message: &'m Value,
    [resources, scopes, items]: [&'static str; 3],
) -> impl Iterator<Item = &'m Value> {
    let resources = list(&message[resources]).iter();
    let scopes = resources.flat_map(move |resource| list(&resource[scopes]));
    scopes.flat_map(move |scope| list(&scope[items]))
}

/// Returns the spans of a message.
pub fn spans(message: &Value) -> impl Iterator<Item = &Value> {
    below(message, ["resourceSpans", "scopeSpans", "spans"])
}

/// Returns the metrics of a message.
pub fn metrics(message: &Value) -> impl Iterator<Item = &Value> {
    below(message, ["resourceMetrics", "scopeMetrics", "metrics"])
}

/// Returns the spans of steps in messages, ordered by start time.
pub fn steps(messages: &[Value]) -> Vec<Value> {
    let steps = messages.iter().flat_map(spans);
    let mut steps: Vec<_> = steps
        .filter(|span| span["name"] == "train.step")
        .cloned()
        .collect();
    steps.sort_by_key(|span| time(span, "startTimeUnixNano"));
    steps
}

/// Returns the points of a sum in messages.
pub fn sums(messages: &[Value], name: &str) -> Vec<Value> {
    let metrics = messages.iter().flat_map(metrics);
    let named = metrics.filter(|metric| metric["name"] == name);
    named
        .flat_map(|metric| list(&metric["sum"]["dataPoints"]))
        .cloned()
        .collect()
}

/// Returns an attribute of a resource, a span, a point or a record with the type of its value, as `{"intValue": "3"}`.
pub fn attribute<'a>(of: &'a Value, key: &str) -> Option<&'a Value> {
    let mut attributes = list(&of["attributes"]).iter();
    Some(&attributes.find(|attribute| attribute["key"] == key)?["value"])
}

/// Returns an attribute that is text.
pub fn text_of<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    attribute(of, key)?["stringValue"].as_str()
}

/// Returns an attribute that is an integer.
pub fn integer(of: &Value, key: &str) -> Option<i64> {
    attribute(of, key)?.get("intValue").map(number)
}

/// Returns an attribute that is a floating point number.
pub fn double(of: &Value, key: &str) -> Option<f64> {
    attribute(of, key)?["doubleValue"].as_f64()
}

/// Returns an integer in JSON, where large ones are text.
pub fn number(value: &Value) -> i64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse().unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// Returns a time of a span, a point or a record, in Unix nanoseconds.
pub fn time(item: &Value, field: &str) -> u64 {
    number(&item[field]) as u64
}

/// Compresses bytes.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
