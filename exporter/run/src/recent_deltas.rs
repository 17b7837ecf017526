//! Detects deltas that are delivered twice.

use xxhash_rust::xxh3::xxh3_64;

use crate::SeriesPoint;

/// The number of deltas that are compared with a new one. A client that repeats a request after a lost answer repeats the newest
/// deltas of a series; late deltas that are new must still count, so the time alone does not decide.
const RECENT: usize = 16;

/// The hashes of the newest deltas of one series, without memory of its own until the first delta.
#[derive(Clone, Debug, Default)]
pub struct RecentDeltas(Option<Box<Ring>>);

#[derive(Clone, Debug, Default)]
struct Ring {
    hashes: [u64; RECENT],
    next: usize,
}

impl RecentDeltas {
    /// Returns the memory of its own.
    pub fn heap_bytes(&self) -> usize {
        self.0.as_deref().map_or(0, size_of_val)
    }

    /// Records a delta. Returns `false` if a recent one has its start, its time and its value: it was delivered twice.
    ///
    /// A delta without a time is always new.
    pub fn record(&mut self, delta: &SeriesPoint) -> bool {
        if !delta.time.is_known() {
            return true;
        }
        let hash = hash(delta);
        let ring = self.0.get_or_insert_default();
        if ring.hashes.contains(&hash) {
            return false;
        }
        ring.hashes[ring.next] = hash;
        ring.next = (ring.next + 1) % RECENT;
        true
    }
}

fn hash(delta: &SeriesPoint) -> u64 {
    let words = [
        delta.start.0,
        delta.time.0,
        delta.count.unwrap_or_default(),
        delta.sum.to_bits(),
    ];
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::UnixNanos;

    use super::*;

    fn delta(time: u64, sum: f64) -> SeriesPoint {
        SeriesPoint {
            start: UnixNanos(time.saturating_sub(10)),
            time: UnixNanos(time),
            is_delta: true,
            count: None,
            sum,
        }
    }

    #[test]
    fn repeated_request_counts_once_and_a_late_delta_counts() {
        let mut recent = RecentDeltas::default();
        let request = [10, 20, 40].map(|time| delta(time, 1.0));
        assert_eq!(request.map(|delta| recent.record(&delta)), [true; 3]);
        assert_eq!(request.map(|delta| recent.record(&delta)), [false; 3]);
        assert!(recent.record(&delta(30, 1.0)), "late, but new");
        assert!(recent.record(&delta(40, 2.0)), "another value");
    }

    #[test]
    fn delta_without_a_time_is_new() {
        let mut recent = RecentDeltas::default();
        assert!(recent.record(&delta(0, 1.0)) && recent.record(&delta(0, 1.0)));
    }
}
