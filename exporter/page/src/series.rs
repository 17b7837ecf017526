//! One series: its newest points unchanged, and its older points in buckets of equal size.
//!
//! A bucket keeps the minimum, the maximum, the last value, and whether a value was not finite. At the
//! capacity, adjacent buckets of one attempt are merged in pairs, so a series covers any length of time in
//! bounded memory.

use std::{collections::VecDeque, mem::size_of};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_run::{IncreaseKind, SeriesPoint, SeriesTracker};

use super::{metrics::MetricKind, run::Observed};

/// One point, or several merged points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bucket {
    /// The time of the last point, in milliseconds since 1970.
    pub(super) time_millis: i64,
    /// The step of the last point, or [`NO_STEP`].
    pub(super) step: u32,
    /// The last finite value, or NaN. Single precision is enough for a curve.
    pub(super) last: f32,
    pub(super) low: f32,
    pub(super) high: f32,
    pub(super) attempt: u16,
    /// Whether a value was NaN or infinite.
    pub(super) has_non_finite: bool,
}

/// The step of a point without one.
pub(super) const NO_STEP: u32 = u32::MAX;

/// The capacity of a series: buckets of older points, and newest points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub(super) buckets: usize,
    pub(super) newest: usize,
}

/// A series with its history.
#[derive(Debug)]
pub(super) struct Series {
    /// The id, unique within its run.
    pub(super) id: u32,
    /// The attributes of its points, as `key=value`.
    pub(super) label: Box<str>,
    /// The last value in full precision. For a counter it is the total.
    pub(super) latest: f64,
    pub(super) latest_nanos: UnixNanos,
    /// The number of all points so far.
    pub(super) count: u64,
    /// The number of points that the stream has sent.
    pub(super) streamed: u64,
    /// Whether its resource ended it.
    pub(super) is_ended: bool,
    tracker: SeriesTracker,
    capacity: Capacity,
    buckets: Vec<Bucket>,
    newest: VecDeque<Bucket>,
    /// The number of points of a complete bucket.
    points_per_bucket: u32,
    /// The number of points of the last, incomplete bucket.
    open: u32,
}

impl Bucket {
    pub(super) fn new(time_nanos: UnixNanos, step: u32, value: f64, attempt: u16) -> Self {
        let finite = if value.is_finite() { value as f32 } else { f32::NAN };
        Self {
            time_millis: time_nanos.as_millis() as i64,
            step,
            last: finite,
            low: finite,
            high: finite,
            attempt,
            has_non_finite: !value.is_finite(),
        }
    }

    /// Merges the points of a later bucket.
    fn merge(&mut self, later: &Self) {
        self.time_millis = later.time_millis;
        self.step = later.step;
        self.attempt = later.attempt;
        // `min` and `max` return the other value if one is NaN.
        self.low = self.low.min(later.low);
        self.high = self.high.max(later.high);
        if !later.last.is_nan() {
            self.last = later.last;
        }
        self.has_non_finite |= later.has_non_finite;
    }
}

impl Capacity {
    /// Returns the capacity for this number of points, half of them not merged.
    pub(super) fn for_points(points: usize) -> Self {
        Self {
            buckets: points / 2,
            newest: (points / 2).max(1),
        }
    }

    /// The capacity for the last value alone.
    pub(super) const LATEST: Self = Self {
        buckets: 0,
        newest: 1,
    };
}

impl Series {
    pub(super) fn new(id: u32, label: &str, capacity: Capacity) -> Self {
        Self {
            id,
            label: label.into(),
            latest: f64::NAN,
            latest_nanos: UnixNanos::UNKNOWN,
            count: 0,
            streamed: 0,
            is_ended: false,
            tracker: SeriesTracker::default(),
            capacity,
            buckets: Vec::new(),
            newest: VecDeque::new(),
            points_per_bucket: 1,
            open: 0,
        }
    }

    /// Returns whether a point is older than the last point of the series.
    pub(super) fn is_late(&self, time_nanos: UnixNanos, observed: Observed) -> bool {
        observed != Observed::End && time_nanos.as_millis() < self.latest_nanos.as_millis()
    }

    /// Returns the value of the curve for a point, or `None` if the point is only a base for the next one or adds nothing.
    pub(super) fn observe(
        &mut self,
        observed: Observed,
        time_nanos: UnixNanos,
        kind: MetricKind,
    ) -> Option<f64> {
        let value = match observed {
            Observed::End => {
                self.is_ended = true;
                return None;
            }
            Observed::Value(value) => Some(value),
            Observed::Point(point) => self.observe_point(&point, kind),
        };
        self.latest_nanos = time_nanos;
        let is_total = kind == MetricKind::Rate && matches!(observed, Observed::Point(_));
        if let Some(value) = value.filter(|_| !is_total) {
            self.latest = value;
        }
        value
    }

