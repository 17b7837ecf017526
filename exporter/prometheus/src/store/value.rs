//! The value of a series, and its update.

use std::sync::Arc;

use pulsetrain_otlp::UnixNanos;

use super::bounds::Bounds;

/// The current value of a series. Large kinds are boxed, because most series are numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SampleValue {
    /// The value of a counter or a gauge.
    Number(f64),
    /// Buckets with explicit bounds.
    Histogram(Box<Histogram>),
    /// Exponential buckets: Prometheus' native histogram.
    Native(Box<Native>),
    /// Quantiles.
    Summary(Box<Summary>),
}

/// A distribution with explicit bounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) bounds: Arc<Bounds>,
    /// Observations per bucket, one more than bounds.
    pub(crate) buckets: Box<[u64]>,
    pub(crate) count: u64,
    pub(crate) sum: Option<f64>,
}

/// A distribution with exponential buckets, in Prometheus' schema (-4 to 8).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Native {
    pub(crate) schema: i32,
    pub(crate) zero_threshold: f64,
    pub(crate) zero_count: u64,
    pub(crate) count: u64,
    pub(crate) sum: Option<f64>,
    pub(crate) positive: Side,
    pub(crate) negative: Side,
}

/// The buckets of one sign, starting at index `first`. The upper bound of index i is 2^(i / 2^schema).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Side {
    pub(crate) first: i32,
    pub(crate) counts: Box<[u64]>,
}

/// A distribution as quantiles.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) sum: f64,
    /// Quantile and value.
    pub(crate) quantiles: Box<[(f64, f64)]>,
}

/// An exemplar of a counter or a bucket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exemplar {
    /// The bucket of an explicit histogram, zero for a counter, or the rank among the stored ones of a native
    /// histogram.
    pub(crate) bucket: u32,
    /// Label text.
    pub(crate) labels: Box<str>,
    pub(crate) value: f64,
    pub(crate) unix_nanos: UnixNanos,
}

/// The exemplars of a series by bucket. They are boxed, because most series have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exemplars {
    newest: Vec<Exemplar>,
}

impl SampleValue {
    /// Returns its heap size, without the shared bounds.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Number(_) => 0,
            Self::Histogram(histogram) => size_of::<Histogram>() + size_of_val(&*histogram.buckets),
            Self::Native(native) => {
                let sides = [&native.positive, &native.negative];
                let counts: usize = sides.iter().map(|side| size_of_val(&*side.counts)).sum();
                size_of::<Native>() + counts
            }
            Self::Summary(summary) => size_of::<Summary>() + size_of_val(&*summary.quantiles),
        }
    }

    /// Adds a delta. Returns `false` if it cannot be added.
    pub(crate) fn add(&mut self, delta: &Self) -> bool {
        match (self, delta) {
            (Self::Number(total), Self::Number(more)) => {
                *total += more;
                true
            }
            (Self::Histogram(total), Self::Histogram(more)) => total.add(more),
            (Self::Native(total), Self::Native(more)) => total.add(more),
            _ => false,
        }
    }

    /// Returns whether this is less than `other`, which happens to a cumulative series only after a restart.
    pub(crate) fn decreased_from(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(new), Self::Number(old)) => new < old,
            (Self::Histogram(new), Self::Histogram(old)) => new.count < old.count,
            (Self::Native(new), Self::Native(old)) => new.count < old.count,
            _ => false,
        }
    }
}

impl Histogram {
    fn add(&mut self, delta: &Self) -> bool {
        if self.bounds != delta.bounds {
            return false;
        }
        for (total, more) in self.buckets.iter_mut().zip(&delta.buckets) {
            *total = total.saturating_add(*more);
        }
        self.count = self.count.saturating_add(delta.count);
        self.sum = self.sum.zip(delta.sum).map(|(total, more)| total + more);
        true
    }
}

impl Exemplars {
    /// Stores the newest of each bucket.
    pub(crate) fn keep(&mut self, exemplars: Vec<Exemplar>) {
        for exemplar in exemplars {
            match self.newest.iter_mut().find(|kept| kept.bucket == exemplar.bucket) {
                Some(place) => *place = exemplar,
                None => self.newest.push(exemplar),
            }
        }
        self.newest.sort_by_key(|exemplar| exemplar.bucket);
    }

    /// Returns their heap size.
    pub(crate) fn heap_bytes(&self) -> usize {
        let labels: usize = self.newest.iter().map(|exemplar| exemplar.labels.len()).sum();
        size_of::<Self>() + self.newest.capacity() * size_of::<Exemplar>() + labels
    }

    pub(crate) fn as_slice(&self) -> &[Exemplar] {
        &self.newest
    }
}
