//! Readings of one counter or gauge with their own times, and what they say of a stretch of time.
//!
//! A counter is a straight line between two readings. Both ends of it are certain, so what steps take of it adds up to what
//! it grew by, however they divide it; only where a step begins or ends between two readings is its share uncertain.

use std::collections::VecDeque;

use super::window::Window;

/// How long a reading of a gauge may hold for the time before it.
const REACH_NANOS: u64 = 60_000_000_000;

/// Readings in the order of their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings(VecDeque<Reading>);

#[derive(Clone, Copy, Debug)]
struct Reading {
    unix_nanos: u64,
    value: f64,
}

/// What is known of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// By how much a counter grew, or a gauge's value times the seconds for which it held.
    pub(super) amount: f64,
    /// By how much `amount` may be wrong at most, because borders lie between readings.
    pub(super) error: f64,
    /// For how long something is known.
    pub(super) nanos: u64,
}

impl Readings {
    /// Takes in a reading, wherever its time puts it. Of two of one time the later one counts.
    pub(super) fn insert(&mut self, unix_nanos: u64, value: f64) {
        let place = self.0.partition_point(|reading| reading.unix_nanos < unix_nanos);
        match self.0.get_mut(place) {
            Some(reading) if reading.unix_nanos == unix_nanos => reading.value = value,
            _ => self.0.insert(place, Reading { unix_nanos, value }),
        }
    }

    /// Forgets what is not needed for what happened at `unix_nanos` or later, and the oldest of more than `most`.
    pub(super) fn forget(&mut self, unix_nanos: u64, most: usize) {
        while self.0.len() > most.max(2) || self.0.get(1).is_some_and(|next| next.unix_nanos <= unix_nanos) {
            self.0.pop_front();
        }
    }

    /// The time of the newest reading.
    pub(super) fn newest(&self) -> Option<u64> {
        self.0.back().map(|reading| reading.unix_nanos)
    }

    /// What a counter grew by in `window`. A stretch in which it fell was a restart: nothing is known of it.
    pub(super) fn growth(&self, window: Window) -> Known {
        let mut known = Known::default();
        for (before, after) in self.pairs(window) {
            let growth = after.value - before.value;
            let stretch = stretch(before, after);
            let Some(part) = stretch.overlap(window).filter(|_| growth >= 0.0) else {
                continue;
            };
            let share = part.nanos() as f64 / stretch.nanos() as f64;
            known.amount += growth * share;
            known.nanos += part.nanos();
            if part != stretch {
                known.error += growth * share.max(1.0 - share);
            }
        }
        known
    }

    /// What a counter grew by in all of these.
    pub(super) fn growth_in(&self, parts: &[Window]) -> Known {
        parts.iter().fold(Known::default(), |all, part| {
            let known = self.growth(*part);
            Known {
                amount: all.amount + known.amount,
                error: all.error + known.error,
                nanos: all.nanos + known.nanos,
            }
        })
    }

    /// What a gauge came to over `window`: a reading is of the time since the reading before it.
    pub(super) fn level(&self, window: Window) -> Known {
        let mut known = Known::default();
        for (before, after) in self.pairs(window) {
            let mut stretch = stretch(before, after);
            stretch.start = stretch.start.max(stretch.end.saturating_sub(REACH_NANOS));
            if let Some(part) = stretch.overlap(window) {
                known.amount += after.value * part.secs();
                known.nanos += part.nanos();
            }
        }
        known
    }

    /// How fast a counter grew around a moment, per second; nothing where no two readings are around it.
    pub(super) fn rate_at(&self, unix_nanos: u64) -> Option<f64> {
        let (before, after) = self.around(unix_nanos)?;
        let growth = after.value - before.value;
        (growth >= 0.0).then(|| growth / stretch(before, after).secs())
    }

    /// What a gauge was at a moment.
    pub(super) fn level_at(&self, unix_nanos: u64) -> Option<f64> {
        let (before, after) = self.around(unix_nanos)?;
        let reach = after.unix_nanos.saturating_sub(REACH_NANOS);
        (unix_nanos >= reach.max(before.unix_nanos)).then_some(after.value)
    }

