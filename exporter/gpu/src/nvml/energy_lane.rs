//! The fast lane of the energy counter: between two passes over a GPU its counter is read until it changes.
//!
//! The driver updates the counter every 10 to 500 ms, and a reading repeats the last update. The two readings around a change give
//! the time of the update. The update period is learned from consecutive changes, and the search for the next begins just before it.

use std::time::Duration;

use nvml_wrapper::{Device, sys_exports::field_id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::metric;

use super::ffi;
use crate::{
    GpuConfig,
    reading::{Cadence, Entity, Labels, Reading, Sample},
};

/// The shortest interval of reads in the search for a change.
const POLL: Duration = Duration::from_millis(2);
/// The inverse of the share of time that calls may use: a driver that answers slowly is queried less often.
const CALL_SHARE: u32 = 20;
/// The limit of a search for a change. No counter has a longer update period.
const MAX_SEARCH: Duration = Duration::from_millis(600);
/// The number of consecutive updates that may be missed before the counter is again read until it changes.
const MAX_MISSED_UPDATES: u32 = 3;
/// The delay before a counter that did not change is read again.
const UNCHANGED: Duration = Duration::from_secs(1);
/// The factor from millijoules to joules.
const MILLI: f64 = 0.001;

/// Reads the energy counter of a GPU between passes.
pub(super) struct EnergyLane {
    /// `None` if the counter is read in passes only.
    search: Option<ChangeSearch>,
    readings: Vec<CounterReading>,
    is_active: bool,
}

/// A value of the counter with the driver's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CounterReading {
    unix_nanos: UnixNanos,
    millijoules: u64,
}

/// Decides when the counter is read next, and which readings are kept.
#[derive(Debug)]
struct ChangeSearch {
    interval: Duration,
    due: Instant,
    /// When the search for a change began, when the counter was read last, and that reading.
    before: Option<(Instant, Instant, CounterReading)>,
    /// The time of the last change, and the value after it in millijoules.
    changed: Option<(Instant, u64)>,
    /// The update period; `None` until two consecutive changes were seen, and if updates are more frequent than searches.
    period: Option<Duration>,
    /// Updates in a row that were over before the search for them began.
    missed: u32,
}

impl EnergyLane {
    pub(super) fn new(config: &GpuConfig) -> Self {
        let search = (config.energy_interval <= config.interval)
            .then(|| ChangeSearch::new(config.energy_interval, clock::now()));
        Self {
            search,
            readings: Vec::new(),
            is_active: false,
        }
    }

    /// Puts the readings since the last pass before those of a pass. If the pass could not read the counter, it is not read until
    /// the next pass.
    pub(super) fn add_to(&mut self, pass: &mut Vec<Reading>) {
        let is_energy = |reading: &Reading| {
            reading.metric.ordinal == metric::GPU_ENERGY.ordinal && reading.time_unix_nanos.is_known()
        };
        self.is_active = pass.iter().any(is_energy);
        let readings = self.readings.drain(..).map(CounterReading::reading);
        if self.is_active {
            pass.splice(0..0, readings);
        }
    }

    /// Returns how long until the counter is to be read, or `None` if it is not.
    pub(super) fn wait(&self) -> Option<Duration> {
        let search = self.search.as_ref().filter(|_| self.is_active)?;
        Some(search.due.saturating_duration_since(clock::now()))
    }

    /// Reads the counter once, and returns how long the call took.
    pub(super) fn read(&mut self, device: &Device<'_>) -> Duration {
        let began = clock::now();
        let mut cells = [ffi::field(NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0)];
        let answer = ffi::field_values(device, &mut cells).and_then(|()| ffi::field_count(&cells[0]));
        let now = clock::now();
        let took = now.saturating_duration_since(began);
        match (answer, u64::try_from(cells[0].timestamp)) {
            (Ok(millijoules), Ok(microseconds)) if microseconds > 0 => {
                let reading = CounterReading {
                    unix_nanos: UnixNanos(microseconds.saturating_mul(1000)),
                    millijoules,
                };
                if let Some(search) = &mut self.search {
                    search.observe(reading, now, took, &mut self.readings);
                }
            }
            // The next pass finds out what is wrong.
            _ => self.is_active = false,
        }
        took
    }
}

