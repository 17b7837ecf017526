//! Predicts the next member of an object: writers keep one order, so the field that followed last time is compared first,
//! and one comparison usually suffices.

use crate::limits::MAX_DEPTH;

/// An upper bound of the number of fields of a message.
const PLACES: usize = 32;

/// The index that represents the beginning of an object.
pub(super) const START: usize = PLACES - 1;

/// For each depth and field index of an object, the index of the field that followed last time. Messages at one depth share a
/// row: if they have different orders, the prediction only fails more often.
#[derive(Debug)]
pub(super) struct Order {
    behind: [[u8; PLACES]; MAX_DEPTH + 2],
}

impl Order {
    pub(super) fn new() -> Self {
        Self {
            behind: [[0; PLACES]; MAX_DEPTH + 2],
        }
    }

    /// Returns the index of the field that followed this one last time.
    #[inline]
    pub(super) fn after(&self, depth: usize, place: usize) -> usize {
        self.behind[depth][place % PLACES].into()
    }

    /// Stores which field followed another.
    #[inline]
    pub(super) fn learn(&mut self, depth: usize, place: usize, next: usize) {
        self.behind[depth][place % PLACES] = next as u8;
    }
}

#[cfg(test)]
mod tests {
    use crate::{json, limits::Limits};

    fn decoded(spans: &str) -> Vec<u8> {
        let text = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
        let mut bytes = Vec::new();
        let decoded = json::decode(text.as_bytes(), &Limits::default(), &mut bytes);
        assert_eq!(decoded.map(|decoded| decoded.unknown_fields), Ok(0), "{text}");
        bytes
    }

    /// Returns the list of spans, which follows three tags with lengths of one byte.
    fn spans(bytes: &[u8]) -> &[u8] {
        &bytes[4..]
    }

    #[test]
    fn field_order_of_earlier_objects_does_not_affect_decoding() {
        let each = [
            r#"{"name":"a","kind":1,"flags":3}"#,
            r#"{"name":"b","kind":2,"flags":4}"#,
            r#"{"kind":1,"flags":3,"name":"c"}"#,
            r#"{ "name" : "d" , "kind" : 1 }"#,
            r#"{"name":"e" ,"kind":1}"#,
            r#"{"name":"f"}"#,
            "{}",
            r#"{"kind":3}"#,
            r#"{"name":"g","kind":1,"kind":2}"#,
            r#"{"status":{"code":2},"name":"h"}"#,
        ];
        for first in each {
            for second in each {
                let both = decoded(&format!("{first},{second},{first}"));
                let alone = [first, second, first].map(decoded);
                let joined = [&alone[0], &alone[1], &alone[2]].map(|one| spans(one)).concat();
                assert_eq!(spans(&both), joined, "{first} {second}");
            }
        }
    }
}
