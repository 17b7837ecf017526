//! Converts OTLP's values to Perfetto's annotations.
//!
//! Bytes and empty values have no Perfetto type: each is a map with one entry that names the type. The counterpart is
//! `from_perfetto/values.rs`.

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, KeyValue, Repeated},
};
use pulsetrain_perfetto::{AnnotationList, Annotations};

use super::config::AttributePolicy;
use crate::vocabulary::{BYTES, EMPTY};

/// Adds the selected attributes.
pub(super) fn attributes(
    attributes: Repeated<'_, KeyValue<'_>>,
    policy: &AttributePolicy,
    out: &mut Annotations<'_>,
) -> Result<(), WireError> {
    attributes
        .iter()
        .try_for_each(|found| attribute(&found?, policy, out))
}

/// Adds an attribute if it is selected.
#[inline]
pub(super) fn attribute(
    attribute: &KeyValue<'_>,
    policy: &AttributePolicy,
    out: &mut Annotations<'_>,
) -> Result<(), WireError> {
    if !policy.shows(attribute.key.as_bytes()) {
        return Ok(());
    }
    add(attribute.key.as_bytes(), attribute.value.unwrap_or_default(), out)
}

/// Adds one value.
#[inline]
pub(super) fn add(key: &[u8], value: AnyValue<'_>, out: &mut Annotations<'_>) -> Result<(), WireError> {
    match value {
        AnyValue::String(text) => out.add(key, text.as_bytes()),
        AnyValue::Bool(value) => out.add(key, value),
        AnyValue::Int(value) => out.add(key, value),
        AnyValue::Double(value) => out.add(key, value),
        other => return add_nested(key, other, out),
    }
    Ok(())
}

fn add_nested(key: &[u8], value: AnyValue<'_>, out: &mut Annotations<'_>) -> Result<(), WireError> {
    let mut outcome = Ok(());
    match value {
        AnyValue::Array(values) if !values.is_empty() => {
            out.list(key, |list| outcome = push_all(values, list));
        }
        AnyValue::Map(entries) if !entries.is_empty() => {
            out.map(key, |map| {
                outcome = attributes(entries, &AttributePolicy::Full, map);
            });
        }
        other => out.map(key, |map| marker(other, map)),
    }
    outcome
}

fn push_all(values: Repeated<'_, AnyValue<'_>>, list: &mut AnnotationList<'_>) -> Result<(), WireError> {
    values.iter().try_for_each(|value| push(value?, list))
}

fn push(value: AnyValue<'_>, list: &mut AnnotationList<'_>) -> Result<(), WireError> {
    let mut outcome = Ok(());
    match value {
        AnyValue::String(text) => list.push(text.as_bytes()),
        AnyValue::Bool(value) => list.push(value),
        AnyValue::Int(value) => list.push(value),
        AnyValue::Double(value) => list.push(value),
        AnyValue::Array(values) if !values.is_empty() => list.list(|list| outcome = push_all(values, list)),
        AnyValue::Map(entries) if !entries.is_empty() => {
            list.map(|map| outcome = attributes(entries, &AttributePolicy::Full, map));
        }
        other => list.map(|map| marker(other, map)),
    }
    outcome
}

/// Writes a value for which Perfetto has no type.
fn marker(value: AnyValue<'_>, map: &mut Annotations<'_>) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    match value {
        AnyValue::Bytes(bytes) => map.add(BYTES, STANDARD.encode(bytes).as_str()),
        AnyValue::Array(_) => map.add(EMPTY, "list"),
        AnyValue::Map(_) => map.add(EMPTY, "map"),
        _ => map.add(EMPTY, "null"),
    }
}
