//! Readings of the energy counter of a GPU, and the energy in an interval with the bound of its error.
//!
//! The driver updates the counter periodically. A reading repeats the value of the last update, so only a changed value shows that
//! an update took place since the previous reading. Between two updates the energy is interpolated linearly. The bound follows from
//! the times of the updates and from the highest and the lowest power of the GPU.

use std::{collections::VecDeque, time::Duration};

use pulsetrain_otlp::UnixNanos;

use super::{
    readings::{ErrorBound, Measured},
    window::Window,
};

/// The longest update period of a counter: drivers poll the sensors of GeForce GPUs every 500 ms, those of others more often
/// (open-gpu-kernel-modules 595.45.04).
const MAX_PERIOD: Duration = Duration::from_millis(500);

/// The highest ratio of the mean power of an update period to the enforced limit, which is regulated over longer times.
const ABOVE_LIMIT: f64 = 1.2;

/// The ratio of uncertainties above which interpolation leaves out a value: its update time is less certain than that of its
/// neighbor.
const UNCERTAINTY_RATIO: u64 = 4;

/// Without a known limit, the highest ratio of the power to the highest mean between two updates.
const ABOVE_SEEN: f64 = 2.0;

/// The lowest ratio of the power to the lowest mean between two updates.
const BELOW_SEEN: f64 = 0.5;

/// The highest lower bound of the power, as a part of the enforced limit. Idle data center GPUs draw more: 12 % (A100), 13 % (GB300),
/// 14 % (GB200) and 20 % (B200) in the captures of `tests/corpus/nvidia-smi`, about 10 % (H100) in public outputs of `nvidia-smi`.
const IDLE: f64 = 0.08;

/// The values of one counter in the order of their times; readings that repeat a value extend it.
#[derive(Clone, Debug, Default)]
pub(super) struct EnergyCounter {
    values: VecDeque<CounterValue>,
    /// The enforced power limit.
    limit_watts: Option<f64>,
    /// The highest mean power between two updates.
    highest_watts: f64,
    /// The lowest mean power between two updates.
    lowest_watts: Option<f64>,
}

/// A value of the counter, with the times of the first and the last reading that had it.
#[derive(Clone, Copy, Debug)]
struct CounterValue {
    /// The update to the value was after this time.
    updated_after: UnixNanos,
    first_read: UnixNanos,
    last_read: UnixNanos,
    joules: f64,
}

impl CounterValue {
    /// Returns the uncertainty of the update time in nanoseconds.
    fn uncertainty(&self) -> u64 {
        self.first_read.nanos_since(self.updated_after)
    }

    /// Returns whether the time of the update is known much less exactly than that of another value.
    fn is_uncertain(&self, other: &Self) -> bool {
        self.uncertainty() > UNCERTAINTY_RATIO * other.uncertainty().max(1)
    }
}

/// The energy used until a moment, counted from the same start as the counter.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    joules: f64,
    error: ErrorBound,
}

impl EnergyCounter {
    /// Records a reading.
    pub(super) fn insert(&mut self, unix_nanos: UnixNanos, joules: f64) {
        let place = self
            .values
            .partition_point(|value| value.first_read <= unix_nanos);
        let before = place
            .checked_sub(1)
            .and_then(|before| self.values.get_mut(before));
        match before {
            Some(before) if before.joules == joules => before.last_read = before.last_read.max(unix_nanos),
            Some(before) if before.first_read == unix_nanos => before.joules = joules,
            _ => match self.values.get_mut(place) {
                Some(after) if after.joules == joules => after.first_read = unix_nanos,
                _ => self.insert_value(place, unix_nanos, joules),
            },
        }
        self.limit_update(place);
        // A late reading changes the intervals around it.
        (place.saturating_sub(1)..place + 2).for_each(|place| self.observe_power(place));
    }

    fn insert_value(&mut self, place: usize, unix_nanos: UnixNanos, joules: f64) {
        let value = CounterValue {
            updated_after: unix_nanos.saturating_sub(MAX_PERIOD),
            first_read: unix_nanos,
            last_read: unix_nanos,
            joules,
        };
        self.values.insert(place, value);
        self.limit_update(place);
        self.remove_uncertain(place);
    }

    /// Limits the time of the update to a value: the reading before it had another value.
    fn limit_update(&mut self, place: usize) {
        let before = self.before(place).copied();
        if let (Some(before), Some(value)) = (before, self.values.get_mut(place)) {
            value.updated_after = value.updated_after.max(before.last_read);
        }
    }

