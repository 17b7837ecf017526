//! Interning: a string is written once per sequence and referred to by a small number afterwards.
//!
//! Strings that are new to the reader go into `news`, the body of an `InternedData` message.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};
use rustc_hash::FxHasher;

use super::memo::Memo;
use crate::{field::interned, wire::Buffer};

/// The length limit for interning. Longer text hardly ever repeats, and would only fill the viewer's memory.
const MAX_TEXT_BYTES: usize = 256;
/// The size in bytes at which a string table is full and its sequence is reset.
const FULL_BYTES: usize = 1 << 20;
/// The number of slots for values that were seen once.
const SEEN: usize = 4096;

/// The strings of one sequence, in the four kinds that Perfetto numbers separately.
#[derive(Debug, Default)]
pub(super) struct Strings {
    categories: Table,
    event_names: Table,
    annotation_names: Table,
    annotation_strings: Table,
    /// The encoded annotations, by their sources.
    pub(super) memo: Memo,
}

impl Strings {
    /// Begins an event.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.memo.begin();
    }

    #[inline]
    pub(super) fn category(&mut self, text: &[u8], news: &mut Buffer) -> u64 {
        number(&mut self.categories, interned::CATEGORIES, text, news)
    }

    /// Returns the number of an event's name, or `None` if the name is too long to be interned.
    #[inline]
    pub(super) fn event_name(&mut self, text: &[u8], news: &mut Buffer) -> Option<u64> {
        (text.len() <= MAX_TEXT_BYTES)
            .then(|| number(&mut self.event_names, interned::EVENT_NAMES, text, news))
    }

    #[inline]
    pub(super) fn annotation_name(&mut self, text: &[u8], news: &mut Buffer) -> u64 {
        number(&mut self.annotation_names, interned::ANNOTATION_NAMES, text, news)
    }

    /// Returns the number of an annotation's text if the sequence had the text before. Text that never repeats is thus not
    /// interned.
    #[inline]
    pub(super) fn annotation_text(
        &mut self,
        text: &[u8],
        seen: &mut RecentValues,
        news: &mut Buffer,
    ) -> Option<u64> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let table = &mut self.annotation_strings;
        if let Some(number) = table.guess(text) {
            return Some(number);
        }
        let hash = table.hash(text);
        if let Some(number) = table.find(hash, text) {
            return Some(number);
        }
        let again = seen.mark(text);
        again.then(|| add(table, interned::ANNOTATION_STRINGS, hash, text, news))
    }

    /// Returns whether a table is full, so that the sequence should be reset.
    pub(super) fn is_full(&self) -> bool {
        let tables = [
            &self.categories,
            &self.event_names,
            &self.annotation_names,
            &self.annotation_strings,
        ];
        tables.iter().any(|table| table.text.len() >= FULL_BYTES)
    }
}

#[inline]
fn number(table: &mut Table, field: u32, text: &[u8], news: &mut Buffer) -> u64 {
    if let Some(number) = table.guess(text) {
        return number;
    }
    let hash = table.hash(text);
    match table.find(hash, text) {
        Some(number) => number,
        None => add(table, field, hash, text, news),
    }
}

fn add(table: &mut Table, field: u32, hash: u64, text: &[u8], news: &mut Buffer) -> u64 {
    let number = table.add(hash, text);
    news.message(field, |entry| {
        entry.uint(interned::ENTRY_IID, number);
        entry.delimited(interned::ENTRY_TEXT, text);
    });
    number
}

/// Strings of one kind, numbered from 1 (Perfetto does not use 0). Their text is in one buffer.
///
/// Events of one kind have the same strings in the same order. Each string therefore keeps the one that followed it the last
/// time, which is compared before anything is hashed. The hash has a random seed, so that no input can cause collisions; the
/// numbers of strings do not depend on the hash.
#[derive(Debug, Default)]
struct Table {
    /// The indices of strings in `entries`.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    entries: Vec<Entry>,
    text: Vec<u8>,
    /// The index of the last string that was looked up, and of the one that is expected next.
    latest: u32,
    expected: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    start: u32,
    length: u32,
    edges: Edges,
    /// The index of the string that followed this one the last time.
    follower: u32,
}

/// The first and the last bytes of a string, which contain all of it up to 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edges(u128, u128);

impl Edges {
    const MOST: usize = 32;

    #[inline(always)]
    fn new(text: &[u8]) -> Self {
        if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            return Self(u128::from_le_bytes(*first), u128::from_le_bytes(*last));
        }
        let (first, last) = match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => Self::of_short(text),
        };
        Self(first.into(), last.into())
    }

    /// The same for less than eight bytes.
    #[inline(always)]
    fn of_short(text: &[u8]) -> (u64, u64) {
        if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            return (
                u32::from_le_bytes(*first).into(),
                u32::from_le_bytes(*last).into(),
            );
        }
        (text.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 0)
    }
}

impl Table {
    /// Returns the number of the string that is expected next, if `text` is that string.
    #[inline]
    fn guess(&mut self, text: &[u8]) -> Option<u64> {
        let place = self.expected;
        let entry = self.entries.get(place as usize)?;
        if entry.length as usize != text.len()
            || entry.edges != Edges::new(text)
            || text.len() > Edges::MOST && entry.text(&self.text) != text
        {
            return None;
        }
        self.latest = place;
        self.expected = entry.follower;
        Some(u64::from(place) + 1)
    }

