//! What was told of states that are written over one another, so that of the next one only what is new is told.
//!
//! It outlives a restart as JSON: a hash for each entry of the history and each setting, and one for what stands around the history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use pulsetrain_record::key_cache::MOST_NAMES;

/// So much of a hash is kept: a history may have many entries.
pub(super) fn hash(text: &str) -> u32 {
    (xxh3_64(text.as_bytes()) >> 32) as u32
}

/// What was told, by its hashes.
#[derive(Debug, Default)]
pub(super) struct HistoryDigest {
    /// Of each entry of the history.
    entries: Vec<u32>,
    settings: BTreeMap<String, u32>,
    /// Of all that stands around the history.
    around: Option<u32>,
}

/// The same as it is kept.
#[derive(Deserialize, Serialize)]
struct Kept {
    /// The hashes of all entries, eight digits each.
    entries: String,
    settings: BTreeMap<String, u32>,
    around: Option<u32>,
}

impl HistoryDigest {
    /// Notes an entry, and says whether it was told before at its place; from the first that was not, all are new.
    pub(super) fn knows_entry(&mut self, position: usize, hash: u32) -> bool {
        let is_known = self.entries.get(position) == Some(&hash);
        if !is_known {
            self.entries.truncate(position);
            self.entries.push(hash);
        }
        is_known
    }

    /// Whether more entries were told than so many.
    pub(super) fn knows_more_than(&self, entries: usize) -> bool {
        self.entries.len() > entries
    }

    /// With which entry the history begins.
    pub(super) fn first_entry(&self) -> Option<u32> {
        self.entries.first().copied()
    }

    /// Notes a setting, and returns whether it was recorded before as it is. Settings beyond the limit are not remembered: they
    /// are recorded each time.
    pub(super) fn knows_setting(&mut self, key: &str, hash: u32) -> bool {
        if self.settings.len() >= MOST_NAMES && !self.settings.contains_key(key) {
            return false;
        }
        self.settings.insert(key.to_owned(), hash) == Some(hash)
    }

    /// Notes what stands around the history, and says whether it was told before as it is.
    pub(super) fn knows_around(&mut self, hash: u32) -> bool {
        self.around.replace(hash) == Some(hash)
    }

    /// What is to be kept.
    pub(super) fn to_json(&self) -> Option<Json> {
        let kept = Kept {
            entries: self.entries.iter().map(|hash| format!("{hash:08x}")).collect(),
            settings: self.settings.clone(),
            around: self.around,
        };
        serde_json::to_value(kept).ok()
    }

    /// What was kept; nothing where it makes no sense.
    pub(super) fn of_json(json: &Json) -> Option<Self> {
        let kept = Kept::deserialize(json).ok()?;
        let (entries, rest) = kept.entries.as_bytes().as_chunks::<8>();
        let entry = |digits: &[u8; 8]| u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        Some(Self {
            entries: entries
                .iter()
                .map(entry)
                .collect::<Option<_>>()
                .filter(|_| rest.is_empty())?,
            settings: kept.settings,
            around: kept.around,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> HistoryDigest {
        let mut told = HistoryDigest::default();
        assert!(!told.knows_entry(0, 1));
        assert!(!told.knows_entry(1, u32::MAX));
        assert!(!told.knows_setting("max_steps", 8));
        assert!(!told.knows_around(3));
        told
    }

    #[test]
    fn what_is_kept_is_known_again() {
        let kept = told().to_json().unwrap();
        let mut told = HistoryDigest::of_json(&kept).unwrap();
        assert!(told.knows_entry(0, 1) && told.knows_entry(1, u32::MAX));
        assert!(told.knows_setting("max_steps", 8) && told.knows_around(3));
        assert!(!told.knows_entry(2, 2) && !told.knows_setting("max_steps", 9) && !told.knows_around(4));
    }

    #[test]
    fn from_the_first_new_entry_all_are_new() {
        let mut told = told();
        assert!(!told.knows_entry(0, 2));
        assert!(!told.knows_entry(1, u32::MAX));
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        let kept = told().to_json().unwrap();
        for entries in ["0000000", "0000000g", "\u{e9}\u{e9}\u{e9}\u{e9}"] {
            let mut torn = kept.clone();
            torn["entries"] = entries.into();
            assert!(HistoryDigest::of_json(&torn).is_none(), "{entries}");
        }
        assert!(HistoryDigest::of_json(&Json::Null).is_none());
    }
}