    /// Removes the value before one if its update is known much less exactly than those around it: interpolation is better without.
    fn remove_uncertain(&mut self, place: usize) {
        let Some(before) = place.checked_sub(1).filter(|before| *before > 0) else {
            return;
        };
        let is_uncertain = self.values[before].is_uncertain(&self.values[place]);
        if is_uncertain && !self.is_reset(before) && !self.is_reset(place) {
            self.values.remove(before);
        }
    }

    /// Records the enforced power limit of the GPU.
    pub(super) fn set_limit(&mut self, watts: f64) {
        if watts > 0.0 {
            self.limit_watts = Some(watts);
        }
    }

    /// Deletes values that intervals from `unix_nanos` on do not need, and the oldest above `most`.
    pub(super) fn expire(&mut self, unix_nanos: UnixNanos, most: usize) {
        // The update time of a value follows from the value before it.
        while self.values.len() > most.max(3)
            || self
                .values
                .get(2)
                .is_some_and(|value| value.first_read <= unix_nanos)
        {
            self.values.pop_front();
        }
    }

    /// Returns until when later readings do not change the energy, or `None` without readings.
    pub(super) fn newest(&self) -> Option<UnixNanos> {
        let newest = self.values.back()?;
        let before = self.before(self.values.len() - 1);
        let before = before.filter(|before| newest.is_uncertain(before));
        Some(before.unwrap_or(newest).first_read)
    }

    /// Returns the energy in `window`, whose borders are known to `resolution_nanos`. The interval of a reset is not covered.
    pub(super) fn energy(&self, window: Window, resolution_nanos: u64) -> Measured {
        let mut measured = Measured::default();
        for covered in self.covered(window) {
            let (start, end) = (self.estimate(covered.start), self.estimate(covered.end));
            measured.amount += (end.joules - start.joules).max(0.0);
            // An underestimate at the start is an overestimate of the difference.
            measured.error += end.error + start.error.reversed();
            measured.nanos += covered.nanos();
        }
        if measured.nanos > 0 {
            let joules = 2.0 * self.max_watts() * resolution_nanos as f64 / 1e9;
            measured.error += ErrorBound {
                below: joules,
                above: joules,
            };
        }
        measured
    }

    /// Returns the mean power between the readings around a moment, or `None` if it does not lie between two.
    pub(super) fn power_at(&self, unix_nanos: UnixNanos) -> Option<f64> {
        let place = self.values.partition_point(|value| value.first_read < unix_nanos);
        let (before, after) = (self.before(place)?, self.values.get(place)?);
        let joules = after.joules - before.joules;
        (joules >= 0.0).then(|| joules / secs(before.first_read, after.first_read))
    }

    /// Returns the times of the updates that were read in `window`.
    pub(super) fn times_in(&self, window: Window) -> impl Iterator<Item = UnixNanos> {
        let start = self
            .values
            .partition_point(|value| value.first_read <= window.start);
        self.values
            .range(start..)
            .map(|value| value.first_read)
            .take_while(move |time| *time < window.end)
    }

    /// Returns the parts of `window` between readings without a reset.
    fn covered(&self, window: Window) -> Vec<Window> {
        let first = self
            .values
            .partition_point(|value| value.first_read <= window.start);
        let mut parts: Vec<Window> = Vec::new();
        for place in first.saturating_sub(1)..self.values.len() {
            let value = self.values[place];
            if value.first_read > window.end {
                break;
            }
            let until = self.next(place).map_or(value.last_read, |next| next.first_read);
            let Some(part) = Window::new(value.first_read, until).overlap(window) else {
                continue;
            };
            match parts
                .last_mut()
                .filter(|last| last.end == part.start && !self.is_reset(place))
            {
                Some(last) => last.end = part.end,
                None => parts.push(part),
            }
        }
        parts
    }

    /// Returns the energy until a moment that readings cover.
    fn estimate(&self, unix_nanos: UnixNanos) -> Estimate {
        let after = self
            .values
            .partition_point(|value| value.first_read <= unix_nanos);
        let Some((place, value)) = after
            .checked_sub(1)
            .and_then(|place| Some((place, self.values.get(place)?)))
        else {
            return Estimate::default();
        };
        let (min_watts, max_watts) = (self.min_watts(), self.max_watts());
        let mut joules = value.joules;
        let mut lowest = value.joules + min_watts * secs(value.first_read, unix_nanos);
        let mut highest = value.joules + max_watts * secs(value.updated_after, unix_nanos);
        if let Some(next) = self.next(place) {
            let share = secs(value.first_read, unix_nanos) / secs(value.first_read, next.first_read);
            joules += (next.joules - value.joules) * share;
            lowest = lowest.max(next.joules - max_watts * secs(unix_nanos, next.first_read));
            highest = highest.min(if unix_nanos <= next.updated_after {
                next.joules - min_watts * secs(unix_nanos, next.updated_after)
            } else {
                next.joules + max_watts * secs(next.updated_after, unix_nanos)
            });
            if let Some(later) = self.next(place + 1) {
                highest = highest.min(later.joules);
                lowest = lowest.max(later.joules - max_watts * secs(unix_nanos, later.first_read));
            }
        }
        let joules = joules.min(highest).max(lowest);
        Estimate {
            joules,
            error: ErrorBound {
                below: (joules - lowest).max(0.0),
                above: (highest - joules).max(0.0),
            },
        }
    }

