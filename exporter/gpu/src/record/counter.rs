//! Makes counters of the driver monotonic: a wrap after 32 bits is continued, a reset begins a new count.

use pulsetrain_otlp::UnixNanos;

/// The state of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    raw: u64,
    /// The count before the last wrap.
    before: u64,
    start_unix_nanos: UnixNanos,
    time_unix_nanos: UnixNanos,
}

impl Counter {
    /// Creates a counter from its first reading. The times of its earlier count are unknown.
    pub(super) fn new(raw: u64, time_unix_nanos: UnixNanos) -> Self {
        Self {
            raw,
            before: 0,
            start_unix_nanos: time_unix_nanos,
            time_unix_nanos,
        }
    }

    /// Advances the counter to `raw`. A decrease is a wrap if the counter `wraps` and was in the upper half of 32 bits. Every
    /// other decrease is a reset, after which the counter counts from zero.
    pub(super) fn advance(&mut self, raw: u64, wraps: bool, time_unix_nanos: UnixNanos) {
        const SIZE: u64 = 1 << 32;
        if raw < self.raw {
            let in_upper_half = (SIZE / 2..SIZE).contains(&self.raw);
            if wraps && in_upper_half {
                self.before += SIZE;
            } else {
                self.before = 0;
                self.start_unix_nanos = self.time_unix_nanos;
            }
        }
        self.raw = raw;
        self.time_unix_nanos = time_unix_nanos;
    }

    /// Returns the total since the start.
    pub(super) fn total(&self) -> u64 {
        self.before.saturating_add(self.raw)
    }

    /// Returns the start time of the total.
    pub(super) fn start_unix_nanos(&self) -> UnixNanos {
        self.start_unix_nanos
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wrapped_32_bit_counter_continues_its_total() {
        let mut counter = Counter::new(0xffff_fff0, UnixNanos(1));
        counter.advance(0x10, true, UnixNanos(2));
        assert_eq!(counter.total(), 0x1_0000_0010);
        assert_eq!(counter.start_unix_nanos(), UnixNanos(1));
    }

    #[test]
    fn decreasing_counter_is_a_reset_that_starts_at_the_last_reading() {
        let mut counter = Counter::new(5_000, UnixNanos(1));
        counter.advance(6_000, false, UnixNanos(2));
        counter.advance(10, false, UnixNanos(3));
        assert_eq!((counter.total(), counter.start_unix_nanos()), (10, UnixNanos(2)));
    }

    #[test]
    fn drop_from_outside_the_upper_half_of_32_bits_is_a_reset() {
        let mut counter = Counter::new(1_000, UnixNanos(1));
        counter.advance(10, true, UnixNanos(2));
        assert_eq!((counter.total(), counter.start_unix_nanos()), (10, UnixNanos(1)));
        let mut large = Counter::new(1 << 40, UnixNanos(1));
        large.advance(10, true, UnixNanos(2));
        assert_eq!(
            large.total(),
            10,
            "what is larger than 32 bits has not started over after them"
        );
    }

    proptest! {
        #[test]
        fn counter_total_never_decreases_without_a_new_start_time(
            raws in prop::collection::vec(any::<u32>(), 2..50),
            wraps: bool,
        ) {
            let mut counter = Counter::new(u64::from(raws[0]), UnixNanos(1));
            for (raw, time) in raws[1..].iter().zip(2..) {
                let before = counter;
                counter.advance(u64::from(*raw), wraps, UnixNanos(time));
                let same_start = before.start_unix_nanos() == counter.start_unix_nanos();
                let reset_at_first = before.start_unix_nanos() == UnixNanos(1) && time == 2;
                prop_assert!(!same_start || reset_at_first || counter.total() >= before.total());
            }
        }

        #[test]
        fn total_of_a_wrapping_counter_equals_the_sum_of_its_increments(
            steps in prop::collection::vec(0u64..1 << 30, 1..200),
        ) {
            let mut counted = 0u64;
            let mut counter = Counter::new(0, UnixNanos(1));
            for (step, time) in steps.iter().zip(2..) {
                counted += step;
                counter.advance(counted & 0xffff_ffff, true, UnixNanos(time));
                prop_assert_eq!(counter.total(), counted);
            }
        }
    }
}
