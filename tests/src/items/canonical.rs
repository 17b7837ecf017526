//! A canonical form for OTLP/JSON values: two writers may omit defaults or write them, quote integers or not, and list
//! attributes in any order, with the same meaning.

use std::collections::BTreeMap;

use serde_json::Value;

/// 64-bit integers, which JSON carries as strings or as numbers.
const INTEGERS: [&str; 9] = [
    "asInt",
    "bucketCounts",
    "count",
    "endTimeUnixNano",
    "intValue",
    "observedTimeUnixNano",
    "startTimeUnixNano",
    "timeUnixNano",
    "zeroCount",
];

/// Floating point numbers, which JSON encodes as numbers or, if they are not finite, as strings.
const DOUBLES: [&str; 9] = [
    "asDouble",
    "doubleValue",
    "explicitBounds",
    "max",
    "min",
    "quantile",
    "sum",
    "value",
    "zeroThreshold",
];

/// Fields whose presence matters even with a default value: members of a `oneof`, and `optional` ones.
const PRESENT: [&str; 12] = [
    "arrayValue",
    "asDouble",
    "asInt",
    "boolValue",
    "bytesValue",
    "doubleValue",
    "intValue",
    "kvlistValue",
    "max",
    "min",
    "stringValue",
    "sum",
];

/// Returns the canonical form of a message.
pub(super) fn canonical(message: &Value) -> Value {
    spelled("", message)
}

fn spelled(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept: BTreeMap<_, _> = fields
                .iter()
                .map(|(key, value)| (key, spelled(key, value)))
                .filter(|(key, value)| PRESENT.contains(&key.as_str()) || !is_default(value))
                .collect();
            kept.into_iter()
                .map(|(key, value)| (key.clone(), value))
                .collect()
        }
        Value::Array(elements) => {
            let mut elements: Vec<_> = elements.iter().map(|element| spelled(key, element)).collect();
            // Attributes and map entries are pairs with a key, and are unordered.
            if elements.iter().all(|element| element.get("key").is_some()) {
                elements.sort_by_cached_key(|element| element["key"].to_string());
            }
            Value::Array(elements)
        }
        scalar if INTEGERS.contains(&key) => integer(scalar),
        scalar if DOUBLES.contains(&key) => double(scalar),
        Value::String(id) if matches!(key, "traceId" | "spanId" | "parentSpanId") => id.to_lowercase().into(),
        scalar => scalar.clone(),
    }
}

fn integer(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        other => other.clone(),
    }
}

fn double(value: &Value) -> Value {
    let number = match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        _ => match value.as_f64() {
            Some(number) => number,
            None => return value.clone(),
        },
    };
    format!("{number:?}").into()
}

/// Returns whether a value is the default. Protobuf does not distinguish a field with its default from an absent field.
pub(super) fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => matches!(text.as_str(), "" | "0" | "0.0"),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
