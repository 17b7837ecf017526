//! The growth of a rank's cumulative series between points.

use std::collections::HashMap;

use pulsetrain_otlp::UnixNanos;

/// The maximum number of series of one rank. The growth of further ones is unknown.
const MAX_SERIES: usize = 256;

/// The last points of the cumulative series of one rank.
#[derive(Debug, Default)]
pub(crate) struct Growth(HashMap<SeriesKey, Last>);

/// A series: the index of its metric in the assembler's table and a hash of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SeriesKey {
    pub(crate) metric: u16,
    pub(crate) attributes: u64,
}

/// The growth of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Grown {
    /// The growth since its last point.
    By(f64),
    /// The total of its first point, which may include an unknown past.
    First(f64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    count: u64,
    sum: f64,
    start_unix_nanos: UnixNanos,
}

impl Growth {
    /// Returns the growth of a counter.
    pub(crate) fn of_sum(&mut self, key: SeriesKey, sum: f64, start_unix_nanos: UnixNanos) -> Grown {
        let now = Last {
            count: 0,
            sum,
            start_unix_nanos,
        };
        match self.replace(key, now) {
            // A lower value or a later start is a reset, so all of it is new.
            Some(last) if sum < last.sum || start_unix_nanos > last.start_unix_nanos => Grown::By(sum),
            Some(last) => Grown::By(sum - last.sum),
            None => Grown::First(sum),
        }
    }

    /// Returns the mean of the observations of a histogram since its last point, and their number.
    ///
    /// Returns `None` without observations, and for a first point with more than one observation.
    pub(crate) fn of_histogram(
        &mut self,
        key: SeriesKey,
        (count, sum): (u64, f64),
        start_unix_nanos: UnixNanos,
    ) -> Option<f64> {
        let now = Last {
            count,
            sum,
            start_unix_nanos,
        };
        let (before, is_known) = match self.replace(key, now) {
            Some(last) if count < last.count || start_unix_nanos > last.start_unix_nanos => {
                (Last::default(), true)
            }
            Some(last) => (last, true),
            None => (Last::default(), count == 1),
        };
        let observed = count.checked_sub(before.count).filter(|observed| *observed > 0)?;
        let mean = (sum - before.sum) / observed as f64;
        (is_known && mean.is_finite()).then_some(mean)
    }

    fn replace(&mut self, key: SeriesKey, now: Last) -> Option<Last> {
        if let Some(last) = self.0.get_mut(&key) {
            return Some(std::mem::replace(last, now));
        }
        if self.0.len() < MAX_SERIES {
            self.0.insert(key, now);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SeriesKey = SeriesKey {
        metric: 1,
        attributes: 0,
    };

    #[test]
    fn counter_growth_is_measured_between_points_and_restarts_after_a_reset() {
        let mut growth = Growth::default();
        assert_eq!(growth.of_sum(KEY, 100.0, UnixNanos(5)), Grown::First(100.0));
        assert_eq!(growth.of_sum(KEY, 130.0, UnixNanos(5)), Grown::By(30.0));
        assert_eq!(
            growth.of_sum(KEY, 10.0, UnixNanos(5)),
            Grown::By(10.0),
            "a lower value"
        );
        assert_eq!(
            growth.of_sum(KEY, 40.0, UnixNanos(9)),
            Grown::By(40.0),
            "a later start"
        );
    }

    #[test]
    fn histogram_gives_the_mean_of_new_observations() {
        let mut growth = Growth::default();
        assert_eq!(growth.of_histogram(KEY, (1, 0.5), UnixNanos(5)), Some(0.5));
        assert_eq!(
            growth.of_histogram(KEY, (1, 0.5), UnixNanos(5)),
            None,
            "nothing new"
        );
        assert_eq!(growth.of_histogram(KEY, (3, 1.5), UnixNanos(5)), Some(0.5));
        assert_eq!(growth.of_histogram(KEY, (1, 0.25), UnixNanos(9)), Some(0.25));
        let late = SeriesKey { metric: 2, ..KEY };
        assert_eq!(
            growth.of_histogram(late, (40, 8.0), UnixNanos(5)),
            None,
            "seen first in the middle"
        );
        assert_eq!(growth.of_histogram(late, (41, 8.5), UnixNanos(5)), Some(0.5));
    }
}