    /// Returns the value of the curve for a point of a sum or a distribution, and updates the total of a counter.
    fn observe_point(&mut self, point: &SeriesPoint, kind: MetricKind) -> Option<f64> {
        let increase = self.tracker.observe(point)?;
        match kind {
            MetricKind::Mean => (increase.count > 0).then(|| increase.sum / increase.count as f64),
            MetricKind::Rate => {
                let is_first = !point.is_delta || self.latest.is_nan();
                self.latest = point.sum + if is_first { 0.0 } else { self.latest };
                let has_interval = matches!(increase.kind, IncreaseKind::Growth | IncreaseKind::Delta)
                    && increase.since.is_known();
                let seconds = point.time.nanos_since(increase.since) as f64 / 1e9;
                (has_interval && seconds > 0.0).then(|| increase.sum / seconds)
            }
            MetricKind::Value | MetricKind::State => Some(point.sum),
        }
    }

    /// Adds a point. A second point of the same time replaces the first. Returns `false` for an older point,
    /// which is not shown.
    pub(super) fn push(&mut self, point: Bucket) -> bool {
        match self.newest.back_mut() {
            Some(last) if point.time_millis < last.time_millis => return false,
            Some(last) if point.time_millis == last.time_millis && point.step == last.step => *last = point,
            _ => {
                self.newest.push_back(point);
                self.count += 1;
            }
        }
        self.is_ended = false;
        while self.newest.len() > self.capacity.newest {
            if let Some(oldest) = self.newest.pop_front() {
                self.push_bucket(&oldest);
            }
        }
        true
    }

    /// Returns the number of merged points, and all points in order of time.
    pub(super) fn points(&self) -> (usize, impl Iterator<Item = &Bucket> + Clone) {
        (self.buckets.len(), self.buckets.iter().chain(&self.newest))
    }

    /// Returns the points that the stream has not sent, or `None` if some of them are merged.
    pub(super) fn unsent(&self) -> Option<impl Iterator<Item = &Bucket> + Clone> {
        let unsent = usize::try_from(self.count - self.streamed).ok()?;
        let kept = self.newest.len().checked_sub(unsent)?;
        Some(self.newest.range(kept..))
    }

    /// Returns the memory use of its points and its label.
    pub(super) fn bytes(&self) -> usize {
        (self.buckets.capacity() + self.newest.capacity()) * size_of::<Bucket>()
            + size_of::<Self>()
            + self.label.len()
    }

    /// Returns its capacity.
    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Returns the time of its last point in milliseconds since 1970.
    pub(super) fn last_millis(&self) -> i64 {
        self.newest.back().map_or(i64::MIN, |point| point.time_millis)
    }

    /// Returns the step of its last point, or `None` if it is unknown.
    pub(super) fn last_step(&self) -> Option<i64> {
        let last = self.newest.back().filter(|point| point.step != NO_STEP)?;
        Some(i64::from(last.step))
    }

    /// Changes the capacity. Points are merged until they fit.
    pub(super) fn resize(&mut self, capacity: Capacity) {
        self.capacity = capacity;
        while self.newest.len() > capacity.newest {
            if let Some(oldest) = self.newest.pop_front() {
                self.push_bucket(&oldest);
            }
        }
        self.halve_to_fit();
        self.buckets.shrink_to_fit();
        self.newest.shrink_to_fit();
    }

    fn push_bucket(&mut self, point: &Bucket) {
        if self.capacity.buckets == 0 {
            return;
        }
        match self.buckets.last_mut() {
            Some(last) if self.open > 0 && last.attempt == point.attempt => {
                last.merge(point);
                self.open += 1;
            }
            _ => {
                self.buckets.push(*point);
                self.open = 1;
            }
        }
        if self.open >= self.points_per_bucket {
            self.open = 0;
        }
        self.halve_to_fit();
    }

    fn halve_to_fit(&mut self) {
        if self.capacity.buckets == 0 {
            self.buckets.clear();
        }
        while self.buckets.len() > self.capacity.buckets {
            self.halve(false);
            if self.buckets.len() > self.capacity.buckets {
                // With more attempts than buckets, the ends of attempts are merged too.
                self.halve(true);
            }
        }
    }

