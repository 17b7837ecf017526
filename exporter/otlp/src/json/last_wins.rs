//! Duplicate names in one object: the last one counts, as in nearly every JSON reader.
//!
//! Protobuf would merge duplicates, so the earlier ones are removed from the message in one pass when it is complete.

use std::ops::Range;

use crate::wire::Reader;

/// A field with a duplicate name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    /// The field's number.
    pub(super) number: u32,
    /// The offset of its last value in the output.
    pub(super) from: usize,
}

/// Records a duplicate field of the current message, whose entries begin at `mine`.
pub(super) fn record(repeats: &mut Vec<Repeat>, mine: usize, repeat: Repeat) {
    match repeats[mine..]
        .iter_mut()
        .find(|recorded| recorded.number == repeat.number)
    {
        Some(recorded) => *recorded = repeat,
        None => repeats.push(repeat),
    }
}

/// Removes the earlier occurrences of duplicate fields from the message that begins at `start`.
pub(super) fn cut(out: &mut Vec<u8>, start: usize, repeats: &[Repeat]) {
    let mut end = start;
    for kept in kept_ranges(&out[start..], start, repeats) {
        let length = kept.len();
        out.copy_within(kept, end);
        end += length;
    }
    out.truncate(end);
}

/// Returns the ranges that are kept, with adjacent ones merged.
fn kept_ranges(message: &[u8], start: usize, repeats: &[Repeat]) -> Vec<Range<usize>> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let mut reader = Reader::new(message);
    let mut at = start;
    while let Some(Ok(field)) = reader.next() {
        let range = at..start + reader.position();
        at = range.end;
        let is_stale = |repeat: &Repeat| repeat.number == field.number && range.start < repeat.from;
        if repeats.iter().any(is_stale) {
            continue;
        }
        match kept.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => kept.push(range),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_occurrence_of_a_field_is_kept() {
        let mut out = vec![0xff, 0x08, 1, 0x10, 2, 0x08, 3, 0x18, 4];
        cut(
            &mut out,
            1,
            &[Repeat { number: 1, from: 5 }, Repeat { number: 3, from: 9 }],
        );
        assert_eq!(out, [0xff, 0x10, 2, 0x08, 3]);
    }
}
