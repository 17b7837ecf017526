//! Keys with values as JSON: what histories, summaries, configurations and statistics are made of.

use std::borrow::Cow;

use pulsetrain_otlp::wire::{Field, Reader, Value as Wire, WireError};

use crate::tags::Distribution;

/// An item.
#[derive(Debug, PartialEq)]
pub(super) struct Item<'a> {
    /// The key; the parts of a nested one are joined by dots, as wandb shows them.
    pub(super) key: Cow<'a, str>,
    /// The value as JSON, with NaN and Infinity besides.
    pub(super) json: &'a str,
}

/// The field of `HistoryRecord`, `SummaryRecord` and `ConfigRecord` that holds items.
const UPDATE: u32 = 1;

/// The items of a history, a summary or a configuration.
pub(super) fn all(bytes: &[u8]) -> Result<Vec<Item<'_>>, WireError> {
    in_field(bytes, UPDATE)
}

/// The items in one field of a message.
pub(super) fn in_field(bytes: &[u8], number: u32) -> Result<Vec<Item<'_>>, WireError> {
    let mut items = Vec::new();
    for field in Reader::new(bytes) {
        match field? {
            Field {
                number: found,
                value: Wire::Bytes(item),
            } if found == number => items.push(parse(item)?),
            _ => {}
        }
    }
    Ok(items)
}

fn parse(bytes: &[u8]) -> Result<Item<'_>, WireError> {
    let mut item = Item {
        key: Cow::Borrowed(""),
        json: "",
    };
    for field in Reader::new(bytes) {
        let Field {
            number,
            value: Wire::Bytes(value),
        } = field?
        else {
            continue;
        };
        match number {
            1 | 2 if item.key.is_empty() => item.key = String::from_utf8_lossy(value),
            1 | 2 => {
                let key = item.key.to_mut();
                key.push('.');
                key.push_str(&String::from_utf8_lossy(value));
            }
            16 => item.json = std::str::from_utf8(value).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(item)
}

/// What a value is.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    /// A number; truth is 1 and 0.
    Number(f64),
    Text(String),
    Distribution(Distribution),
    /// A picture, a sound, a table: a file beside the run.
    Media,
    /// Nothing.
    Null,
    /// A list or a map, as its JSON; or what is no JSON.
    Other,
}

/// Reads a value. Python's JSON has NaN and Infinity, which Rust's numbers understand.
pub(super) fn value(json: &str) -> Value {
    if let Ok(number) = json.parse() {
        return Value::Number(number);
    }
    match serde_json::from_str(json) {
        Ok(serde_json::Value::Bool(truth)) => Value::Number(f64::from(u8::from(truth))),
        Ok(serde_json::Value::String(text)) => Value::Text(text),
        Ok(serde_json::Value::Null) => Value::Null,
        Ok(serde_json::Value::Object(map)) => match map.get("_type").and_then(serde_json::Value::as_str) {
            Some("histogram") => distribution(&map).map_or(Value::Other, Value::Distribution),
            Some(_) => Value::Media,
            None => Value::Other,
        },
        _ => Value::Other,
    }
}

/// `wandb.Histogram`: counts, and their edges one by one or by the first, the width and the number of buckets.
fn distribution(map: &serde_json::Map<String, serde_json::Value>) -> Option<Distribution> {
    let doubles = |value: &serde_json::Value| -> Option<Vec<f64>> {
        value.as_array()?.iter().map(serde_json::Value::as_f64).collect()
    };
    let counts: Vec<f64> = doubles(map.get("values")?)?;
    let edges = match map.get("bins") {
        Some(bins) => doubles(bins)?,
        None => {
            let packed = map.get("packedBins")?;
            let (first, width) = (packed.get("min")?.as_f64()?, packed.get("size")?.as_f64()?);
            (0..=counts.len())
                .map(|number| first + width * number as f64)
                .collect()
        }
    };
    Some(Distribution::between(edges, &counts))
}
