//! The increase of a series with each of its points.

use pulsetrain_otlp::{
    UnixNanos,
    walk::{AnyPoint, PointKind, PointValue},
};

use crate::RecentDeltas;

/// A point of a sum or a distribution, as far as the increase depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPoint {
    /// The start of the interval, or [`UnixNanos::UNKNOWN`].
    pub start: UnixNanos,
    /// The time, or [`UnixNanos::UNKNOWN`].
    pub time: UnixNanos,
    /// Whether the value counts only since the point before it.
    pub is_delta: bool,
    /// The number of observations of a distribution, or `None` for a sum.
    pub count: Option<u64>,
    /// The sum; NaN for a distribution without a sum.
    pub sum: f64,
}

/// The growth of a series with one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Increase {
    /// The reason for the increase.
    pub kind: IncreaseKind,
    /// The number of new observations of a distribution; zero for a sum.
    pub count: u64,
    /// The growth of the sum.
    pub sum: f64,
    /// The start of the interval in which the series grew, or [`UnixNanos::UNKNOWN`].
    pub since: UnixNanos,
}

/// The reason for an increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncreaseKind {
    /// The point is a delta.
    Delta,
    /// The point exceeds the previous one of a cumulative series.
    Growth,
    /// The cumulative series began again: its start is later, or its value is lower. All of the value is new.
    Reset,
    /// The point is the first of a cumulative series: all of its value, which may include an unknown past.
    First,
}

/// The last points of one series, with which the next one is compared.
///
/// A cumulative series without observed points has an unknown past: see [`IncreaseKind::First`].
#[derive(Clone, Debug, Default)]
pub struct SeriesTracker {
    last: Option<SeriesPoint>,
    deltas: RecentDeltas,
}

impl SeriesPoint {
    /// Returns the point of a sum or a distribution. `None` for a gauge, at the end of a series, and for a point without a value.
    ///
    /// A sum that can fall is a point too. The caller decides whether its growth has a meaning.
    #[inline]
    pub fn from_point(point: &AnyPoint<'_, '_>) -> Option<Self> {
        let (count, sum) = match point.value()? {
            PointValue::Number(_) if point.kind == PointKind::Gauge => return None,
            PointValue::Number(number) => (None, number.as_f64()),
            PointValue::Distribution(distribution) => {
                (Some(distribution.count), distribution.sum.unwrap_or(f64::NAN))
            }
        };
        Some(Self {
            start: point.start(),
            time: point.time(),
            is_delta: point.kind.is_delta(),
            count,
            sum,
        })
    }

    /// Returns whether the value is lower than that of an earlier point, which happens to a cumulative series only after a reset.
    fn is_lower(&self, earlier: &Self) -> bool {
        match (self.count, earlier.count) {
            (Some(count), Some(earlier)) => count < earlier,
            _ => self.sum < earlier.sum,
        }
    }

    /// Returns whether the point of a cumulative series was made before `last`.
    ///
    /// A higher value with an earlier time is new: the clock of the writer stepped back.
    fn is_late(&self, last: &Self) -> bool {
        let is_of_earlier_start = self.start.is_known() && self.start < last.start;
        self.time.is_known()
            && self.time < last.time
            && (is_of_earlier_start || (self.start <= last.start && self.is_lower(last)))
    }

    fn increase(&self, kind: IncreaseKind, since: UnixNanos) -> Increase {
        Increase {
            kind,
            count: self.count.unwrap_or_default(),
            sum: self.sum,
            since,
        }
    }
}

impl Increase {
    /// Returns the mean of the new observations, or `None` without observations or without a finite sum.
    #[inline]
    pub fn mean(&self) -> Option<f64> {
        let mean = self.sum / self.count as f64;
        (self.count > 0 && mean.is_finite()).then_some(mean)
    }

    /// Returns whether the increase belongs to the newest record of its writer. `false` for the first point of a cumulative series,
    /// unless it is a distribution of one observation: that one is the newest.
    #[inline]
    pub fn is_recent(&self) -> bool {
        self.kind != IncreaseKind::First || self.count == 1
    }
}

impl SeriesTracker {
    /// Records a point and returns the increase. `None` if the point adds nothing because it is late or was delivered twice.
    ///
    /// The sum of all increases is the total of the series, however it is split into points.
    pub fn observe(&mut self, point: &SeriesPoint) -> Option<Increase> {
        if point.is_delta {
            let is_new = self.deltas.record(point);
            return is_new.then(|| point.increase(IncreaseKind::Delta, point.start));
        }
        let Some(last) = self.last else {
            self.last = Some(*point);
            return Some(point.increase(IncreaseKind::First, point.start));
        };
        if point.is_late(&last) {
            return None;
        }
        self.last = Some(*point);
        let is_later_start = last.start.is_known() && point.start > last.start;
        if is_later_start || point.is_lower(&last) {
            return Some(point.increase(IncreaseKind::Reset, point.start));
        }
        let count = |point: &SeriesPoint| point.count.unwrap_or_default();
        Some(Increase {
            kind: IncreaseKind::Growth,
            // Saturating, because a writer may change a series from a distribution to a sum.
            count: count(point).saturating_sub(count(&last)),
            sum: point.sum - last.sum,
            since: last.time,
        })
    }
}

#[cfg(test)]
mod tests;