impl CounterReading {
    fn reading(self) -> Reading {
        Reading {
            entity: Entity::Gpu,
            metric: &metric::GPU_ENERGY,
            labels: Labels::default(),
            value: Sample::Earlier {
                raw: self.millijoules,
                scale: MILLI,
            },
            time_unix_nanos: self.unix_nanos,
            cadence: Cadence::Tick,
        }
    }
}

impl ChangeSearch {
    fn new(interval: Duration, now: Instant) -> Self {
        Self {
            interval,
            due: now,
            before: None,
            changed: None,
            period: None,
            missed: 0,
        }
    }

    /// Adds the readings around a change to `kept`, and sets the time of the next reading.
    fn observe(
        &mut self,
        reading: CounterReading,
        now: Instant,
        took: Duration,
        kept: &mut Vec<CounterReading>,
    ) {
        let poll = POLL.max(took.saturating_mul(CALL_SHARE));
        let Some((since, last, before)) = self.before else {
            if self.skip_missed_update(reading, now, poll) {
                kept.push(reading);
            } else {
                self.before = Some((now, now, reading));
                // The next reading is at the expected time of the update.
                let wait = if self.period.is_some() { 2 * poll } else { poll };
                self.due = clock::later(now, wait);
            }
            return;
        };
        if reading.millijoules != before.millijoules {
            kept.extend([before, reading]);
            (self.before, self.missed) = (None, 0);
            if now.saturating_duration_since(last) > 3 * poll && self.expect_next(reading, now, poll) {
                // The thread woke late: the time of the update is less certain than the expected one.
                return;
            }
            let period = self.smooth(self.period(before, now), poll);
            self.period = Some(period).filter(|period| !period.is_zero());
            let wait = self.interval.max(period);
            self.changed = Some((now, reading.millijoules));
            self.due = clock::later(now, wait.saturating_sub(2 * poll).max(poll));
        } else if now.saturating_duration_since(since) < MAX_SEARCH {
            self.before = Some((since, now, reading));
            self.due = clock::later(now, poll);
        } else {
            kept.push(reading);
            (self.before, self.changed, self.period) = (None, None, None);
            self.due = clock::later(now, UNCHANGED);
        }
    }

    /// Sets the time of the next search if the update was over before this one began, as after a pass over the GPU or a late
    /// wake-up. A search for the rest of the period costs many calls. Returns whether that time was set.
    fn skip_missed_update(&mut self, reading: CounterReading, now: Instant, poll: Duration) -> bool {
        let is_missed = self
            .changed
            .is_some_and(|(_, millijoules)| millijoules != reading.millijoules);
        if !is_missed || self.missed >= MAX_MISSED_UPDATES {
            return false;
        }
        self.missed += 1;
        let is_known = self.expect_next(reading, now, poll);
        // Updates that are over again and again before they are expected have a shorter period.
        self.period = self.period.map(|period| period.saturating_sub(poll / 4));
        is_known
    }

