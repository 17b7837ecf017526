//! What of a file was said before it was written anew, spans or entries, also by a follower before this one.
//!
//! What is kept for the next follower has a bound: the ids of what is latest, and until when all before that was.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

type Id = [u8; 8];

/// So many ids are kept: what comes only when so many later ones were said is taken for one of those before them.
const MOST_KEPT: usize = 4096;

/// The time of what was kept, until it comes again.
const NOT_SEEN: u64 = u64::MAX;

/// What was said, by ids and with its times.
#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    /// All until then was.
    until: u64,
    /// Before the file began again.
    before: HashMap<Id, u64>,
    /// Since.
    now: Vec<(Id, u64)>,
}

/// The same as it is kept.
#[derive(Deserialize, Serialize)]
struct Kept {
    until: u64,
    /// Sixteen digits each.
    ids: String,
    /// The last step that is told as a whole.
    step: Option<i64>,
}

impl SeenIds {
    /// The file begins again.
    pub(crate) fn begin_pass(&mut self) {
        self.before.extend(self.now.drain(..));
    }

    /// Notes what comes, and says whether it was not said before the file began again.
    pub(crate) fn is_new(&mut self, id: Id, time: u64) -> bool {
        if let Some(known) = self.before.get_mut(&id) {
            *known = time;
            return false;
        }
        let is_new = time > self.until;
        if is_new {
            self.now.push((id, time));
        }
        is_new
    }

    /// What is to be kept, with the last step that is told as a whole.
    pub(crate) fn to_json(&self, step: Option<i64>) -> Option<Json> {
        let before = self.before.iter().map(|(id, time)| (*id, *time));
        let mut said: Vec<_> = before.chain(self.now.iter().copied()).collect();
        said.sort_unstable_by_key(|(_, time)| *time);
        let (rest, kept) = said.split_at(said.len().saturating_sub(MOST_KEPT));
        let seen = rest
            .iter()
            .map(|(_, time)| *time)
            .filter(|time| *time != NOT_SEEN);
        let kept = Kept {
            until: seen.max().unwrap_or_default().max(self.until),
            ids: kept
                .iter()
                .map(|(id, _)| format!("{:016x}", u64::from_be_bytes(*id)))
                .collect(),
            step,
        };
        serde_json::to_value(kept).ok()
    }

    /// What was kept, with the last step that is told as a whole; nothing where it makes no sense.
    pub(crate) fn of_json(json: &Json) -> Option<(Self, Option<i64>)> {
        let kept = Kept::deserialize(json).ok()?;
        let (ids, rest) = kept.ids.as_bytes().as_chunks::<16>();
        let id = |digits: &[u8; 16]| {
            let id = u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
            Some((id.to_be_bytes(), NOT_SEEN))
        };
        let before = ids.iter().map(id).collect::<Option<_>>();
        let said = Self {
            until: kept.until,
            before: before.filter(|_| rest.is_empty())?,
            now: Vec::new(),
        };
        Some((said, kept.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Id {
        number.to_be_bytes()
    }

    #[test]
    fn what_is_kept_is_known_again_and_only_that() {
        let mut said = SeenIds::default();
        assert!(said.is_new(id(7), 100) && said.is_new(id(u64::MAX), 200));
        let (mut said, step) = SeenIds::of_json(&said.to_json(Some(3)).unwrap()).unwrap();
        assert_eq!(step, Some(3));
        assert!(!said.is_new(id(7), 100) && !said.is_new(id(u64::MAX), 200));
        assert!(
            said.is_new(id(8), 50),
            "it is of before the others and was not said"
        );
    }

    #[test]
    fn of_many_the_last_are_kept_and_all_before_them_are_known() {
        let mut said = SeenIds::default();
        let many = MOST_KEPT as u64 + 10;
        assert!((1..=many).all(|number| said.is_new(id(number), number)));
        for _ in 0..2 {
            let kept = said.to_json(None).unwrap();
            assert_eq!(kept["ids"].as_str().unwrap().len(), 16 * MOST_KEPT);
            said = SeenIds::of_json(&kept).unwrap().0;
            assert!((1..=many).all(|number| !said.is_new(id(number), number)));
            assert!(said.is_new(id(many + 1), many - 1));
            said = SeenIds::of_json(&kept).unwrap().0;
            assert!(!(1..=many).any(|number| said.is_new(id(number), number)));
        }
    }

    #[test]
    fn what_makes_no_sense_is_nothing() {
        let mut kept = SeenIds::default().to_json(None).unwrap();
        kept["ids"] = "00".into();
        assert!(SeenIds::of_json(&kept).is_none());
        assert!(SeenIds::of_json(&Json::from("said")).is_none());
    }
}
