//! A map from key to value that first guesses the key that followed the previous one last time: writers repeat their names in
//! the same order.

use std::collections::HashMap;

/// The most names that are kept of one input. An input that has more uses changing values as names.
pub const MOST_NAMES: usize = 1 << 14;

/// Entries by name, in the order in which they came first.
#[derive(Debug)]
pub struct KeyCache<T> {
    entries: Vec<Entry<T>>,
    /// By the bytes of the names: a name out of a file need not be checked for text to be found.
    indices: HashMap<Box<[u8]>, usize>,
    /// Where the name that came last is.
    last: usize,
}

#[derive(Debug)]
struct Entry<T> {
    name: String,
    value: T,
    /// The index of the name that followed this one last time.
    next: usize,
}

impl<T> Default for KeyCache<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            indices: HashMap::new(),
            last: 0,
        }
    }
}

impl<T> KeyCache<T> {
    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the entry of a name is, if there is one.
    #[inline]
    pub fn index_of(&mut self, name: &str) -> Option<usize> {
        self.index_of_bytes(name.as_bytes())
    }

    /// Returns the index of the entry whose name has these bytes, or `None`.
    #[inline]
    pub fn index_of_bytes(&mut self, name: &[u8]) -> Option<usize> {
        let expected = self.entries.get(self.last)?.next;
        let index = match self.entries.get(expected) {
            Some(next) if next.name.as_bytes() == name => expected,
            _ => self.search(name)?,
        };
        self.last = index;
        Some(index)
    }

    /// Returns the index of a name, and adds the name with `new` where it is missing; `None` for a new name when there are
    /// [`MOST_NAMES`]. Names are UTF-8; what is not is kept as far as it can be.
    #[inline]
    pub fn intern(&mut self, name: &[u8], new: impl FnOnce(&str) -> T) -> Option<usize> {
        match self.index_of_bytes(name) {
            Some(index) => Some(index),
            None => {
                let name = String::from_utf8_lossy(name);
                let known = self.index_of(&name);
                let has_room = self.len() < MOST_NAMES;
                known.or_else(|| has_room.then(|| self.add(&name, new(&name))))
            }
        }
    }

    /// Searches for a name that has come unexpectedly, and expects it the next time.
    fn search(&mut self, name: &[u8]) -> Option<usize> {
        let index = *self.indices.get(name)?;
        self.entries[self.last].next = index;
        Some(index)
    }

    /// Adds the entry of a new name and returns its index.
    pub fn add(&mut self, name: &str, value: T) -> usize {
        let index = self.entries.len();
        if let Some(last) = self.entries.get_mut(self.last) {
            last.next = index;
        }
        self.entries.push(Entry {
            name: name.to_owned(),
            value,
            // The first of them comes again.
            next: 0,
        });
        self.indices.insert(name.as_bytes().into(), index);
        self.last = index;
        index
    }

    /// The entry at a index.
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut T {
        &mut self.entries[index].value
    }

    /// The name and the entry at a index.
    #[inline]
    pub fn key_and_value(&mut self, index: usize) -> (&str, &mut T) {
        let Entry { name, value, .. } = &mut self.entries[index];
        (name, value)
    }

    /// Iterates over all names with their entries; every index stays valid.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        self.entries
            .iter_mut()
            .map(|entry| (entry.name.as_str(), &mut entry.value))
    }

    /// Whether there is an entry of a name.
    pub fn contains(&self, name: &str) -> bool {
        self.indices.contains_key(name.as_bytes())
    }

    /// Gives out all names with their entries.
    pub fn take(&mut self) -> impl Iterator<Item = (String, T)> + use<T> {
        let entries = std::mem::take(self).entries;
        entries.into_iter().map(|entry| (entry.name, entry.value))
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.indices.clear();
        self.last = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_their_order_and_out_of_it() {
        let mut entries = KeyCache::default();
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(entries.index_of(name), None);
            assert_eq!(entries.add(name, number), number);
        }
        for name in ["a", "b", "c", "a", "c", "b", "b", "a"] {
            let index = entries.index_of(name).unwrap();
            assert_eq!(entries.key_and_value(index).0, name);
        }
        assert_eq!(
            (entries.index_of("d"), entries.contains("c"), entries.len()),
            (None, true, 3)
        );
        entries.clear();
        assert_eq!((entries.index_of("a"), entries.len()), (None, 0));
    }

    #[test]
    fn a_name_that_is_no_text_has_one_entry_too() {
        let mut entries = KeyCache::default();
        let name = b"lo\xffss";
        let index = entries.intern(name, str::to_owned);
        assert_eq!(
            (index, entries.intern(name, |_| unreachable!())),
            (Some(0), index)
        );
        let all: Vec<_> = entries.take().collect();
        let kept = "lo\u{fffd}ss".to_owned();
        assert_eq!((all, entries.len()), (vec![(kept.clone(), kept)], 0));
    }

    #[test]
    fn names_beyond_the_limit_are_refused_and_known_ones_are_found() {
        let mut entries = KeyCache::default();
        for number in 0..MOST_NAMES {
            assert_eq!(
                entries.intern(number.to_string().as_bytes(), |_| ()),
                Some(number)
            );
        }
        assert_eq!(entries.intern(b"one more", |_| ()), None);
        assert_eq!(
            (entries.intern(b"7", |_| ()), entries.len()),
            (Some(7), MOST_NAMES)
        );
    }

    #[test]
    fn a_name_is_expected_behind_the_one_that_it_followed_last_time() {
        let mut entries = KeyCache::default();
        for name in ["loss", "rare", "lr"] {
            entries.add(name, ());
        }
        let mut next_behind = |first: &str, second: &str| {
            entries.index_of(first).unwrap();
            let expected = entries.entries[entries.last].next;
            assert_eq!(
                entries.index_of_bytes(second.as_bytes()),
                entries.index_of(second)
            );
            entries.entries[expected].name.clone()
        };
        assert_eq!(next_behind("loss", "lr"), "rare");
        assert_eq!(next_behind("loss", "lr"), "lr");
    }
}
