//! A cache of encoded annotations. Events of one track repeat many of them, so the source of an annotation is kept with its
//! bytes, one for each index within an event.

use crate::wire::Block;

/// The number of indices within an event that have a slot.
const PLACES: usize = 16;
/// The length limit of a source in bytes; longer sources are not kept.
const MAX_SOURCE_BYTES: usize = 64;

/// The number of bytes that are compared at once.
const WORD: usize = 16;

/// The annotations that were written last, by their index within an event.
#[derive(Debug)]
pub(super) struct Memo {
    slots: [Slot; PLACES],
    /// The index of the next annotation within the current event.
    place: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    source: [u8; MAX_SOURCE_BYTES],
    /// The length of the source, or 0 if the slot is empty.
    length: usize,
    written: Block,
}

impl Default for Memo {
    fn default() -> Self {
        let empty = Slot {
            source: [0; MAX_SOURCE_BYTES],
            length: 0,
            written: Block::EMPTY,
        };
        Self {
            slots: [empty; PLACES],
            place: 0,
        }
    }
}

impl Memo {
    /// Begins an event.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.place = 0;
    }

    /// Returns the bytes that were written for this source at the next index, if any, and that index for [`Memo::keep`].
    #[inline]
    pub(super) fn next(&mut self, source: &[u8]) -> (Option<Block>, usize) {
        let place = self.place % PLACES;
        self.place += 1;
        let slot = &self.slots[place];
        let same = slot.length == source.len() && slot.length > 0 && slot.begins_with(source);
        (same.then_some(slot.written), place)
    }

    /// Keeps the bytes that were written for a source.
    #[inline]
    pub(super) fn keep(&mut self, place: usize, source: &[u8], written: Block) {
        let slot = &mut self.slots[place];
        slot.length = 0;
        if let Some(room) = slot.source.get_mut(..source.len()) {
            room.copy_from_slice(source);
            slot.length = source.len();
            slot.written = written;
        }
    }
}

impl Slot {
    /// Returns whether the kept source begins with `source`, which has at least one byte. It compares words of sixteen bytes,
    /// the last one first, since sources of one key differ in their values. The last two words may overlap.
    #[inline(always)]
    fn begins_with(&self, source: &[u8]) -> bool {
        let word = |bytes: &[u8], at| {
            bytes
                .get(at..)?
                .first_chunk()
                .map(|chunk| u128::from_le_bytes(*chunk))
        };
        let Some(last) = source.len().checked_sub(WORD) else {
            return self.source.starts_with(source);
        };
        let same = |at| word(&self.source, at) == word(source, at);
        same(last) && (0..last).step_by(WORD).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_output_is_returned_for_its_source_and_position_only() {
        let mut memo = Memo::default();
        let written = Block::varint(7);
        let (found, place) = memo.next(b"source");
        assert_eq!(found, None);
        memo.keep(place, b"source", written);
        assert_eq!(memo.next(b"source").0, None, "another place");
        memo.begin();
        assert_eq!(memo.next(b"source").0, Some(written));
        for other in [&b"sourc"[..], b"sources", b"Source", b""] {
            memo.begin();
            assert_eq!(memo.next(other).0, None);
        }
    }

    #[test]
    fn cache_misses_a_source_that_differs_in_one_byte() {
        for length in 1..=MAX_SOURCE_BYTES {
            let mut memo = Memo::default();
            let source: Vec<u8> = (0..length).map(|place| place as u8).collect();
            memo.keep(0, &source, Block::varint(7));
            assert_eq!(memo.next(&source).0, Some(Block::varint(7)), "{length}");
            for place in 0..length {
                let mut other = source.clone();
                other[place] ^= 1;
                memo.begin();
                assert_eq!(memo.next(&other).0, None, "{place} of {length}");
            }
        }
    }

    #[test]
    fn source_over_the_limit_is_evicted_with_its_output() {
        let mut memo = Memo::default();
        let long = [b'x'; MAX_SOURCE_BYTES + 1];
        memo.keep(0, &long[..MAX_SOURCE_BYTES], Block::varint(1));
        memo.keep(0, &long, Block::varint(2));
        assert_eq!(memo.next(&long).0, None);
        memo.begin();
        assert_eq!(memo.next(&long[..MAX_SOURCE_BYTES]).0, None);
    }
}
