//! Selects the points of a metric that are about the rank as a unit, and their series.

use std::hash::{DefaultHasher, Hasher};

use pulsetrain_otlp::view::{AnyValue, KeyValue, Repeated};
use pulsetrain_semconv::attribute;

use crate::origin::text;

/// Returns a hash of the attributes of a point that covers the rank's complete step, or `None` for one about
/// a part.
///
/// The measurement method is ignored. Of statistics the sum counts, and of the roles of RL the actor.
pub(super) fn of_rank(attributes: Repeated<'_, KeyValue<'_>>) -> Option<u64> {
    if attributes.is_empty() {
        return Some(0);
    }
    let mut hasher = DefaultHasher::new();
    for entry in attributes.iter().map_while(Result::ok) {
        let value = entry.value.unwrap_or_default();
        let is = |attribute: &pulsetrain_semconv::Attribute| entry.key == attribute.name;
        let is_whole = if is(&attribute::PERF_CLOCK) {
            true
        } else if is(&attribute::PERF_STATISTIC) {
            text(value) == Some("sum")
        } else if is(&attribute::RL_ROLE) {
            text(value) == Some("actor")
        } else {
            false
        };
        if !is_whole {
            return None;
        }
        hash(&entry, &mut hasher);
    }
    Some(hasher.finish())
}

/// Returns a hash of all attributes of a point.
pub(super) fn of_any(attributes: Repeated<'_, KeyValue<'_>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in attributes.iter().map_while(Result::ok) {
        hash(&entry, &mut hasher);
    }
    hasher.finish()
}

fn hash(entry: &KeyValue<'_>, hasher: &mut DefaultHasher) {
    hasher.write(entry.key.as_bytes());
    match entry.value.unwrap_or_default() {
        AnyValue::String(text) => hasher.write(text.as_bytes()),
        AnyValue::Int(number) => hasher.write_i64(number),
        AnyValue::Bool(value) => hasher.write_u8(u8::from(value)),
        AnyValue::Double(number) => hasher.write_u64(number.to_bits()),
        _ => {}
    }
}
