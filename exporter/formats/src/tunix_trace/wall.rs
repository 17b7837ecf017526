//! Converts the times of a trace to wall-clock time. Tunix's clocks have no defined origin; only the file's name has a date.

use std::time::Duration;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_perfetto::Time;

/// The offset between the clock of a trace and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WallClock {
    /// The wall-clock time at `clock_nanos`.
    start_unix_nanos: UnixNanos,
    /// The time of the trace's clock at the same moment.
    clock_nanos: u64,
}

impl WallClock {
    /// Creates a clock that read `clock_nanos` at `start_unix_nanos`. Without a start, times count from 1970.
    pub(super) fn new(start_unix_nanos: UnixNanos, clock_nanos: u64) -> Self {
        let clock_nanos = if start_unix_nanos.is_known() {
            clock_nanos
        } else {
            0
        };
        Self {
            start_unix_nanos,
            clock_nanos,
        }
    }

    /// Converts a time of the trace's clock to the instant.
    pub(super) fn unix(&self, nanos: u64) -> UnixNanos {
        if nanos >= self.clock_nanos {
            self.start_unix_nanos
                .saturating_add(Duration::from_nanos(nanos - self.clock_nanos))
        } else {
            self.start_unix_nanos
                .saturating_sub(Duration::from_nanos(self.clock_nanos - nanos))
        }
    }

    /// Returns the nanoseconds of an event's time, regardless of its clock.
    pub(super) fn nanos(time: Time) -> u64 {
        match time {
            Time::Unix(nanos) | Time::Clock { nanos, .. } => nanos,
        }
    }
}
