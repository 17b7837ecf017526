//! Values by key, in the order in which the keys first occurred.

use std::borrow::Cow;

use indexmap::IndexMap;

/// The limit for the keys of one input. An input with more keys uses changing values as keys.
pub const MAX_NAMES: usize = 1 << 14;

/// A map from key to value, in which each key has an index.
#[derive(Debug)]
pub struct KeyCache<T>(IndexMap<String, T, foldhash::fast::RandomState>);

impl<T> Default for KeyCache<T> {
    fn default() -> Self {
        Self(IndexMap::default())
    }
}

impl<T> KeyCache<T> {
    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the index of a key, or `None`.
    pub fn index_of(&self, key: &str) -> Option<usize> {
        self.0.get_index_of(key)
    }

    /// Returns the index of the key with these bytes, or `None`.
    pub fn index_of_bytes(&self, key: &[u8]) -> Option<usize> {
        self.index_of(&text(key))
    }

    /// Returns the index of a key, and adds the key with `new` if it is missing. Returns `None` for a new key if there are
    /// [`MAX_NAMES`]. Invalid UTF-8 in a key is replaced.
    pub fn intern(&mut self, key: &[u8], new: impl FnOnce(&str) -> T) -> Option<usize> {
        let key = text(key);
        if let Some(index) = self.index_of(&key) {
            return Some(index);
        }
        let has_room = self.len() < MAX_NAMES;
        has_room.then(|| {
            let value = new(&key);
            self.add(&key, value)
        })
    }

    /// Adds a key, or replaces its value, and returns its index.
    pub fn add(&mut self, key: &str, value: T) -> usize {
        self.0.insert_full(key.to_owned(), value).0
    }

    /// Returns the value at an index.
    ///
    /// # Panics
    /// Panics if the map has no such index.
    pub fn at(&mut self, index: usize) -> &mut T {
        &mut self.0[index]
    }

    /// Returns the key and the value at an index.
    ///
    /// # Panics
    /// Panics if the map has no such index.
    pub fn key_and_value(&mut self, index: usize) -> (&str, &mut T) {
        let (key, value) = self
            .0
            .get_index_mut(index)
            .expect("invariant: the index is of this map");
        (key, value)
    }

    /// Iterates over keys and values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        self.0.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns whether the map contains a key.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Removes all keys and returns them with their values.
    pub fn take(&mut self) -> impl Iterator<Item = (String, T)> + use<T> {
        std::mem::take(&mut self.0).into_iter()
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Decodes a key. Validation first is faster, and nearly always succeeds.
fn text(key: &[u8]) -> Cow<'_, str> {
    str::from_utf8(key).map_or_else(|_| String::from_utf8_lossy(key), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_invalid_utf8_has_one_index() {
        let mut keys = KeyCache::default();
        let index = keys.intern(b"lo\xffss", str::to_owned);
        assert_eq!(
            (index, keys.intern(b"lo\xffss", |_| unreachable!())),
            (Some(0), index)
        );
        assert_eq!(
            keys.take().next(),
            Some(("lo\u{fffd}ss".to_owned(), "lo\u{fffd}ss".to_owned()))
        );
    }

    #[test]
    fn keys_beyond_the_limit_are_refused_and_known_ones_are_found() {
        let mut keys = KeyCache::default();
        for number in 0..MAX_NAMES {
            assert_eq!(keys.intern(number.to_string().as_bytes(), |_| ()), Some(number));
        }
        assert_eq!(keys.intern(b"one more", |_| ()), None);
        assert_eq!((keys.intern(b"7", |_| ()), keys.len()), (Some(7), MAX_NAMES));
    }
}