    /// Returns the value after one, or `None` for the last value and before a counter reset.
    fn next(&self, place: usize) -> Option<CounterValue> {
        let next = *self.values.get(place + 1)?;
        (!self.is_reset(place + 1)).then_some(next)
    }

    /// Returns the value before one.
    fn before(&self, place: usize) -> Option<&CounterValue> {
        self.values.get(place.checked_sub(1)?)
    }

    /// Returns whether the counter was reset before a value.
    fn is_reset(&self, place: usize) -> bool {
        self.before(place)
            .is_some_and(|before| self.values[place].joules < before.joules)
    }

    /// Records the mean power between a value and the one before it.
    fn observe_power(&mut self, place: usize) {
        let values = self.before(place).zip(self.values.get(place));
        let Some((&old, &new)) = values else { return };
        let watts = (new.joules - old.joules) / secs(old.updated_after, new.first_read);
        if watts < 0.0 || !watts.is_finite() {
            return;
        }
        self.highest_watts = self.highest_watts.max(watts);
        // The time of the first update of all is not known.
        if u128::from(old.uncertainty()) < MAX_PERIOD.as_nanos() {
            self.lowest_watts = Some(self.lowest_watts.map_or(watts, |lowest| lowest.min(watts)));
        }
    }

    /// Returns the lowest power that the GPU can have over an update period; zero without a known limit.
    fn min_watts(&self) -> f64 {
        let seen = BELOW_SEEN * self.lowest_watts.unwrap_or_default();
        seen.min(IDLE * self.limit_watts.unwrap_or_default())
    }

    /// Returns the highest power that the GPU can have over an update period.
    fn max_watts(&self) -> f64 {
        match self.limit_watts {
            Some(limit) => (ABOVE_LIMIT * limit).max(self.highest_watts),
            None => ABOVE_SEEN * self.highest_watts,
        }
    }
}

/// Returns the seconds from one time to a later one; zero if it is earlier.
fn secs(from: UnixNanos, to: UnixNanos) -> f64 {
    to.nanos_since(from) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> UnixNanos {
        UnixNanos(((10.0 + secs) * 1e9) as u64)
    }

    fn counter(readings: &[(f64, f64)]) -> EnergyCounter {
        let mut counter = EnergyCounter::default();
        counter.set_limit(700.0);
        for (secs, joules) in readings {
            counter.insert(at(*secs), *joules);
        }
        counter
    }

    #[test]
    fn error_bound_covers_an_energy_update_not_yet_observed() {
        let counter = counter(&[(0.0, 0.0), (0.9, 0.0), (1.0, 100.0), (1.9, 100.0), (2.0, 200.0)]);
        let highest = |secs| {
            let estimate = counter.estimate(at(secs));
            estimate.joules + estimate.error.above
        };
        assert!(highest(0.95) >= 100.0 + 0.05 * ABOVE_LIMIT * 700.0 - 1e-6);
        assert!(highest(0.5) < 100.0, "the GPU draws power until the update");
    }

    #[test]
    fn late_readings_never_make_an_error_bound_negative() {
        let on_time = [(0.0, 0.0), (0.3, 0.0), (0.4, 100.0), (0.7, 100.0), (0.8, 200.0)];
        let mut counter = counter(&on_time);
        assert!(counter.min_watts() > 50.0, "{} W", counter.min_watts());
        // In the last 50 ms the GPU drew less.
        counter.insert(at(0.75), 199.9);
        for secs in [0.35, 0.5, 0.72, 0.76, 0.79] {
            let error = counter.estimate(at(secs)).error;
            assert!(error.below >= 0.0 && error.above >= 0.0, "{secs}: {error:?}");
        }
        assert!(counter.min_watts() < 1.0, "{} W", counter.min_watts());
    }
}
