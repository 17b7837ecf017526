//! Readings of one counter or gauge with their own times, and their growth or mean over an interval.
//!
//! A counter is interpolated linearly between two readings. `energy_counter` has the energy counter, with the bound of its error.

use std::{
    collections::VecDeque,
    ops::{Add, AddAssign},
    time::Duration,
};

use pulsetrain_otlp::UnixNanos;

use super::window::Window;

/// The longest time before a reading of a gauge for which the reading holds.
const GAUGE_LIFETIME: Duration = Duration::from_secs(60);

/// Readings in the order of their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings(VecDeque<Reading>);

#[derive(Clone, Copy, Debug)]
struct Reading {
    unix_nanos: UnixNanos,
    value: f64,
}

/// The growth of a counter, or the integral of a gauge, over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// The growth of the counter, or the value of the gauge times the seconds for which it held.
    pub(super) amount: f64,
    /// The bound of the error of an energy, whose borders lie between readings; zero for other quantities.
    pub(super) error: ErrorBound,
    /// The part of the interval that readings cover.
    pub(super) nanos: u64,
}

/// How far the true energy can be below and above an estimate, in joules.
///
/// The two sides are added separately. An interval whose start is uncertain to one side and its end to the other has a smaller bound than
/// the sum of the larger sides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ErrorBound {
    pub(super) below: f64,
    pub(super) above: f64,
}

impl ErrorBound {
    /// Returns the larger side.
    pub(super) fn joules(self) -> f64 {
        self.below.max(self.above)
    }

    /// Returns the bound of the negative of an estimate.
    pub(super) fn reversed(self) -> Self {
        Self {
            below: self.above,
            above: self.below,
        }
    }
}

impl Add for ErrorBound {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            below: self.below + other.below,
            above: self.above + other.above,
        }
    }
}

impl AddAssign for ErrorBound {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Readings {
    /// Inserts a reading by its time. A second reading of the same time replaces the first.
    pub(super) fn insert(&mut self, unix_nanos: UnixNanos, value: f64) {
        let place = self.0.partition_point(|reading| reading.unix_nanos < unix_nanos);
        match self.0.get_mut(place) {
            Some(reading) if reading.unix_nanos == unix_nanos => reading.value = value,
            _ => self.0.insert(place, Reading { unix_nanos, value }),
        }
    }

    /// Deletes readings that intervals from `unix_nanos` on do not need, and the oldest above `most`.
    pub(super) fn expire(&mut self, unix_nanos: UnixNanos, most: usize) {
        while self.0.len() > most.max(2) || self.0.get(1).is_some_and(|next| next.unix_nanos <= unix_nanos) {
            self.0.pop_front();
        }
    }

    /// Returns the growth of a counter in `window`. An interval in which it fell was a reset and is not covered.
    pub(super) fn growth(&self, window: Window) -> Measured {
        let mut measured = Measured::default();
        for (before, after) in self.pairs(window) {
            let growth = after.value - before.value;
            let interval = interval(before, after);
            let Some(part) = interval.overlap(window).filter(|_| growth >= 0.0) else {
                continue;
            };
            let share = part.nanos() as f64 / interval.nanos() as f64;
            measured.amount += growth * share;
            measured.nanos += part.nanos();
        }
        measured
    }

    /// Returns the integral of a gauge over `window`: a reading holds for the time since the previous reading.
    pub(super) fn level(&self, window: Window) -> Measured {
        let mut measured = Measured::default();
        for (before, after) in self.pairs(window) {
            let mut interval = interval(before, after);
            interval.start = interval.start.max(interval.end.saturating_sub(GAUGE_LIFETIME));
            if let Some(part) = interval.overlap(window) {
                measured.amount += after.value * part.secs();
                measured.nanos += part.nanos();
            }
        }
        measured
    }

    /// Returns the value of a gauge at a moment.
    pub(super) fn level_at(&self, unix_nanos: UnixNanos) -> Option<f64> {
        let (before, after) = self.around(unix_nanos)?;
        let reach = after.unix_nanos.saturating_sub(GAUGE_LIFETIME);
        (unix_nanos >= reach.max(before.unix_nanos)).then_some(after.value)
    }

