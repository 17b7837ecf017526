//! Exponential histograms as classic buckets, whose bounds are powers of two.
//!
//! Every power of two is a bound of every exponential histogram, whatever its scale, so the counts are exact.
//! The set of bounds changes only when an observation exceeds all earlier ones, so the buckets stay
//! comparable between scrapes.

use super::super::store::value::{Exemplar, Native, Side};

/// The maximum number of buckets without `+Inf`. Beyond it, only every second, fourth ... power of two is a
/// bound.
const MOST: i32 = 20;

/// A bucket of all observations up to `bound`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) bound: f64,
    /// The cumulative count.
    pub(super) cumulative: u64,
}

/// Returns the buckets of a histogram in rising order, without `+Inf`. There are none without observations.
pub(super) fn buckets(native: &Native) -> Vec<Bucket> {
    let not_positive = native
        .negative
        .counts
        .iter()
        .fold(native.zero_count, |sum, count| sum.saturating_add(*count));
    let zero = Bucket {
        bound: 0.0,
        cumulative: not_positive,
    };
    let positive = positive(native, not_positive);
    let has_zero = not_positive > 0;
    has_zero.then_some(zero).into_iter().chain(positive).collect()
}

/// Returns the newest exemplar in the bucket between two bounds.
pub(super) fn exemplar(exemplars: &[Exemplar], before: f64, bound: f64) -> Option<&Exemplar> {
    let inside = exemplars.iter();
    let inside = inside.filter(|exemplar| exemplar.value > before && exemplar.value <= bound);
    inside.max_by_key(|exemplar| exemplar.unix_nanos)
}

/// Returns the buckets above zero, starting with the bound below all observations.
fn positive(native: &Native, below: u64) -> impl Iterator<Item = Bucket> {
    let grid = Grid::new(&native.positive, native.schema);
    let mut cumulative = below;
    let mut counts = (native.positive.first..).zip(&native.positive.counts).peekable();
    grid.into_iter()
        .flat_map(Grid::exponents)
        .filter_map(move |exponent| {
            while let Some((_, count)) =
                counts.next_if(|(index, _)| reaches(*index, native.schema) <= exponent)
            {
                cumulative = cumulative.saturating_add(*count);
            }
            let bound = f64::from(exponent).exp2();
            // The last bound is +Inf, and the first is zero.
            (bound.is_finite() && bound > 0.0).then_some(Bucket { bound, cumulative })
        })
}

/// The bounds: powers of two with exponents from `first` to `last`, `step` apart.
#[derive(Clone, Copy)]
struct Grid {
    first: i32,
    last: i32,
    step: i32,
}

impl Grid {
    /// Returns the bounds around all buckets that are not empty, or `None`.
    fn new(side: &Side, schema: i32) -> Option<Self> {
        let filled = |count: &u64| *count > 0;
        let lowest = side.counts.iter().position(filled)?;
        let highest = side.counts.iter().rposition(filled)?;
        let index = |place: usize| {
            side.first
                .saturating_add(i32::try_from(place).unwrap_or(i32::MAX))
        };
        // The bound below the lowest bucket is where that bucket starts.
        let from = begins(index(lowest), schema);
        let to = reaches(index(highest), schema);
        let mut step = 1 << (-schema).max(0);
        loop {
            let grid = Self {
                first: from.div_euclid(step) * step,
                last: -(-to).div_euclid(step) * step,
                step,
            };
            if (grid.last - grid.first) / step < MOST {
                return Some(grid);
            }
            step *= 2;
        }
    }

    fn exponents(self) -> impl Iterator<Item = i32> {
        (self.first..=self.last).step_by(usize::try_from(self.step).unwrap_or(1))
    }
}

/// Returns the exponent of the lowest power of two that is an upper bound of the bucket `index`.
fn reaches(index: i32, schema: i32) -> i32 {
    if schema >= 0 {
        (index >> schema).saturating_add(i32::from(index & ((1 << schema) - 1) != 0))
    } else {
        index
            .saturating_mul(1 << -schema)
            .clamp(-MAX_EXPONENT, MAX_EXPONENT)
    }
}

/// Returns the exponent of the highest power of two that is a lower bound of the bucket `index`.
fn begins(index: i32, schema: i32) -> i32 {
    let below = index.saturating_sub(1);
    if schema >= 0 {
        below >> schema
    } else {
        below
            .saturating_mul(1 << -schema)
            .clamp(-MAX_EXPONENT, MAX_EXPONENT)
    }
}