    /// Sets the time of the next search by the time and the period of the updates before. Returns whether both are known.
    fn expect_next(&mut self, reading: CounterReading, now: Instant, poll: Duration) -> bool {
        let (Some((changed, _)), Some(period)) = (self.changed, self.period) else {
            return false;
        };
        // An update that is expected within three readings is the one that was seen: its time was a little late.
        let elapsed = now.saturating_duration_since(changed).saturating_add(3 * poll);
        let periods = elapsed.as_nanos() / period.as_nanos().max(1);
        let update = clock::later(
            changed,
            period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX)),
        );
        let update = update.min(now.checked_sub(poll).unwrap_or(now));
        self.changed = Some((update, reading.millijoules));
        let next = clock::later(update, self.interval.max(period));
        self.due = next
            .checked_sub(2 * poll)
            .unwrap_or(next)
            .max(clock::later(now, poll));
        true
    }

    /// Returns the mean of a period and those before, if they are alike: a change is seen up to two readings late.
    fn smooth(&self, period: Duration, poll: Duration) -> Duration {
        match self.period {
            Some(mean) if mean.abs_diff(period) <= 3 * poll => (mean * 7 + period) / 8,
            _ => period,
        }
    }

    /// Returns the update period: the time since the last change, if no update was missed. Else it is shorter than the interval.
    fn period(&self, before: CounterReading, now: Instant) -> Duration {
        let last = self
            .changed
            .filter(|(_, millijoules)| *millijoules == before.millijoules);
        last.map_or(Duration::ZERO, |(time, _)| now.saturating_duration_since(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Calls until two updates have shown the period, and after that.
    #[derive(Clone, Copy, Default)]
    struct Calls {
        learning: usize,
        known: usize,
    }

    impl Calls {
        fn all(self) -> usize {
            self.learning + self.known
        }
    }

    /// Reads a counter with this update period for ten seconds. Returns the calls and the readings that are kept.
    fn read(period: Option<u64>, took: Duration) -> (Calls, Vec<CounterReading>) {
        let began = clock::now();
        let mut search = ChangeSearch::new(100 * MILLISECOND, began);
        let (mut calls, mut kept) = (Calls::default(), Vec::new());
        while search.due.saturating_duration_since(began) < Duration::from_secs(10) {
            let now = clock::later(search.due, took);
            let elapsed = now.saturating_duration_since(began).as_nanos() as u64;
            let reading = CounterReading {
                unix_nanos: UnixNanos(elapsed),
                millijoules: period.map_or(7, |period| elapsed / (period * 1_000_000)),
            };
            let is_learning = kept.len() < 4;
            calls.learning += usize::from(is_learning);
            calls.known += usize::from(!is_learning);
            search.observe(reading, now, took, &mut kept);
        }
        (calls, kept)
    }

    /// The changes whose time is known to a few milliseconds.
    fn exact_changes(kept: &[CounterReading]) -> usize {
        let changes = kept
            .windows(2)
            .filter(|pair| pair[0].millijoules + 1 == pair[1].millijoules);
        changes
            .filter(|pair| pair[1].unix_nanos.nanos_since(pair[0].unix_nanos) < 5_000_000)
            .count()
    }

    #[test]
    fn energy_updates_are_located_within_milliseconds_with_few_calls() {
        for (period, most) in [
            (10, 800),
            (20, 1000),
            (50, 500),
            (100, 400),
            (150, 300),
            (500, 120),
        ] {
            let (calls, kept) = read(Some(period), MILLISECOND / 100);
            let expected = 10_000 / period.max(110) as usize;
            let exact = exact_changes(&kept);
            assert!(
                exact * 10 >= expected * 9,
                "{period}: {exact} of {expected} updates are known"
            );
            // Each of the two searches lasts a period at most.
            let learning = 2 * Duration::from_millis(period.max(100)).as_nanos() / POLL.as_nanos();
            assert!(
                calls.learning as u128 <= learning,
                "{period} ms: {}",
                calls.learning
            );
            assert!(calls.known <= most, "{period} ms: {} calls in 10 s", calls.known);
        }
    }

    #[test]
    fn update_during_a_pass_does_not_trigger_a_search_of_the_period() {
        let began = clock::now();
        let mut search = ChangeSearch::new(100 * MILLISECOND, began);
        let (mut calls, mut kept) = (0, Vec::new());
        while search.due.saturating_duration_since(began) < Duration::from_secs(10) {
            let due = search.due.saturating_duration_since(began);
            // Once a second a pass delays the search by 15 ms.
            let delay = if due.subsec_millis() >= 900 { 15 } else { 0 };
            let now = clock::later(search.due, delay * MILLISECOND);
            let elapsed = now.saturating_duration_since(began).as_nanos() as u64;
            let reading = CounterReading {
                unix_nanos: UnixNanos(elapsed),
                millijoules: elapsed / 100_000_000,
            };
            calls += 1;
            search.observe(reading, now, Duration::ZERO, &mut kept);
        }
        assert!(calls < 500, "{calls} calls in 10 s");
        let known = exact_changes(&kept);
        assert!(known > 70, "only {known} updates are known");
    }

    #[test]
    fn slow_driver_is_polled_for_at_most_five_percent_of_the_time() {
        let (calls, _) = read(Some(100), 3 * MILLISECOND);
        let calls = calls.all();
        assert!(calls * 3 <= 10_000 / 20, "{calls} calls of 3 ms in 10 s");
    }

    #[test]
    fn unchanging_counter_needs_few_calls_and_yields_few_readings() {
        let (calls, kept) = read(None, Duration::ZERO);
        assert!(calls.all() < 2_500, "{}", calls.all());
        assert!(kept.len() <= 8, "{}", kept.len());
    }
}