    fn hash(&self, text: &[u8]) -> u64 {
        self.hasher.hash_one(text)
    }

    fn find(&mut self, hash: u64, text: &[u8]) -> Option<u64> {
        let same = |place: &u32| {
            let entry = &self.entries[*place as usize];
            entry.hash == hash && entry.text(&self.text) == text
        };
        let place = *self.index.find(hash, same)?;
        Some(self.follow(place))
    }

    fn add(&mut self, hash: u64, text: &[u8]) -> u64 {
        let place = self.entries.len() as u32;
        self.entries.push(Entry {
            hash,
            start: self.text.len() as u32,
            length: text.len() as u32,
            edges: Edges::new(text),
            follower: place,
        });
        self.text.extend_from_slice(text);
        let entries = &self.entries;
        self.index
            .insert_unique(hash, place, |place| entries[*place as usize].hash);
        self.follow(place)
    }

    /// Sets the successor of the latest string, and returns the number of the new latest one.
    fn follow(&mut self, place: u32) -> u64 {
        self.entries[self.latest as usize].follower = place;
        self.latest = place;
        self.expected = self.entries[place as usize].follower;
        u64::from(place) + 1
    }
}

impl Entry {
    #[inline]
    fn text<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        &all[self.start as usize..(self.start + self.length) as usize]
    }
}

/// The hashes of recent values and their sequences, each in the slot that its hash selects. The hash has no random seed, so
/// that the trace is the same in every run. Values that collide are only written more often.
#[derive(Debug, Default)]
pub(super) struct RecentValues {
    /// The current sequence. It is part of the hash: a value from another sequence, such as a request id, does not count as a
    /// repetition.
    pub(super) sequence: u32,
    hashes: Vec<u64>,
}

impl RecentValues {
    /// Records a value and returns whether it was recorded already.
    fn mark(&mut self, text: &[u8]) -> bool {
        let mut hasher = FxHasher::default();
        hasher.write_u32(self.sequence);
        hasher.write(text);
        let hash = hasher.finish();
        if self.hashes.is_empty() {
            self.hashes.resize(SEEN, 0);
        }
        let place = (hash >> 40) as usize % SEEN;
        std::mem::replace(&mut self.hashes[place], hash) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_interned_and_written_once() {
        let (mut strings, mut news) = (Strings::default(), Buffer::default());
        assert_eq!(strings.event_name(b"forward", &mut news), Some(1));
        assert_eq!(strings.event_name(b"backward", &mut news), Some(2));
        assert_eq!(strings.event_name(b"forward", &mut news), Some(1));
        assert_eq!(strings.annotation_name(b"forward", &mut news), 1);
        assert_eq!(
            news.as_slice(),
            b"\x12\x0b\x08\x01\x12\x07forward\x12\x0c\x08\x02\x12\x08backward\x1a\x0b\x08\x01\x12\x07forward"
        );
    }

    #[test]
    fn names_keep_their_ids_in_any_order() {
        let (mut strings, mut news) = (Strings::default(), Buffer::default());
        let long = [
            "x".repeat(33),
            "x".repeat(16) + "y" + &"x".repeat(16),
            "x".repeat(32),
        ];
        let short = ["", "a", "b", "ab", "abcd", "abcdabcd", "abcdXabcd", "ab\0"];
        let texts: Vec<&[u8]> = short
            .iter()
            .map(|text| text.as_bytes())
            .chain(long.iter().map(|text| text.as_bytes()))
            .collect();
        let numbers: Vec<u64> = texts
            .iter()
            .map(|text| strings.annotation_name(text, &mut news))
            .collect();
        assert!(numbers.iter().copied().eq(1..=11));
        let length = news.len();
        for step in [1, 2, 3, 4, 1, 4, 2] {
            for place in (0..40).map(|count| count * step % texts.len()) {
                assert_eq!(strings.annotation_name(texts[place], &mut news), numbers[place]);
            }
        }
        assert_eq!(news.len(), length, "nothing is written twice");
    }

    #[test]
    fn value_is_interned_at_its_second_use() {
        let (mut strings, mut news) = (Strings::default(), Buffer::default());
        let mut seen = RecentValues::default();
        let numbers = [b"bf16"; 3].map(|text| strings.annotation_text(text, &mut seen, &mut news));
        assert_eq!(numbers, [None, Some(1), Some(1)]);
        let long = [b'x'; MAX_TEXT_BYTES + 1];
        assert_eq!(strings.annotation_text(&long, &mut seen, &mut news), None);
    }

    #[test]
    fn value_that_each_sequence_has_once_is_not_interned() {
        let (mut strings, mut news) = (Strings::default(), Buffer::default());
        let mut seen = RecentValues::default();
        for sequence in 1..=8 {
            seen.sequence = sequence;
            assert_eq!(strings.annotation_text(b"4f1a09c2", &mut seen, &mut news), None);
        }
        assert_eq!(news.len(), 0);
    }
}