/// Beyond the exponent of any number, and far from the limits of the type.
const MAX_EXPONENT: i32 = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the histogram of these values in buckets of that schema.
    fn native(values: &[f64], schema: i32) -> Native {
        let index = |value: f64| (value.abs().log2() * f64::from(schema).exp2()).ceil() as i32;
        let side = |values: Vec<f64>| {
            let indices: Vec<i32> = values.into_iter().map(index).collect();
            let first = indices.iter().min().copied().unwrap_or_default();
            let last = indices.iter().max().copied().unwrap_or_default();
            let count = |wanted: i32| indices.iter().filter(|index| **index == wanted).count() as u64;
            Side {
                first,
                counts: (first..=last).map(count).collect(),
            }
        };
        let (negative, rest): (Vec<f64>, Vec<f64>) = values.iter().partition(|value| **value < 0.0);
        let (zero, positive): (Vec<f64>, Vec<f64>) = rest.into_iter().partition(|value| *value == 0.0);
        Native {
            schema,
            zero_threshold: 1e-128,
            zero_count: zero.len() as u64,
            count: values.len() as u64,
            sum: None,
            positive: side(positive),
            negative: side(negative),
        }
    }

    fn shown(values: &[f64], schema: i32) -> Vec<(f64, u64)> {
        let buckets = buckets(&native(values, schema));
        buckets
            .iter()
            .map(|bucket| (bucket.bound, bucket.cumulative))
            .collect()
    }

    #[test]
    fn classic_bounds_are_the_powers_of_two_around_the_observations() {
        assert_eq!(
            shown(&[0.6, 0.7, 1.5, 3.0], 8),
            [(0.5, 0), (1.0, 2), (2.0, 3), (4.0, 4)]
        );
        assert_eq!(shown(&[1.0], 3), [(0.5, 0), (1.0, 1)]);
        assert_eq!(shown(&[], 3), []);
    }

    #[test]
    fn observations_up_to_zero_are_in_the_zero_bucket() {
        assert_eq!(shown(&[-2.0, 0.0, 0.0, 3.0], 2), [(0.0, 3), (2.0, 3), (4.0, 4)]);
    }

    #[test]
    fn wide_range_uses_every_other_power_of_two() {
        let bounds: Vec<f64> = shown(&[1e-6, 60.0], 0).iter().map(|bucket| bucket.0).collect();
        assert!(bounds.len() <= 20, "{bounds:?}");
        assert!(
            bounds.windows(2).all(|pair| pair[1] == 4.0 * pair[0]),
            "{bounds:?}"
        );
        assert_eq!(shown(&[5.0, 5000.0], -4), [(1.0, 0), (65536.0, 2)]);
    }

    proptest! {
        #[test]
        fn every_bucket_counts_observations_up_to_its_bound(
            values in prop::collection::vec(prop_oneof![Just(0.0), 1e-9..1e9, 0.1..10.0, -1e3..-1e-3], 0..60),
            schema in -4..=8,
        ) {
            let buckets = buckets(&native(&values, schema));
            prop_assert!(buckets.len() <= MOST as usize + 1);
            prop_assert!(buckets.windows(2).all(|pair| pair[0].bound < pair[1].bound));
            for bucket in &buckets {
                let below = values.iter().filter(|value| **value <= bucket.bound).count() as u64;
                prop_assert_eq!(bucket.cumulative, below, "{:?}", bucket);
            }
            if let Some(last) = buckets.last() {
                prop_assert_eq!(last.cumulative, values.len() as u64);
            }
        }

        /// A bound disappears only when the range grows. The remaining bounds are among the earlier ones.
        #[test]
        fn additional_observation_adds_no_bound_within_the_previous_range(
            values in prop::collection::vec(1e-9..1e9, 1..40), more in 1e-9..1e9, schema in 0..=8,
        ) {
            let bounds = |values: &[f64]| {
                shown(values, schema).into_iter().map(|bucket| bucket.0).collect::<Vec<_>>()
            };
            let before = bounds(&values);
            let after = bounds(&[values.as_slice(), &[more]].concat());
            let inside = |bound: &&f64| **bound >= before[0] && **bound <= before[before.len() - 1];
            prop_assert!(after.iter().filter(inside).all(|bound| before.contains(bound)));
        }
    }
}
