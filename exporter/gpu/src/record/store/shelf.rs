//! Where series stand: each found at once where it is asked for after the same one as the last time.
//!
//! A pass over the GPUs asks for the same series in the same order as the one before. So every series remembers which was
//! asked for after it, and only where that is another one a table is looked into: the table of a thousand series is far more
//! memory than a processor that has done something else for a second still has at hand.

use std::collections::HashMap;

use super::{Key, series::Series};
use crate::reading::Labels;

/// All series.
#[derive(Default)]
pub(super) struct Shelf {
    slots: Vec<Option<Slot>>,
    /// When each has to be looked at, in nanoseconds since 1970: apart, so that looking whether any has is short.
    due_unix_nanos: Vec<u64>,
    places: HashMap<Key, usize>,
    free: Vec<usize>,
    /// What was asked for last.
    last: usize,
}

struct Slot {
    key: Key,
    /// The place of what was asked for after it.
    after: usize,
    series: Series,
}

impl Shelf {
    /// The place of a series, and whether it is new and `make` has made it.
    pub(super) fn find(&mut self, key: &Key, make: impl FnOnce() -> Series) -> (usize, bool) {
        let after = self.slot(self.last).map(|slot| slot.after);
        if let Some(place) = after
            && self.slot(place).is_some_and(|slot| slot.key == *key)
        {
            self.last = place;
            return (place, false);
        }
        let found = self.places.get(key).copied();
        let place = found.unwrap_or_else(|| self.put(*key, make()));
        let last = self.last;
        if let Some(Some(slot)) = self.slots.get_mut(last) {
            slot.after = place;
        }
        self.last = place;
        (place, found.is_none())
    }

    /// The series at a place, its labels, and when it has to be looked at.
    pub(super) fn at(&mut self, place: usize) -> Option<(&mut Labels, &mut Series, &mut u64)> {
        let slot = self.slots.get_mut(place)?.as_mut()?;
        let due_unix_nanos = self.due_unix_nanos.get_mut(place)?;
        Some((&mut slot.key.labels, &mut slot.series, due_unix_nanos))
    }

    /// All, each with what tells it from others.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Series, &mut u64)> {
        let dues = self.due_unix_nanos.iter_mut();
        let slots = self.slots.iter_mut().zip(dues);
        slots.filter_map(|(slot, due)| {
            let slot = slot.as_mut()?;
            Some((&slot.key, &mut slot.series, due))
        })
    }

    /// Looks at all that have to be looked at: `look` says when the next time is, or nothing where the series goes.
    pub(super) fn look(
        &mut self,
        now_unix_nanos: u64,
        mut look: impl FnMut(&Key, &mut Series) -> Option<u64>,
    ) {
        for place in 0..self.slots.len() {
            if self.due_unix_nanos[place] > now_unix_nanos {
                continue;
            }
            let Some(slot) = &mut self.slots[place] else {
                continue;
            };
            match look(&slot.key, &mut slot.series) {
                Some(due) => self.due_unix_nanos[place] = due,
                None => self.remove(place),
            }
        }
    }

    /// Keeps those of which `keep` says so.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Key, &mut Series) -> bool) {
        for place in 0..self.slots.len() {
            if let Some(slot) = &mut self.slots[place]
                && !keep(&slot.key, &mut slot.series)
            {
                self.remove(place);
            }
        }
    }

    fn slot(&self, place: usize) -> Option<&Slot> {
        self.slots.get(place)?.as_ref()
    }

    fn put(&mut self, key: Key, series: Series) -> usize {
        let slot = Some(Slot {
            key,
            after: usize::MAX,
            series,
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.due_unix_nanos.push(u64::MAX);
                self.slots.len() - 1
            }
        };
        self.places.insert(key, place);
        place
    }

    fn remove(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].take() {
            self.places.remove(&slot.key);
            self.due_unix_nanos[place] = u64::MAX;
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use pulsetrain_semconv::metric::GPU_SM_ACTIVE;

    use super::*;
    use crate::{
        reading::Cadence,
        record::{
            store::{Observation, Place},
            subject::EntityAttributes,
        },
    };

    fn key(subject: u32) -> Key {
        Key {
            subject,
            metric: GPU_SM_ACTIVE.ordinal,
            labels: Labels::default(),
            texts: [None; 2],
        }
    }

    fn series() -> Series {
        let carried: EntityAttributes = Arc::new([]);
        let place = Place {
            subject: 0,
            carried: &carried,
            metric: &GPU_SM_ACTIVE,
            labels: Labels::default(),
            texts: [None; 2],
            time_unix_nanos: 1,
            driver_unix_nanos: 0,
            cadence: Cadence::Tick,
        };
        Series::new(&place, Observation::Now(0.0), 0)
    }

    fn subjects(shelf: &mut Shelf) -> Vec<u32> {
        let mut subjects: Vec<u32> = shelf.iter_mut().map(|(key, ..)| key.subject).collect();
        subjects.sort_unstable();
        subjects
    }

    proptest! {
        /// In whatever order series are asked for, and whichever have gone between: each is found once, and is itself.
        #[test]
        fn a_series_is_found_where_it_stands_whatever_was_asked_for_before(
            rounds in prop::collection::vec(
                (prop::collection::vec(0u32..12, 0..30), prop::collection::vec(any::<bool>(), 12)),
                1..8,
            ),
        ) {
            let mut shelf = Shelf::default();
            let mut there = std::collections::BTreeSet::new();
            for (asked, keeps) in rounds {
                for subject in asked {
                    let (place, is_new) = shelf.find(&key(subject), series);
                    prop_assert_eq!(is_new, there.insert(subject));
                    prop_assert_eq!(shelf.slot(place).map(|slot| slot.key.subject), Some(subject));
                }
                shelf.retain(|key, _| keeps[key.subject as usize]);
                there.retain(|subject| keeps[*subject as usize]);
                prop_assert_eq!(subjects(&mut shelf), there.iter().copied().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn only_what_is_due_is_looked_at_and_may_go() {
        let mut shelf = Shelf::default();
        for (subject, due) in [(1, 10), (2, 20), (3, 30)] {
            let (place, _) = shelf.find(&key(subject), series);
            *shelf.at(place).unwrap().2 = due;
        }
        let mut seen = Vec::new();
        shelf.look(20, |key, _| {
            seen.push(key.subject);
            (key.subject == 1).then_some(40)
        });
        assert_eq!(seen, [1, 2]);
        assert_eq!(subjects(&mut shelf), [1, 3]);
        seen.clear();
        shelf.look(39, |key, _| {
            seen.push(key.subject);
            Some(u64::MAX)
        });
        assert_eq!(seen, [3]);
    }
}
