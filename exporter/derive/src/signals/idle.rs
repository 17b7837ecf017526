//! Event time without telemetry: live telemetry that stops completely must still become a stall.
//!
//! Telemetry is live if it arrived within a minute of its own time. From then on event time follows the
//! clock, every five seconds and for at most an hour, until more telemetry arrives. Telemetry of the past has
//! no such time.

use std::time::Duration;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::clock::{self, Instant};

const LIVE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(3600);

/// Lets event time follow the clock.
#[derive(Debug, Default)]
pub(super) struct IdleClock {
    /// Set for live telemetry.
    idle: Option<Idle>,
    is_enabled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Idle {
    /// The event time of the newest telemetry, and its arrival.
    time: UnixNanos,
    since: Instant,
    due: Instant,
}

impl IdleClock {
    /// Records the arrival of telemetry whose newest time is `time`.
    pub(super) fn on_telemetry(&mut self, time: UnixNanos, now: Instant) {
        self.on_telemetry_at(time, now, clock::unix_now());
    }

    fn on_telemetry_at(&mut self, time: UnixNanos, now: Instant, unix_now: Duration) {
        let is_live = unix_now.abs_diff(Duration::from_nanos(time.0)) <= LIVE;
        self.idle = is_live.then(|| Idle {
            time,
            since: now,
            due: clock::later(now, TICK),
        });
    }

    /// Sets whether a derivation needs the time.
    pub(super) fn set_enabled(&mut self, is_enabled: bool) {
        self.is_enabled = is_enabled;
    }

    /// Returns the time of the next update of event time.
    pub(super) fn due(&self) -> Option<Instant> {
        self.idle.filter(|_| self.is_enabled).map(|idle| idle.due)
    }

    /// Returns the event time at `now`, if it is due.
    pub(super) fn tick(&mut self, now: Instant) -> Option<UnixNanos> {
        let idle = self
            .idle
            .as_mut()
            .filter(|idle| self.is_enabled && idle.due <= now)?;
        let silence = now.saturating_duration_since(idle.since);
        let time = idle.time.saturating_add(silence);
        idle.due = clock::later(now, TICK);
        if silence >= LONGEST {
            self.idle = None;
        }
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_event_time_advances_with_the_clock_for_at_most_an_hour() {
        let (start, unix_now) = (clock::now(), Duration::from_secs(1_000_000));
        let mut idle = IdleClock::default();
        let newest = UnixNanos(999_990_000_000_000);
        idle.on_telemetry_at(newest, start, unix_now);
        assert_eq!(idle.due(), None, "nobody wants to know");
        idle.set_enabled(true);
        assert_eq!(idle.tick(start + Duration::from_secs(4)), None);
        let times = (1..2000)
            .filter_map(|tick| idle.tick(start + tick * TICK))
            .collect::<Vec<_>>();
        assert_eq!(times[0], newest.saturating_add(TICK));
        assert_eq!(
            (times.len(), times.last()),
            (720, Some(&newest.saturating_add(LONGEST)))
        );
        assert_eq!(idle.due(), None);
    }

    #[test]
    fn old_telemetry_starts_no_idle_clock() {
        let mut idle = IdleClock::default();
        idle.set_enabled(true);
        idle.on_telemetry_at(UnixNanos(0), clock::now(), Duration::from_secs(61));
        assert_eq!(idle.due(), None);
    }
}
