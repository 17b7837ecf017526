//! Adds distributions with exponential buckets.

use super::value::{Native, Side};

/// The maximum number of buckets of one sign in a sum. Beyond it both halves of each pair are merged, as SDKs do
/// (OpenTelemetry metrics SDK, "Base2 Exponential Bucket Histogram Aggregation").
const MAX_BUCKETS: i64 = 160;

/// The coarsest schema of Prometheus.
const MIN_SCHEMA: i32 = -4;

impl Native {
    /// Adds a delta at the coarser schema of both, or at a coarser one with few buckets. Returns `false` if it cannot be added.
    pub(super) fn add(&mut self, delta: &Self) -> bool {
        if self.zero_threshold.to_bits() != delta.zero_threshold.to_bits() {
            return false;
        }
        let mut schema = self.schema.min(delta.schema);
        loop {
            let (one, other) = (self.at(schema), delta.at(schema));
            let [positive, negative] = [one.0.sum(&other.0), one.1.sum(&other.1)];
            if let (Some(positive), Some(negative)) = (positive, negative) {
                (self.schema, self.positive, self.negative) = (schema, positive, negative);
                break;
            }
            if schema == MIN_SCHEMA {
                return false;
            }
            schema -= 1;
        }
        self.zero_count = self.zero_count.saturating_add(delta.zero_count);
        self.count = self.count.saturating_add(delta.count);
        self.sum = self.sum.zip(delta.sum).map(|(total, more)| total + more);
        true
    }

    /// Returns the buckets at a schema that is not finer.
    fn at(&self, schema: i32) -> (Side, Side) {
        let steps = self.schema.abs_diff(schema);
        (self.positive.merged(steps), self.negative.merged(steps))
    }
}

impl Side {
    /// Merges neighbours: each step halves the number of buckets. Bucket i is in bucket ⌈i / 2⌉ of the next schema.
    fn merged(&self, steps: u32) -> Self {
        let place = |index: i64| ((index - 1) >> steps) + 1;
        let first = place(i64::from(self.first));
        let mut counts: Vec<u64> = Vec::new();
        for (index, count) in (i64::from(self.first)..).zip(&self.counts) {
            let at = (place(index) - first) as usize;
            counts.resize(counts.len().max(at + 1), 0);
            counts[at] = counts[at].saturating_add(*count);
        }
        Self {
            // It is between `self.first` and 1.
            first: first as i32,
            counts: counts.into(),
        }
    }

    /// Returns the sum of two sides of one schema, or `None` if it has too many buckets.
    fn sum(&self, other: &Self) -> Option<Self> {
        let range = |side: &Self| {
            let first = i64::from(side.first);
            (!side.counts.is_empty()).then(|| (first, first + side.counts.len() as i64))
        };
        let (first, end) = match (range(self), range(other)) {
            (Some(one), Some(other)) => (one.0.min(other.0), one.1.max(other.1)),
            (one, other) => one.or(other).unwrap_or_default(),
        };
        if end - first > MAX_BUCKETS {
            return None;
        }
        let mut counts = vec![0_u64; (end - first) as usize];
        for side in [self, other] {
            for (index, count) in (i64::from(side.first)..).zip(&side.counts) {
                let total = &mut counts[(index - first) as usize];
                *total = total.saturating_add(*count);
            }
        }
        Some(Self {
            first: first as i32,
            counts: counts.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a distribution of values above zero.
    fn distribution(schema: i32, values: &[f64]) -> Native {
        let mut native = Native {
            schema,
            zero_threshold: 1e-128,
            zero_count: 0,
            count: values.len() as u64,
            sum: Some(values.iter().sum()),
            positive: Side::default(),
            negative: Side::default(),
        };
        let indexes: Vec<i64> = values.iter().map(|value| index(schema, *value)).collect();
        if let Some(first) = indexes.iter().min() {
            let last = indexes.iter().max().unwrap_or(first);
            let mut counts = vec![0; (last - first + 1) as usize];
            indexes
                .iter()
                .for_each(|index| counts[(index - first) as usize] += 1);
            native.positive = Side {
                first: *first as i32,
                counts: counts.into(),
            };
        }
        native
    }

    /// Returns the bucket of a value: the lowest i with value ≤ 2^(i / 2^schema).
    fn index(schema: i32, value: f64) -> i64 {
        (value.log2() * 2_f64.powi(schema)).ceil() as i64
    }

    proptest! {
        #[test]
        fn sum_of_deltas_is_the_distribution_of_all_values(
            parts in prop::collection::vec((-4..=8_i32, prop::collection::vec(0.001..1e9_f64, 0..40)), 1..6)
        ) {
            // Values at a bound may fall to either side when they are reckoned.
            let parts: Vec<(i32, Vec<f64>)> = parts;
            let mut total = distribution(8, &[]);
            for (schema, values) in &parts {
                prop_assert!(total.add(&distribution(*schema, values)));
            }
            let all: Vec<f64> = parts.iter().flat_map(|(_, values)| values.clone()).collect();
            prop_assert_eq!(total.count, all.len() as u64);
            prop_assert!(total.positive.counts.len() as i64 <= MAX_BUCKETS);
            prop_assert_eq!(total.positive.counts.iter().sum::<u64>(), total.count);
            let expected = distribution(total.schema, &all).positive;
            let nonzero = |side: &Side| -> Vec<(i64, u64)> {
                let counts = (i64::from(side.first)..).zip(side.counts.iter().copied());
                counts.filter(|(_, count)| *count > 0).collect()
            };
            prop_assert_eq!(nonzero(&total.positive), nonzero(&expected));
        }
    }

    #[test]
    fn other_zero_buckets_cannot_be_added() {
        let mut total = distribution(3, &[1.5]);
        let other = Native {
            zero_threshold: 0.5,
            ..distribution(3, &[1.5])
        };
        assert!(!total.add(&other));
        assert_eq!(total, distribution(3, &[1.5]));
    }
}
