//! The value of an attribute or of a log body as text, as the Collector and Prometheus have it: lists and maps are JSON, bytes are base64.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use pulsetrain_otlp::view::AnyValue;
use serde_json::{Map, Number, Value};

/// Values that are nested deeper than this come out as null.
const DEEPEST: usize = 16;

/// The text of a value; bytes that are no UTF-8 become U+FFFD.
pub(crate) fn value_text(value: AnyValue<'_>) -> Cow<'_, str> {
    match value {
        AnyValue::String(text) => text.to_str_lossy(),
        AnyValue::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
        AnyValue::Int(value) => Cow::Owned(itoa::Buffer::new().format(value).to_owned()),
        AnyValue::Double(value) => Cow::Owned(value.to_string()),
        AnyValue::Bytes(bytes) => Cow::Owned(STANDARD.encode(bytes)),
        AnyValue::Array(_) | AnyValue::Map(_) => Cow::Owned(json(value, 0).to_string()),
        AnyValue::Empty | AnyValue::StringIndex(_) => Cow::Borrowed(""),
    }
}

fn json(value: AnyValue<'_>, depth: usize) -> Value {
    match value {
        _ if depth > DEEPEST => Value::Null,
        AnyValue::Bool(value) => Value::Bool(value),
        AnyValue::Int(value) => Value::Number(value.into()),
        AnyValue::Double(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
        AnyValue::Array(values) => {
            let items = values.iter().map_while(Result::ok);
            Value::Array(items.map(|item| json(item, depth + 1)).collect())
        }
        AnyValue::Map(entries) => {
            let entries = entries.iter().map_while(Result::ok).map(|entry| {
                let value = entry.value.unwrap_or_default();
                (entry.key.to_str_lossy().into_owned(), json(value, depth + 1))
            });
            Value::Object(entries.collect::<Map<_, _>>())
        }
        AnyValue::Empty => Value::Null,
        other => Value::String(value_text(other).into_owned()),
    }
}
