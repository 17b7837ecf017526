//! Annotations that were written before: events of one track repeat many of them, so the value of an annotation is
//! kept with its bytes, one for each place within an event.

use crate::wire::Block;

/// How many places within an event have an annotation kept.
const PLACES: usize = 16;
/// A source longer than this is not kept.
const LONGEST: usize = 64;

/// How many bytes are compared at once.
const WORD: usize = 16;

/// What was written last in each place of an event.
#[derive(Debug)]
pub(super) struct Memo {
    slots: [Slot; PLACES],
    /// The place within the event that is being written.
    place: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    source: [u8; LONGEST],
    /// 0 where nothing is kept.
    length: usize,
    written: Block,
}

impl Default for Memo {
    fn default() -> Self {
        let empty = Slot {
            source: [0; LONGEST],
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

    /// What was written for this source in this place, and the place, for [`Memo::keep`].
    #[inline]
    pub(super) fn next(&mut self, source: &[u8]) -> (Option<Block>, usize) {
        let place = self.place % PLACES;
        self.place += 1;
        let slot = &self.slots[place];
        let same = slot.length == source.len() && slot.length > 0 && slot.begins_with(source);
        (same.then_some(slot.written), place)
    }

    /// Keeps what was written for a source.
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
    /// Whether what is kept begins with these bytes, at least one: compared sixteen at a time. The last sixteen are first, and
    /// some of them are compared twice: sources of one key differ in their values.
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
    fn a_source_of_any_length_that_differs_in_one_byte_is_another() {
        for length in 1..=LONGEST {
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
        let long = [b'x'; LONGEST + 1];
        memo.keep(0, &long[..LONGEST], Block::varint(1));
        memo.keep(0, &long, Block::varint(2));
        assert_eq!(memo.next(&long).0, None);
        memo.begin();
        assert_eq!(memo.next(&long[..LONGEST]).0, None);
    }
}
