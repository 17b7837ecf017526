//! Detects that the clock of the machine was set, by comparison with the monotonic clock.

use std::time::Duration;

use pulsetrain_pipeline::clock::Instant;

/// A smaller difference is a correction by NTP, which slews the clock.
const STEP: Duration = Duration::from_secs(5);

/// The last pair of times of both clocks.
#[derive(Debug, Default)]
pub(super) struct ClockWatch(Option<(Duration, Instant)>);

impl ClockWatch {
    /// Returns a message if the clock was set since the last call.
    pub(super) fn observe(&mut self, unix_now: Duration, now: Instant) -> Option<String> {
        let (unix_before, before) = self.0.replace((unix_now, now))?;
        let expected = unix_before + now.saturating_duration_since(before);
        let step = unix_now.abs_diff(expected);
        let secs = step.as_secs_f64();
        // The monotonic clock of Linux stops while the machine is suspended.
        let change = match unix_now < expected {
            true => format!("set back by {secs:.0} s"),
            false => format!("set forward by {secs:.0} s, or the machine was suspended"),
        };
        (step >= STEP).then(|| {
            format!(
                "the clock of this machine was {change}: log lines without a time of their own have times of the new clock"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_pipeline::clock;

    use super::*;

    #[test]
    fn step_of_the_clock_is_reported_once_and_its_drift_is_not() {
        let mut watch = ClockWatch::default();
        let (start, secs) = (clock::now(), Duration::from_secs);
        let mut messages = [(0, 1000), (10, 1011), (20, 900), (30, 910), (40, 1000)]
            .map(|(after, unix)| watch.observe(secs(unix), start + secs(after)));
        assert!(messages[2].take().unwrap().contains("set back by 121 s"));
        assert!(messages[4].take().unwrap().contains("set forward by 80 s"));
        assert_eq!(messages, [const { None }; 5]);
    }
}