    /// Merges adjacent buckets in pairs, across attempts if `across_attempts`.
    fn halve(&mut self, across_attempts: bool) {
        let mut merged: Vec<Bucket> = Vec::with_capacity(self.capacity.buckets.min(self.buckets.len()));
        let mut is_last_a_pair = true;
        for bucket in &self.buckets {
            match merged.last_mut() {
                Some(last) if !is_last_a_pair && (across_attempts || last.attempt == bucket.attempt) => {
                    last.merge(bucket);
                    is_last_a_pair = true;
                }
                _ => {
                    merged.push(*bucket);
                    is_last_a_pair = false;
                }
            }
        }
        let of_last = if self.open == 0 {
            self.points_per_bucket
        } else {
            self.open
        };
        self.open = if is_last_a_pair {
            self.points_per_bucket + of_last
        } else {
            of_last
        };
        self.points_per_bucket = self.points_per_bucket.saturating_mul(2);
        if self.open >= self.points_per_bucket {
            self.open = 0;
        }
        self.buckets = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(points: usize, capacity: usize, value: impl Fn(usize) -> f64) -> Series {
        let mut series = Series::new(0, "", Capacity::for_points(capacity));
        for number in 0..points {
            let time = number as u64 * 100_000_000;
            assert!(series.push(Bucket::new(UnixNanos(time), number as u32, value(number), 0)));
        }
        series
    }

    #[test]
    fn downsampled_series_keeps_its_bounds_spikes_and_nan() {
        let spike = |number| match number {
            1_234 => 1e6,
            5_000 => f64::NAN,
            _ => 1.0,
        };
        let series = filled(36_000, 2_048, spike);
        let (merged, points) = series.points();
        let points: Vec<Bucket> = points.copied().collect();
        assert!(
            points.len() <= 2_048 && points.len() > 1_024 + 500,
            "{}",
            points.len()
        );
        assert_eq!(points.iter().filter(|point| point.high == 1e6).count(), 1);
        assert_eq!(points.iter().filter(|point| point.has_non_finite).count(), 1);
        assert!(points.is_sorted_by_key(|point| point.time_millis));
        // The newest points are not merged, and the last step is the last one.
        assert_eq!(points.last().map(|point| point.step), Some(35_999));
        assert!(
            points[merged..]
                .windows(2)
                .all(|pair| pair[1].step == pair[0].step + 1)
        );
        // Buckets have equal sizes: no part of the run is coarser than another.
        let steps: Vec<u32> = points[..merged]
            .windows(2)
            .map(|pair| pair[1].step - pair[0].step)
            .collect();
        let (least, most) = (steps.iter().min().unwrap(), steps.iter().max().unwrap());
        assert!(most <= &(2 * least), "{least} to {most}");
        assert!(series.bytes() < 3 * 2_048 * size_of::<Bucket>());
    }

    #[test]
    fn points_of_two_attempts_are_never_merged() {
        let mut series = Series::new(0, "", Capacity::for_points(16));
        for number in 0..200_u64 {
            let attempt = u16::from(number >= 77);
            series.push(Bucket::new(
                UnixNanos(number * 1_000_000),
                number as u32,
                f64::from(attempt),
                attempt,
            ));
        }
        assert!(
            series
                .points()
                .1
                .all(|point| point.low == point.high && point.low == f32::from(point.attempt))
        );
    }

    #[test]
    fn buckets_of_different_attempts_are_merged_when_attempts_exceed_the_limit() {
        let mut series = Series::new(0, "", Capacity::for_points(16));
        for number in 0..500_u64 {
            series.push(Bucket::new(UnixNanos(number * 1_000_000), 0, 1.0, number as u16));
        }
        assert!(series.points().1.count() <= 16);
    }

    #[test]
    fn late_point_is_rejected_and_a_repeated_one_replaces_the_last() {
        let mut series = filled(2, 16, |_| 1.0);
        assert!(!series.push(Bucket::new(UnixNanos(50_000_000), 0, 9.0, 0)));
        assert!(series.push(Bucket::new(UnixNanos(100_000_000), 1, 2.0, 0)));
        assert_eq!((series.count, series.points().1.last().unwrap().last), (2, 2.0));
    }

    /// Returns the values of a counter of 10 and 20 a second, and its total.
    fn counted(points: &[(u64, u64, f64)], is_delta: bool) -> (Vec<Option<f64>>, f64) {
        let mut series = Series::new(0, "", Capacity::for_points(16));
        let values = points.iter().map(|(start, time, sum)| {
            let time = UnixNanos(time * 1_000_000_000);
            let point = SeriesPoint {
                start: UnixNanos(start * 1_000_000_000),
                time,
                is_delta,
                count: None,
                sum: *sum,
            };
            series.observe(Observed::Point(point), time, MetricKind::Rate)
        });
        (values.collect(), series.latest)
    }

    #[test]
    fn rates_of_deltas_and_totals_are_equal_and_repeated_deltas_count_once() {
        let totals = counted(&[(1, 2, 10.0), (1, 3, 20.0), (1, 5, 60.0)], false);
        assert_eq!(totals, (vec![None, Some(10.0), Some(20.0)], 60.0));
        let deltas = counted(&[(1, 2, 10.0), (2, 3, 10.0), (2, 3, 10.0), (3, 5, 40.0)], true);
        assert_eq!(deltas, (vec![Some(10.0), Some(10.0), None, Some(20.0)], 60.0));
    }

    #[test]
    fn counter_that_restarted_beyond_its_last_total_did_not_grow_by_the_difference() {
        let counts = counted(&[(1, 2, 10.0), (1, 3, 20.0), (4, 8, 70.0), (4, 9, 80.0)], false);
        assert_eq!(counts, (vec![None, Some(10.0), None, Some(10.0)], 80.0));
    }

    #[test]
    fn unsent_points_are_those_since_the_last_update() {
        let mut series = filled(5, 16, |number| number as f64);
        series.streamed = 3;
        let unsent: Vec<f32> = series.unsent().unwrap().map(|point| point.last).collect();
        assert_eq!(unsent, [3.0, 4.0]);
        series.resize(Capacity {
            buckets: 4,
            newest: 1,
        });
        assert!(series.unsent().is_none());
        assert_eq!(series.points().1.count(), 5);
    }
}
