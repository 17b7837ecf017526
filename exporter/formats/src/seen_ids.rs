//! Ids of items already emitted from a file that its writer rewrites, kept across restarts.
//!
//! The saved state has a bound: the newest ids, and the time up to which all older items are treated as emitted.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

type Id = [u8; 8];

/// The maximum number of saved ids. An item older than all of them is treated as already emitted.
const MAX_SAVED_IDS: usize = 4096;

/// The time of a restored id until its item is read again.
const NOT_SEEN: u64 = u64::MAX;

/// Ids and times of the emitted items (a dedup window).
#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    /// All items up to this time were emitted.
    emitted_until: u64,
    /// The items of earlier passes over the file.
    earlier: HashMap<Id, u64>,
    /// The items of this pass that earlier passes did not have.
    current: Vec<(Id, u64)>,
}

/// The saved form of [`SeenIds`].
#[derive(Deserialize, Serialize)]
struct SavedIds {
    #[serde(rename = "until")]
    emitted_until: u64,
    /// Sixteen hexadecimal digits an id.
    ids: String,
    /// The last step that was recorded completely.
    step: Option<i64>,
}

impl SeenIds {
    /// Begins another pass over the file, from its beginning.
    pub(crate) fn begin_pass(&mut self) {
        self.earlier.extend(self.current.drain(..));
    }

    /// Adds an item, and returns whether no earlier pass had it.
    pub(crate) fn is_new(&mut self, id: Id, time: u64) -> bool {
        if let Some(known) = self.earlier.get_mut(&id) {
            *known = time;
            return false;
        }
        let is_new = time > self.emitted_until;
        if is_new {
            self.current.push((id, time));
        }
        is_new
    }

    /// Returns the state to save, with the last step that was recorded completely.
    pub(crate) fn to_json(&self, step: Option<i64>) -> Option<Json> {
        let earlier = self.earlier.iter().map(|(id, time)| (*id, *time));
        let mut all: Vec<_> = earlier.chain(self.current.iter().copied()).collect();
        all.sort_unstable_by_key(|(_, time)| *time);
        let (oldest, newest) = all.split_at(all.len().saturating_sub(MAX_SAVED_IDS));
        let dropped = oldest
            .iter()
            .map(|(_, time)| *time)
            .filter(|time| *time != NOT_SEEN);
        let saved = SavedIds {
            emitted_until: dropped.max().unwrap_or_default().max(self.emitted_until),
            ids: newest
                .iter()
                .map(|(id, _)| format!("{:016x}", u64::from_be_bytes(*id)))
                .collect(),
            step,
        };
        serde_json::to_value(saved).ok()
    }

    /// Restores a saved state, with the last step that was recorded completely. Returns `None` if the state is not valid.
    pub(crate) fn of_json(json: &Json) -> Option<(Self, Option<i64>)> {
        let saved = SavedIds::deserialize(json).ok()?;
        let (ids, rest) = saved.ids.as_bytes().as_chunks::<16>();
        let id = |digits: &[u8; 16]| {
            let id = u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
            Some((id.to_be_bytes(), NOT_SEEN))
        };
        let earlier = ids.iter().map(id).collect::<Option<_>>();
        let seen = Self {
            emitted_until: saved.emitted_until,
            earlier: earlier.filter(|_| rest.is_empty())?,
            current: Vec::new(),
        };
        Some((seen, saved.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Id {
        number.to_be_bytes()
    }

    #[test]
    fn only_saved_ids_are_known_after_a_restore() {
        let mut seen = SeenIds::default();
        assert!(seen.is_new(id(7), 100) && seen.is_new(id(u64::MAX), 200));
        let (mut seen, step) = SeenIds::of_json(&seen.to_json(Some(3)).unwrap()).unwrap();
        assert_eq!(step, Some(3));
        assert!(!seen.is_new(id(7), 100) && !seen.is_new(id(u64::MAX), 200));
        assert!(
            seen.is_new(id(8), 50),
            "an id that is older than the others and was never added"
        );
    }

    #[test]
    fn newest_ids_are_saved_and_older_items_count_as_emitted() {
        let mut seen = SeenIds::default();
        let many = MAX_SAVED_IDS as u64 + 10;
        assert!((1..=many).all(|number| seen.is_new(id(number), number)));
        for _ in 0..2 {
            let kept = seen.to_json(None).unwrap();
            assert_eq!(kept["ids"].as_str().unwrap().len(), 16 * MAX_SAVED_IDS);
            seen = SeenIds::of_json(&kept).unwrap().0;
            assert!((1..=many).all(|number| !seen.is_new(id(number), number)));
            assert!(seen.is_new(id(many + 1), many - 1));
            seen = SeenIds::of_json(&kept).unwrap().0;
            assert!(!(1..=many).any(|number| seen.is_new(id(number), number)));
        }
    }

    #[test]
    fn invalid_saved_state_is_rejected() {
        let mut saved = SeenIds::default().to_json(None).unwrap();
        saved["ids"] = "00".into();
        assert!(SeenIds::of_json(&saved).is_none());
        assert!(SeenIds::of_json(&Json::from("seen")).is_none());
    }
}
