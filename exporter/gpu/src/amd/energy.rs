//! The check of an energy counter against the power: on some GPUs (MI100, MI200) its unit is not the documented one.

use std::time::Duration;

use pulsetrain_pipeline::clock::Instant;

/// A unit of the counter in joules: 2^-16.
pub(super) const JOULES: f64 = 1.0 / 65536.0;

pub(super) const ABSENT: &str =
    "the GPU has no energy counter in a known table, or its counter does not agree with its power";

/// The minimum time over which the power is integrated.
const WINDOW: Duration = Duration::from_secs(1);
/// The largest relative difference between counter and power: the power is sampled once per pass, and the sensor's own error is
/// several percent.
const TOLERANCE: f64 = 0.2;
/// The number of consecutive deviations to the same side after which the counter is rejected.
const MAX_DEVIATIONS: u32 = 5;

/// The state of the check of a counter.
#[derive(Debug, Default)]
pub(super) struct Energy {
    last: Option<Last>,
    window: Option<Window>,
    has_agreed: bool,
    /// The sign and the number of the last consecutive deviations.
    misses: (f64, u32),
}

/// The last reading.
#[derive(Clone, Copy, Debug)]
struct Last {
    watts: f64,
    at: Instant,
}

/// The window that is being integrated.
#[derive(Clone, Copy, Debug)]
struct Window {
    raw: u64,
    at: Instant,
    joules: f64,
}

/// Whether a counter can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No window is complete.
    Unknown,
    /// It agrees with the power.
    Agrees,
    /// It deviates from the power in several consecutive windows.
    Disagrees,
}

impl Energy {
    /// Adds a reading of the counter and of the power at the same time, and returns the verdict.
    pub(super) fn check(&mut self, raw: u64, watts: f64, at: Instant) -> Verdict {
        if let (Some(last), Some(window)) = (self.last, &mut self.window) {
            let seconds = at.saturating_duration_since(last.at).as_secs_f64();
            window.joules += seconds * f64::midpoint(last.watts, watts);
        }
        self.last = Some(Last { watts, at });
        let begin = Window { raw, at, joules: 0.0 };
        let window = *self.window.get_or_insert(begin);
        if at.saturating_duration_since(window.at) >= WINDOW {
            self.window = Some(begin);
            self.judge(raw.wrapping_sub(window.raw) as f64 * JOULES, window.joules);
        }
        match self {
            Self {
                misses: (_, MAX_DEVIATIONS..),
                ..
            } => Verdict::Disagrees,
            Self { has_agreed: true, .. } => Verdict::Agrees,
            _ => Verdict::Unknown,
        }
    }

    fn judge(&mut self, counted: f64, integrated: f64) {
        let excess = counted - integrated;
        if excess.abs() <= TOLERANCE * integrated {
            self.has_agreed = true;
            self.misses = (0.0, 0);
        } else if excess.signum() == self.misses.0 {
            self.misses.1 += 1;
        } else {
            self.misses = (excess.signum(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_pipeline::clock;

    use super::*;

    /// The verdicts of 30 passes a second apart at 500 W, on a counter with this unit.
    fn verdicts(joules: f64) -> Vec<Verdict> {
        let (mut energy, begin) = (Energy::default(), clock::now());
        let pass = |second: u64| {
            let raw = (500.0 * second as f64 / joules) as u64;
            energy.check(raw, 500.0, clock::later(begin, Duration::from_secs(second)))
        };
        (0..30).map(pass).collect()
    }

    #[test]
    fn energy_counter_is_used_once_it_agrees_with_the_power_reading() {
        let verdicts = verdicts(JOULES);
        assert_eq!(verdicts[0], Verdict::Unknown);
        assert!(verdicts[1..].iter().all(|verdict| *verdict == Verdict::Agrees));
    }

    #[test]
    fn energy_counter_in_an_unexpected_unit_is_never_used() {
        let verdicts = verdicts(JOULES * 4.0);
        assert!(!verdicts.contains(&Verdict::Agrees));
        assert_eq!(verdicts[29], Verdict::Disagrees);
    }

    #[test]
    fn load_that_alternates_between_passes_is_not_a_disagreement() {
        let (mut energy, begin) = (Energy::default(), clock::now());
        let mut joules = 0.0;
        for second in 0..40u64 {
            // The sensor alternates between 100 W and 700 W; the counter has the mean of 400 W.
            let watts = if second % 2 == 0 { 100.0 } else { 700.0 };
            let verdict = energy.check(
                (joules / JOULES) as u64,
                watts,
                clock::later(begin, Duration::from_secs(second)),
            );
            assert_ne!(verdict, Verdict::Disagrees);
            joules += 400.0;
        }
    }
}
