//! Estimates quantiles of histograms as Prometheus does: by linear interpolation within buckets. The smallest and the largest
//! value narrow the buckets if they are known.

use pulsetrain_otlp::{
    WireError,
    view::{Buckets, ExponentialHistogramPoint, HistogramPoint},
};

/// The number of values in a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) count: u64,
}

/// The data of a distribution besides its buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The smallest value, or negative infinity.
    min: f64,
    /// The largest value, or infinity.
    max: f64,
    mean: Option<f64>,
}

impl Limits {
    /// Returns the limits of a distribution; unknown or invalid ones are infinite.
    pub(super) fn new(count: u64, sum: Option<f64>, min: Option<f64>, max: Option<f64>) -> Self {
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let mean = finite(sum.map(|sum| sum / count as f64));
        // The sum of one value is the value.
        let only = mean.filter(|_| count == 1);
        let min = only.or(finite(min)).unwrap_or(f64::NEG_INFINITY);
        let max = only.or(finite(max)).unwrap_or(f64::INFINITY);
        let (min, max) = if min <= max {
            (min, max)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        Self { min, max, mean }
    }

    fn clamp(self, value: f64) -> f64 {
        value.max(self.min).min(self.max)
    }

    /// Returns the value at a share of a bucket's values, `None` if nothing is known about them.
    fn value_in(self, bucket: &Bucket, share: f64) -> Option<f64> {
        let (from, to) = (bucket.from.max(self.min), bucket.to.min(self.max));
        let value = match (from.is_finite(), to.is_finite()) {
            (true, true) => from + (to - from) * share,
            // The only bucket of a histogram without bounds.
            _ if bucket.from.is_infinite() => self.mean?,
            (true, false) => from,
            _ => to,
        };
        Some(self.clamp(value)).filter(|value| value.is_finite())
    }
}

/// Returns the buckets of a histogram with bounds, lowest first. Without bounds, its only bucket has infinite bounds.
pub(super) fn explicit(point: &HistogramPoint<'_>) -> Result<Vec<Bucket>, WireError> {
    let bounds: Vec<f64> = point.explicit_bounds.iter().collect::<Result<_, _>>()?;
    let lowest = match bounds.first() {
        Some(bound) => point.min.unwrap_or(bound.min(0.0)),
        None => f64::NEG_INFINITY,
    };
    let mut buckets = Vec::with_capacity(bounds.len() + 1);
    for (index, count) in point.bucket_counts.iter().enumerate() {
        let from = index.checked_sub(1).and_then(|below| bounds.get(below));
        buckets.push(Bucket {
            from: from.copied().unwrap_or(lowest),
            to: bounds.get(index).copied().unwrap_or(f64::INFINITY),
            count: count?.0,
        });
    }
    Ok(buckets)
}

/// Returns the buckets of an exponential histogram, lowest first.
pub(super) fn exponential(point: &ExponentialHistogramPoint<'_>) -> Result<Vec<Bucket>, WireError> {
    let base = (-f64::from(point.scale)).exp2().exp2();
    let bound = |offset: i32, index: usize| base.powi(offset.saturating_add(index as i32));
    let ranges = |buckets: Option<Buckets<'_>>| -> Result<Vec<Bucket>, WireError> {
        let Some(buckets) = buckets else {
            return Ok(Vec::new());
        };
        let counts = buckets.bucket_counts.iter().enumerate();
        let range = |(index, count): (usize, Result<u64, WireError>)| {
            Ok(Bucket {
                from: bound(buckets.offset, index),
                to: bound(buckets.offset, index + 1),
                count: count?,
            })
        };
        counts.map(range).collect()
    };
    let negative = |bucket: Bucket| Bucket {
        from: -bucket.to,
        to: -bucket.from,
        count: bucket.count,
    };
    let mut all: Vec<Bucket> = ranges(point.negative)?.into_iter().rev().map(negative).collect();
    all.push(Bucket {
        from: -point.zero_threshold,
        to: point.zero_threshold,
        count: point.zero_count,
    });
    all.extend(ranges(point.positive)?);
    Ok(all)
}

/// Returns the value of a quantile, or `None` if it cannot be estimated.
pub(super) fn estimate(buckets: &[Bucket], limits: Limits, quantile: f64) -> Option<f64> {
    // The total of counts from outside may exceed the range of an integer.
    let total: f64 = buckets.iter().map(|bucket| bucket.count as f64).sum();
    let wanted = quantile * total;
    let mut below = 0.0;
    for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
        let count = bucket.count as f64;
        if below + count >= wanted {
            let share = (wanted - below) / count;
            return limits.value_in(bucket, share);
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(from: f64, to: f64, count: u64) -> Bucket {
        Bucket { from, to, count }
    }

    const UNKNOWN: Limits = Limits {
        min: f64::NEG_INFINITY,
        max: f64::INFINITY,
        mean: None,
    };

    #[test]
    fn quantile_is_interpolated_linearly_within_its_bucket() {
        let buckets = [
            bucket(0.0, 1.0, 2),
            bucket(1.0, 3.0, 2),
            bucket(3.0, f64::INFINITY, 1),
        ];
        assert_eq!(estimate(&buckets, UNKNOWN, 0.2), Some(0.5));
        assert_eq!(estimate(&buckets, UNKNOWN, 0.6), Some(2.0));
        assert_eq!(estimate(&buckets, UNKNOWN, 0.99), Some(3.0));
        assert_eq!(estimate(&[], UNKNOWN, 0.5), None);
    }

    #[test]
    fn bucket_counts_whose_sum_overflows_u64_are_added_correctly() {
        let buckets = [bucket(0.0, 1.0, u64::MAX), bucket(1.0, 2.0, u64::MAX)];
        assert_eq!(estimate(&buckets, UNKNOWN, 0.75), Some(1.5));
    }

    #[test]
    fn smallest_and_largest_value_narrow_the_buckets() {
        let open = [bucket(0.0, 10.0, 0), bucket(100.0, f64::INFINITY, 10)];
        let limits = Limits::new(10, Some(90_000.0), Some(8_000.0), Some(10_000.0));
        assert_eq!(estimate(&open, limits, 0.5), Some(9_000.0));
        let one = [bucket(10.0, 100.0, 1)];
        let limits = Limits::new(1, Some(70.0), None, None);
        assert_eq!(estimate(&one, limits, 0.99), Some(70.0));
        // Invalid limits do not count.
        let limits = Limits::new(2, None, Some(3.0), Some(f64::NAN));
        assert_eq!(estimate(&open, limits, 0.5), Some(100.0));
        let limits = Limits::new(2, None, Some(3.0), Some(2.0));
        assert_eq!(estimate(&open, limits, 0.5), Some(100.0));
    }

    #[test]
    fn histogram_without_bounds_uses_its_limits_or_its_mean() {
        let only = [bucket(f64::NEG_INFINITY, f64::INFINITY, 10)];
        let limits = Limits::new(10, Some(5_000.0), Some(400.0), Some(600.0));
        assert_eq!(estimate(&only, limits, 0.9), Some(580.0));
        assert_eq!(
            estimate(&only, Limits::new(10, Some(5_000.0), None, None), 0.9),
            Some(500.0)
        );
        assert_eq!(estimate(&only, UNKNOWN, 0.9), None);
    }
}
