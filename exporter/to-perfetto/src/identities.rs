//! An index of spans by their ids, for the lookup of parents.
//!
//! Ids are stored as one hash each. It includes the randomly seeded hash of the trace id, so that no input can cause
//! collisions, and a lookup takes constant time for any input.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The ids of a span, as hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanIds {
    pub(super) trace: u64,
    /// The span id, and that of the parent; 0 if missing.
    pub(super) id: u64,
    pub(super) parent: u64,
}

/// Computes the hashes of ids.
#[derive(Debug, Default)]
pub(super) struct IdHasher {
    hasher: DefaultHashBuilder,
    /// The last trace id and its hash; the next span usually has the same trace id.
    latest: (Vec<u8>, u64),
}

impl IdHasher {
    /// Returns the hash of a trace id.
    pub(super) fn trace(&self, trace_id: &[u8]) -> u64 {
        self.hasher.hash_one(trace_id)
    }

    /// Returns the hashes of a span's ids.
    #[inline]
    pub(super) fn ids(&mut self, trace_id: &[u8], span_id: &[u8], parent_id: &[u8]) -> SpanIds {
        let trace = match &self.latest {
            (id, hash) if id == trace_id && !id.is_empty() => *hash,
            _ => self.next_trace(trace_id),
        };
        SpanIds {
            trace,
            id: id_hash(trace, span_id),
            parent: id_hash(trace, parent_id),
        }
    }

    fn next_trace(&mut self, trace_id: &[u8]) -> u64 {
        let hash = self.trace(trace_id);
        self.latest.0.clear();
        self.latest.0.extend_from_slice(trace_id);
        self.latest.1 = hash;
        hash
    }
}

/// Returns a number for a span's id within its trace, or 0 for an empty id.
#[inline]
pub(super) fn id_hash(trace: u64, span_id: &[u8]) -> u64 {
    let number = match span_id.first_chunk::<8>() {
        Some(id) if span_id.len() == 8 => u64::from_le_bytes(*id),
        _ => span_id
            .iter()
            .fold(0, |all, byte| all << 8 ^ u64::from(*byte) ^ all >> 56),
    };
    if number == 0 {
        return 0;
    }
    // One multiplication mixes both halves.
    let product = u128::from(trace ^ number) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
    ((product >> 64) as u64 ^ product as u64).max(1)
}

/// The indices of spans by their ids. The ids are not in the table but in the list of spans: children are close to their
/// parents there, so that comparisons have good locality.
#[derive(Debug)]
pub(super) struct Identities {
    places: HashTable<u32>,
}

impl Identities {
    pub(super) fn with_capacity(spans: usize) -> Self {
        Self {
            places: HashTable::with_capacity(spans),
        }
    }

    /// Returns the first span with this hash of its ids.
    #[inline]
    pub(super) fn get(&self, id: u64, all: &[SpanIds]) -> Option<u32> {
        self.places
            .find(id, |place| all[*place as usize].id == id)
            .copied()
    }

    /// Adds a span. If a span with the same ids exists, returns its index instead.
    #[inline]
    pub(super) fn add(&mut self, place: u32, all: &[SpanIds]) -> Option<u32> {
        let id = all[place as usize].id;
        let hash = |place: &u32| all[*place as usize].id;
        match self.places.entry(id, |place| hash(place) == id, hash) {
            hashbrown::hash_table::Entry::Occupied(known) => Some(*known.get()),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                vacant.insert(place);
                None
            }
        }
    }

    /// Renumbers the spans: `less` is the number of spans removed before each.
    pub(super) fn renumber(&mut self, less: impl Fn(u32) -> u32) {
        self.places.iter_mut().for_each(|place| *place -= less(*place));
    }
}

/// Returns the digits of a trace id for people: the first eight, or those of its last half if the first half is padding.
pub(super) fn shown_digits(id: &str) -> &str {
    const SHOWN: usize = 8;
    const HALF: usize = 16;
    let digits = match id.split_at_checked(HALF) {
        Some((first, last)) if !last.is_empty() && first.bytes().all(|digit| digit == b'0') => last,
        _ => id,
    };
    &digits[..digits.len().min(SHOWN)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_trace_id_shows_digits_of_its_last_half() {
        for (id, shown) in [
            ("4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f35"),
            ("00000000000000004bf92f3577b34da6", "4bf92f35"),
            ("0000000000000001", "00000000"),
            ("4b", "4b"),
        ] {
            assert_eq!(shown_digits(id), shown);
        }
    }
}