    /// The highest reading that falls into `window`.
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

    /// The times of the readings inside `window`.
    pub(super) fn times_in(&self, window: Window) -> impl Iterator<Item = u64> {
        let start = self
            .0
            .partition_point(|reading| reading.unix_nanos <= window.start);
        self.0
            .range(start..)
            .map(|reading| reading.unix_nanos)
            .take_while(move |time| *time < window.end)
    }

    /// Neighbours whose stretch has something in common with `window`.
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

    /// The readings before and after a moment; one at that very moment is the one after.
    fn around(&self, unix_nanos: u64) -> Option<(Reading, Reading)> {
        let after = self.0.partition_point(|reading| reading.unix_nanos < unix_nanos);
        let before = after.checked_sub(1)?;
        Some((*self.0.get(before)?, *self.0.get(after)?))
    }
}

fn stretch(before: Reading, after: Reading) -> Window {
    Window {
        start: before.unix_nanos,
        end: after.unix_nanos,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn readings(list: &[(u64, f64)]) -> Readings {
        let mut readings = Readings::default();
        list.iter()
            .for_each(|(secs, value)| readings.insert(secs * SECOND, *value));
        readings
    }

    fn window(start: u64, end: u64) -> Window {
        Window {
            start: start * SECOND,
            end: end * SECOND,
        }
    }

    #[test]
    fn a_counter_is_a_straight_line_between_its_readings() {
        let counter = readings(&[(0, 100.0), (10, 200.0), (20, 600.0)]);
        let known = counter.growth(window(5, 15));
        assert_eq!((known.amount, known.nanos), (50.0 + 200.0, 10 * SECOND));
        assert_eq!(
            known.error,
            50.0 + 200.0,
            "both borders lie half-way between two readings"
        );
        assert_eq!(
            counter.growth(window(0, 20)).error,
            0.0,
            "both borders are readings"
        );
        assert_eq!(
            counter.growth(window(2, 3)).error,
            90.0,
            "all but a tenth may have come in that second"
        );
    }

    #[test]
    fn a_counter_that_fell_says_nothing_of_the_time_in_which_it_did() {
        let counter = readings(&[(0, 100.0), (10, 200.0), (20, 5.0), (30, 25.0)]);
        let known = counter.growth(window(0, 30));
        assert_eq!((known.amount, known.nanos), (120.0, 20 * SECOND));
    }

    #[test]
    fn readings_come_in_any_order_and_twice() {
        let ordered = readings(&[(0, 0.0), (10, 10.0), (20, 40.0)]);
        let mixed = readings(&[(20, 40.0), (0, 0.0), (10, 7.0), (10, 10.0)]);
        assert_eq!(mixed.growth(window(5, 18)), ordered.growth(window(5, 18)));
    }

    #[test]
    fn a_gauge_is_of_the_time_before_its_reading_but_not_of_more_than_a_minute() {
        let gauge = readings(&[(0, 0.5), (10, 1.0), (200, 0.25)]);
        let known = gauge.level(window(5, 15));
        assert_eq!((known.amount, known.nanos), (5.0, 5 * SECOND));
        assert_eq!(gauge.level(window(20, 200)).nanos, 60 * SECOND);
        assert_eq!(gauge.level_at(30 * SECOND), None);
        assert_eq!(gauge.level_at(150 * SECOND), Some(0.25));
    }

    #[test]
    fn what_is_forgotten_is_not_needed_any_more() {
        let mut counter = readings(&[(0, 0.0), (10, 10.0), (20, 40.0), (30, 60.0)]);
        counter.forget(15 * SECOND, 100);
        assert_eq!(counter.growth(window(15, 30)).nanos, 15 * SECOND);
        assert_eq!(counter.growth(window(0, 10)).nanos, 0);
        counter.forget(0, 2);
        assert_eq!(counter.newest(), Some(30 * SECOND));
        assert_eq!(counter.growth(window(15, 30)).nanos, 10 * SECOND);
    }
}
