//! Interning: a string is written once on a sequence and named by a small number from then on.
//!
//! Strings that are new to the reader go into `news`, the body of an `InternedData` message.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};
use rustc_hash::FxHasher;

use super::memo::Memo;
use crate::{field::interned, wire::Buffer};

/// Text longer than this is never interned: it hardly comes again, and would fill the viewer's memory for nothing.
const LONGEST: usize = 256;
/// How much text one table holds before its sequence starts afresh.
const FULL_BYTES: usize = 1 << 20;
/// How many values are remembered as seen once.
const SEEN: usize = 4096;

/// The strings of one sequence, in the four kinds that Perfetto numbers apart.
#[derive(Debug, Default)]
pub(super) struct Strings {
    categories: Table,
    event_names: Table,
    annotation_names: Table,
    annotation_strings: Table,
    /// What was made of them.
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

    /// The number of an event's name; none where the name is too long to be worth it.
    #[inline]
    pub(super) fn event_name(&mut self, text: &[u8], news: &mut Buffer) -> Option<u64> {
        (text.len() <= LONGEST).then(|| number(&mut self.event_names, interned::EVENT_NAMES, text, news))
    }

    #[inline]
    pub(super) fn annotation_name(&mut self, text: &[u8], news: &mut Buffer) -> u64 {
        number(&mut self.annotation_names, interned::ANNOTATION_NAMES, text, news)
    }

    /// The number of an annotation's text if the sequence had it before: text that never comes again is then not kept.
    #[inline]
    pub(super) fn annotation_text(
        &mut self,
        text: &[u8],
        seen: &mut RecentValues,
        news: &mut Buffer,
    ) -> Option<u64> {
        if text.len() > LONGEST {
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

    /// Whether the sequence is better off to start afresh.
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

/// Strings of one kind, numbered from 1 (0 is no number in Perfetto); all text lies in one piece of memory.
///
/// Events of one kind have the same strings in the same order, so each string remembers the one that followed it the last time:
/// that one is compared before anything is hashed. The hash has a random seed, so that no input can make its strings fall
/// together; which string has which number does not depend on it.
#[derive(Debug, Default)]
struct Table {
    /// The places of strings in `entries`.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    entries: Vec<Entry>,
    text: Vec<u8>,
    /// The place of the string that was asked for last, and of the one that is expected next.
    latest: u32,
    expected: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    start: u32,
    length: u32,
    edges: Edges,
    /// The place of the string that followed this one the last time.
    follower: u32,
}

/// The first and the last bytes of a string: of up to 32 bytes they are all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edges(u128, u128);

impl Edges {
    const MOST: usize = 32;

    #[inline(always)]
    fn of(text: &[u8]) -> Self {
        if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            return Self(u128::from_le_bytes(*first), u128::from_le_bytes(*last));
        }
        let (first, last) = match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => Self::of_short(text),
        };
        Self(first.into(), last.into())
    }

    /// As `of`, for less than eight bytes.
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
    /// The number of the string that is expected next, if this is it.
    #[inline]
    fn guess(&mut self, text: &[u8]) -> Option<u64> {
        let place = self.expected;
        let entry = self.entries.get(place as usize)?;
        if entry.length as usize != text.len()
            || entry.edges != Edges::of(text)
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
            edges: Edges::of(text),
            follower: place,
        });
        self.text.extend_from_slice(text);
        let entries = &self.entries;
        self.index
            .insert_unique(hash, place, |place| entries[*place as usize].hash);
        self.follow(place)
    }

    /// Remembers what followed the latest string, and returns its number.
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

/// The hashes of values that came lately and of their sequences, each in the one place that its hash gives it. The hash is the
/// same in every run, as the trace is to be: values that collide are only written more often.
#[derive(Debug, Default)]
pub(super) struct RecentValues {
    /// The sequence of the values that come. A value that others have, such as the id of a request, pays for no number here.
    pub(super) sequence: u32,
    hashes: Vec<u64>,
}

impl RecentValues {
    /// Remembers a value and returns whether it was remembered already.
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
        let long = [b'x'; LONGEST + 1];
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
