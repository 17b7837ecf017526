//! Estimates quantiles of histograms as Prometheus does: by linear interpolation within buckets.

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

/// Returns the buckets of a histogram with bounds, lowest first.
pub(super) fn explicit(point: &HistogramPoint<'_>) -> Result<Vec<Bucket>, WireError> {
    let bounds: Vec<f64> = point.explicit_bounds.iter().collect::<Result<_, _>>()?;
    let lowest = point
        .min
        .unwrap_or_else(|| bounds.first().map_or(0.0, |bound| bound.min(0.0)));
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

/// Returns the value of a quantile, or `None` if there are no values.
pub(super) fn estimate(buckets: &[Bucket], quantile: f64) -> Option<f64> {
    // The total of counts from outside may exceed the range of an integer.
    let total: f64 = buckets.iter().map(|bucket| bucket.count as f64).sum();
    let wanted = quantile * total;
    let mut below = 0.0;
    for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
        let count = bucket.count as f64;
        if below + count >= wanted {
            let share = (wanted - below) / count;
            return Some(if bucket.to.is_finite() {
                bucket.from + (bucket.to - bucket.from) * share
            } else {
                bucket.from
            });
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

    #[test]
    fn quantile_is_interpolated_linearly_within_its_bucket() {
        let buckets = [
            bucket(0.0, 1.0, 2),
            bucket(1.0, 3.0, 2),
            bucket(3.0, f64::INFINITY, 1),
        ];
        assert_eq!(estimate(&buckets, 0.2), Some(0.5));
        assert_eq!(estimate(&buckets, 0.6), Some(2.0));
        assert_eq!(estimate(&buckets, 0.99), Some(3.0));
        assert_eq!(estimate(&[], 0.5), None);
    }

    #[test]
    fn bucket_counts_whose_sum_overflows_u64_are_added_correctly() {
        let buckets = [bucket(0.0, 1.0, u64::MAX), bucket(1.0, 2.0, u64::MAX)];
        assert_eq!(estimate(&buckets, 0.75), Some(1.5));
    }
}
