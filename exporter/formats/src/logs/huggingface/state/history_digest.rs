//! The digest of the recorded states: it finds the new entries of a state that replaces another.
//!
//! It is saved as JSON: a hash for each entry of the history and each setting, and one for the totals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use pulsetrain_record::key_cache::MAX_NAMES;

/// Hashes a text to 32 bits: a history may have many entries.
pub(super) fn hash(text: &str) -> u32 {
    (xxh3_64(text.as_bytes()) >> 32) as u32
}

/// Hashes of the recorded parts of a state.
#[derive(Debug, Default)]
pub(super) struct HistoryDigest {
    /// The hash of each entry of the history.
    entries: Vec<u32>,
    settings: BTreeMap<String, u32>,
    /// The hash of the totals, the fields around the history.
    totals: Option<u32>,
}

/// The saved form of [`HistoryDigest`].
#[derive(Deserialize, Serialize)]
struct SavedDigest {
    /// The hashes of all entries, eight digits each.
    entries: String,
    settings: BTreeMap<String, u32>,
    #[serde(rename = "around")]
    totals: Option<u32>,
}

impl HistoryDigest {
    /// Adds an entry, and returns whether it was recorded before at this index. After the first new entry all are new.
    pub(super) fn has_entry(&mut self, position: usize, hash: u32) -> bool {
        let is_known = self.entries.get(position) == Some(&hash);
        if !is_known {
            self.entries.truncate(position);
            self.entries.push(hash);
        }
        is_known
    }

    /// Returns whether more entries than these are recorded.
    pub(super) fn has_more_entries_than(&self, entries: usize) -> bool {
        self.entries.len() > entries
    }

    /// Returns the hash of the first entry.
    pub(super) fn first_entry(&self) -> Option<u32> {
        self.entries.first().copied()
    }

    /// Adds a setting, and returns whether it was recorded before with this value. Settings beyond the limit are not kept: they
    /// are recorded each time.
    pub(super) fn has_setting(&mut self, key: &str, hash: u32) -> bool {
        if self.settings.len() >= MAX_NAMES && !self.settings.contains_key(key) {
            return false;
        }
        self.settings.insert(key.to_owned(), hash) == Some(hash)
    }

    /// Sets the hash of the totals, and returns whether they are unchanged.
    pub(super) fn has_same_totals(&mut self, hash: u32) -> bool {
        self.totals.replace(hash) == Some(hash)
    }

    /// Returns the state to save.
    pub(super) fn to_json(&self) -> Option<Json> {
        let saved = SavedDigest {
            entries: self.entries.iter().map(|hash| format!("{hash:08x}")).collect(),
            settings: self.settings.clone(),
            totals: self.totals,
        };
        serde_json::to_value(saved).ok()
    }

    /// Restores a saved state. Returns `None` if the state is not valid.
    pub(super) fn of_json(json: &Json) -> Option<Self> {
        let saved = SavedDigest::deserialize(json).ok()?;
        let (entries, rest) = saved.entries.as_bytes().as_chunks::<8>();
        let entry = |digits: &[u8; 8]| u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        Some(Self {
            entries: entries
                .iter()
                .map(entry)
                .collect::<Option<_>>()
                .filter(|_| rest.is_empty())?,
            settings: saved.settings,
            totals: saved.totals,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> HistoryDigest {
        let mut digest = HistoryDigest::default();
        assert!(!digest.has_entry(0, 1));
        assert!(!digest.has_entry(1, u32::MAX));
        assert!(!digest.has_setting("max_steps", 8));
        assert!(!digest.has_same_totals(3));
        digest
    }

    #[test]
    fn a_restored_digest_knows_its_entries() {
        let kept = digest().to_json().unwrap();
        let mut digest = HistoryDigest::of_json(&kept).unwrap();
        assert!(digest.has_entry(0, 1) && digest.has_entry(1, u32::MAX));
        assert!(digest.has_setting("max_steps", 8) && digest.has_same_totals(3));
        assert!(!digest.has_entry(2, 2) && !digest.has_setting("max_steps", 9) && !digest.has_same_totals(4));
    }

    #[test]
    fn entries_after_the_first_new_entry_are_new() {
        let mut digest = digest();
        assert!(!digest.has_entry(0, 2));
        assert!(!digest.has_entry(1, u32::MAX));
    }

    #[test]
    fn invalid_saved_state_is_rejected() {
        let kept = digest().to_json().unwrap();
        for entries in ["0000000", "0000000g", "\u{e9}\u{e9}\u{e9}\u{e9}"] {
            let mut invalid = kept.clone();
            invalid["entries"] = entries.into();
            assert!(HistoryDigest::of_json(&invalid).is_none(), "{entries}");
        }
        assert!(HistoryDigest::of_json(&Json::Null).is_none());
    }
}
