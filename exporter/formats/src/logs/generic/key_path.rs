//! Keys that are paths: `info.learner.default_policy.learner_stats.policy_loss`, `main/loss`.
//!
//! If no rule knows the path, its tail decides ([`known_tail`]). A tail belongs to the first path of the log that has it: two
//! paths never share a series.

use pulsetrain_mapping::{Field, Mapping, known_tail};
use std::collections::HashMap;

use super::record_keys::MAX_KEYS;

/// The most fields of a record whose paths are compared with each other.
const MAX_FIELDS: usize = 512;

/// The paths of a log.
#[derive(Debug, Default)]
pub(super) struct KeyPaths {
    /// The path that each tail belongs to; `None` if the first record with it has several.
    owners: HashMap<String, Option<String>>,
}

impl KeyPaths {
    /// Returns the tail that decides the metric of a key in a record.
    pub(super) fn tail(&mut self, key: &str, fields: &[Field<'_>], mapping: &Mapping) -> Option<String> {
        let tail = known_tail(key, mapping)?;
        if self.owners.len() >= MAX_KEYS || fields.len() > MAX_FIELDS {
            return None;
        }
        if !self.owners.contains_key(&tail) {
            let is_other = |other: &str| {
                other != key
                    && (mapping.spelling(other) == mapping.spelling(&tail)
                        || known_tail(other, mapping).is_some_and(|other| other == tail))
            };
            let is_shared = fields.iter().any(|(other, _)| is_other(other));
            self.owners
                .insert(tail.clone(), (!is_shared).then(|| key.to_owned()));
        }
        let owner = self.owners.get(&tail)?.as_ref();
        owner.is_some_and(|owner| owner == key).then_some(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_mapping::{FieldValue, trainer};

    #[test]
    fn tail_belongs_to_one_path() {
        let mapping = trainer("generic").mapping();
        let fields = |keys: &[&'static str]| {
            let fields = keys.iter().map(|key| ((*key).into(), FieldValue::Number(1.0)));
            fields.collect::<Vec<Field<'_>>>()
        };
        let mut paths = KeyPaths::default();
        assert_eq!(
            paths.tail("a/loss", &fields(&["a/loss", "b/loss"]), mapping),
            None
        );
        assert_eq!(
            paths.tail("b/lr", &fields(&["b/lr", "loss"]), mapping).as_deref(),
            Some("lr")
        );
        assert_eq!(paths.tail("c/lr", &fields(&["c/lr"]), mapping), None);
    }
}
