//! Interning: a string is written once on a sequence and named by a small number from then on.
//!
//! What the reader has yet to be told goes into `news`, the body of an `InternedData` message.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

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
    seen: Seen,
}

impl Strings {
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

    /// The number of an annotation's text, if it came before: text that never comes again is then not kept.
    #[inline]
    pub(super) fn annotation_text(&mut self, text: &[u8], news: &mut Buffer) -> Option<u64> {
        if text.len() > LONGEST {
            return None;
        }
        let hash = hash(text);
        let table = &mut self.annotation_strings;
        if let Some(number) = table.find(hash, text) {
            return Some(number);
        }
        let again = self.seen.mark(hash);
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
    let hash = hash(text);
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

#[inline]
fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

/// Strings of one kind, numbered from 1 (0 is no number in Perfetto); all text lies in one piece of memory.
#[derive(Debug, Default)]
struct Table {
    entries: HashTable<Entry>,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    start: u32,
    length: u32,
    number: u32,
}

impl Table {
    #[inline]
    fn find(&self, hash: u64, text: &[u8]) -> Option<u64> {
        let same = |entry: &Entry| entry.hash == hash && entry.text(&self.text) == text;
        self.entries.find(hash, same).map(|entry| u64::from(entry.number))
    }

    fn add(&mut self, hash: u64, text: &[u8]) -> u64 {
        let entry = Entry {
            hash,
            start: self.text.len() as u32,
            length: text.len() as u32,
            number: self.entries.len() as u32 + 1,
        };
        self.text.extend_from_slice(text);
        self.entries.insert_unique(hash, entry, |entry| entry.hash);
        u64::from(entry.number)
    }
}

impl Entry {
    #[inline]
    fn text<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        &all[self.start as usize..(self.start + self.length) as usize]
    }
}

/// The hashes of values that came lately, each in the one place that its hash gives it.
#[derive(Debug, Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// Remembers a value and says whether it was remembered already.
    #[inline]
    fn mark(&mut self, hash: u64) -> bool {
        if self.0.is_empty() {
            self.0.resize(SEEN, 0);
        }
        let place = (hash >> 40) as usize % SEEN;
        std::mem::replace(&mut self.0[place], hash) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_numbered_once_and_told_once() {
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
    fn a_value_is_numbered_when_it_comes_again() {
        let (mut strings, mut news) = (Strings::default(), Buffer::default());
        let numbers = [b"bf16"; 3].map(|text| strings.annotation_text(text, &mut news));
        assert_eq!(numbers, [None, Some(1), Some(1)]);
        assert_eq!(strings.annotation_text(&[b'x'; LONGEST + 1], &mut news), None);
    }
}
