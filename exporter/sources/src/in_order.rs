//! Something for each name of a writer. Writers repeat their names in the same order, so the next one is looked for where it
//! is expected before it is looked for everywhere.

use std::collections::HashMap;

/// Entries by name, in the order in which they came first.
#[derive(Debug)]
pub(crate) struct InOrder<T> {
    entries: Vec<(String, T)>,
    places: HashMap<String, usize>,
    expected: usize,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            places: HashMap::new(),
            expected: 0,
        }
    }
}

impl<T> InOrder<T> {
    /// The number of names.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the entry of a name is, if there is one.
    #[inline]
    pub(crate) fn place(&mut self, name: &str) -> Option<usize> {
        let place = match self.entries.get(self.expected) {
            Some((next, _)) if next == name => self.expected,
            _ => *self.places.get(name)?,
        };
        self.expected = if place + 1 < self.entries.len() {
            place + 1
        } else {
            0
        };
        Some(place)
    }

    /// Adds the entry of a name that has none, and says where it is.
    pub(crate) fn add(&mut self, name: &str, entry: T) -> usize {
        let place = self.entries.len();
        self.entries.push((name.to_owned(), entry));
        self.places.insert(name.to_owned(), place);
        // The first of them comes again.
        self.expected = 0;
        place
    }

    /// The entry at a place.
    #[inline]
    pub(crate) fn at(&mut self, place: usize) -> &mut T {
        &mut self.entries[place].1
    }

    /// The name and the entry at a place.
    #[inline]
    pub(crate) fn named_at(&mut self, place: usize) -> (&str, &mut T) {
        let (name, entry) = &mut self.entries[place];
        (name, entry)
    }

    /// Whether there is an entry of a name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.expected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_their_order_and_out_of_it() {
        let mut entries = InOrder::default();
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(entries.place(name), None);
            assert_eq!(entries.add(name, number), number);
        }
        for name in ["a", "b", "c", "a", "c", "b", "b", "a"] {
            let place = entries.place(name).unwrap();
            assert_eq!(entries.named_at(place).0, name);
        }
        assert_eq!(
            (entries.place("d"), entries.contains("c"), entries.len()),
            (None, true, 3)
        );
        entries.clear();
        assert_eq!((entries.place("a"), entries.len()), (None, 0));
    }
}
