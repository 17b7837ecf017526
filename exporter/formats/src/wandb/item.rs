//! Parses keys with JSON values, the items of histories, summaries, configurations and statistics.

use std::borrow::Cow;

use pulsetrain_otlp::wire::{Reader, WireError, WireValue as Wire};

use crate::tags::Distribution;
use pulsetrain_mapping::Decimal;

/// A key with a value.
#[derive(Debug, PartialEq)]
pub(super) struct Item<'a> {
    /// The key. Parts of a nested key are joined by dots, as in wandb.
    pub(super) key: Cow<'a, [u8]>,
    /// The value as JSON, extended by NaN and Infinity.
    json: &'a [u8],
}

impl<'a> Item<'a> {
    /// Creates an item with a key of one part.
    pub(super) fn new(key: &'a str, json: &'a [u8]) -> Self {
        Self {
            key: Cow::Borrowed(key.as_bytes()),
            json,
        }
    }

    /// Returns the key as text. Invalid UTF-8 is replaced.
    pub(super) fn key(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.key)
    }

    /// Returns the value as JSON, or an empty text if the value is not UTF-8.
    pub(super) fn json(&self) -> &'a str {
        str::from_utf8(self.json).unwrap_or_default()
    }

    /// Returns the value, or `None` if it is not a number.
    pub(super) fn number(&self) -> Option<f64> {
        match Decimal::prefix(self.json) {
            Some(decimal) if decimal.len == self.json.len() => Some(decimal.value),
            _ => self.json().parse().ok(),
        }
    }

    /// Returns the value.
    pub(super) fn value(&self) -> ItemValue {
        self.number()
            .map_or_else(|| value(self.json()), ItemValue::Number)
    }
}

/// The field of `HistoryRecord`, `SummaryRecord` and `ConfigRecord` that holds items.
const UPDATE: u32 = 1;

/// The fields of an item, with their wire types.
mod tag {
    pub(super) const KEY: u32 = 1 << 3 | 2;
    pub(super) const NESTED_KEY: u32 = 2 << 3 | 2;
    pub(super) const VALUE_JSON: u32 = 16 << 3 | 2;
}

/// Returns the items of a history, a summary or a configuration.
pub(super) fn all(bytes: &[u8]) -> Result<Vec<Item<'_>>, WireError> {
    in_field(bytes, UPDATE)
}

/// Returns the items in one field of a message.
pub(super) fn in_field(bytes: &[u8], number: u32) -> Result<Vec<Item<'_>>, WireError> {
    let mut items = Vec::with_capacity(32);
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let field = reader.tag()?;
        match (field >> 3, reader.value(field)?) {
            (found, Wire::Bytes(item)) if found == number => items.push(parse(item)?),
            _ => {}
        }
    }
    Ok(items)
}

#[inline]
fn parse(bytes: &[u8]) -> Result<Item<'_>, WireError> {
    let mut item = Item {
        key: Cow::Borrowed(&[]),
        json: &[],
    };
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        match reader.tag()? {
            tag::KEY | tag::NESTED_KEY => item.add_part(reader.delimited()?),
            tag::VALUE_JSON => item.json = reader.delimited()?,
            other => {
                reader.value(other)?;
            }
        }
    }
    Ok(item)
}

impl<'a> Item<'a> {
    #[inline]
    fn add_part(&mut self, part: &'a [u8]) {
        if self.key.is_empty() {
            self.key = Cow::Borrowed(part);
        } else {
            let key = self.key.to_mut();
            key.push(b'.');
            key.extend_from_slice(part);
        }
    }
}

/// A parsed value.
#[derive(Debug, PartialEq)]
pub(super) enum ItemValue {
    /// A number. Booleans are 1 and 0.
    Number(f64),
    Text(String),
    Distribution(Distribution),
    /// A picture, sound or table in a separate file.
    Media,
    /// JSON's `null`.
    Null,
    /// A map, which older versions do not flatten.
    Nested(serde_json::Map<String, serde_json::Value>),
    /// A list, or invalid JSON.
    Other,
}

/// Parses a value. Python's JSON has NaN and Infinity, which Rust's number parser accepts.
pub(super) fn value(json: &str) -> ItemValue {
    if let Ok(number) = json.parse() {
        return ItemValue::Number(number);
    }
    match serde_json::from_str(json) {
        Ok(serde_json::Value::Bool(truth)) => ItemValue::Number(f64::from(u8::from(truth))),
        Ok(serde_json::Value::String(text)) => match text.as_str() {
            "NaN" | "Infinity" | "-Infinity" => text.parse().map_or(ItemValue::Text(text), ItemValue::Number),
            _ => ItemValue::Text(text),
        },
        Ok(serde_json::Value::Null) => ItemValue::Null,
        Ok(serde_json::Value::Object(map)) => typed(map),
        _ => ItemValue::Other,
    }
}

/// Parses a map by its type.
fn typed(map: serde_json::Map<String, serde_json::Value>) -> ItemValue {
    match map.get("_type").and_then(serde_json::Value::as_str) {
        Some("histogram") => distribution(&map).map_or(ItemValue::Other, ItemValue::Distribution),
        Some(_) => ItemValue::Media,
        None => ItemValue::Nested(map),
    }
}

/// Parses `wandb.Histogram`: counts, and bucket edges as a list or as first edge and width.
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