    /// Returns the highest reading in `window`.
    pub(super) fn highest_in(&self, window: Window) -> Option<f64> {
        let start = self
            .0
            .partition_point(|reading| reading.unix_nanos <= window.start);
        self.0
            .range(start..)
            .take_while(|reading| reading.unix_nanos <= window.end)
            .map(|reading| reading.value)
            .reduce(f64::max)
    }

    /// Returns the times of the readings in `window`.
    pub(super) fn times_in(&self, window: Window) -> impl Iterator<Item = UnixNanos> {
        let start = self
            .0
            .partition_point(|reading| reading.unix_nanos <= window.start);
        self.0
            .range(start..)
            .map(|reading| reading.unix_nanos)
            .take_while(move |time| *time < window.end)
    }

    /// Returns the pairs of consecutive readings whose interval overlaps `window`.
    fn pairs(&self, window: Window) -> impl Iterator<Item = (Reading, Reading)> {
        let first = self
            .0
            .partition_point(|reading| reading.unix_nanos <= window.start);
        let before = self.0.range(first.saturating_sub(1)..);
        before
            .clone()
            .copied()
            .zip(before.skip(1).copied())
            .take_while(move |(before, _)| before.unix_nanos < window.end)
    }

    /// Returns the readings before and after a moment; a reading at that moment is the one after.
    fn around(&self, unix_nanos: UnixNanos) -> Option<(Reading, Reading)> {
        let after = self.0.partition_point(|reading| reading.unix_nanos < unix_nanos);
        let before = after.checked_sub(1)?;
        Some((*self.0.get(before)?, *self.0.get(after)?))
    }
}

fn interval(before: Reading, after: Reading) -> Window {
    Window::new(before.unix_nanos, after.unix_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn readings(list: &[(u64, f64)]) -> Readings {
        let mut readings = Readings::default();
        list.iter()
            .for_each(|(secs, value)| readings.insert(UnixNanos(secs * SECOND), *value));
        readings
    }

    fn window(start: u64, end: u64) -> Window {
        Window::new(UnixNanos(start * SECOND), UnixNanos(end * SECOND))
    }

    #[test]
    fn counter_is_linear_between_its_readings() {
        let counter = readings(&[(0, 100.0), (10, 200.0), (20, 600.0)]);
        let measured = counter.growth(window(5, 15));
        assert_eq!((measured.amount, measured.nanos), (50.0 + 200.0, 10 * SECOND));
    }

    #[test]
    fn growth_does_not_cover_the_reset_of_a_counter() {
        let counter = readings(&[(0, 100.0), (10, 200.0), (20, 5.0), (30, 25.0)]);
        let measured = counter.growth(window(0, 30));
        assert_eq!((measured.amount, measured.nanos), (120.0, 20 * SECOND));
    }

    #[test]
    fn out_of_order_and_repeated_readings_yield_the_same_growth() {
        let ordered = readings(&[(0, 0.0), (10, 10.0), (20, 40.0)]);
        let mixed = readings(&[(20, 40.0), (0, 0.0), (10, 7.0), (10, 10.0)]);
        assert_eq!(mixed.growth(window(5, 18)), ordered.growth(window(5, 18)));
    }

    #[test]
    fn gauge_covers_at_most_one_minute_before_its_reading() {
        let gauge = readings(&[(0, 0.5), (10, 1.0), (200, 0.25)]);
        let measured = gauge.level(window(5, 15));
        assert_eq!((measured.amount, measured.nanos), (5.0, 5 * SECOND));
        assert_eq!(gauge.level(window(20, 200)).nanos, 60 * SECOND);
        assert_eq!(gauge.level_at(UnixNanos(30 * SECOND)), None);
        assert_eq!(gauge.level_at(UnixNanos(150 * SECOND)), Some(0.25));
    }

    #[test]
    fn expired_readings_are_not_needed_by_later_intervals() {
        let mut counter = readings(&[(0, 0.0), (10, 10.0), (20, 40.0), (30, 60.0)]);
        counter.expire(UnixNanos(15 * SECOND), 100);
        assert_eq!(counter.growth(window(15, 30)).nanos, 15 * SECOND);
        assert_eq!(counter.growth(window(0, 10)).nanos, 0);
        counter.expire(UnixNanos::UNKNOWN, 2);
        assert_eq!(counter.0.back().unwrap().unix_nanos, UnixNanos(30 * SECOND));
        assert_eq!(counter.growth(window(15, 30)).nanos, 10 * SECOND);
    }
}
