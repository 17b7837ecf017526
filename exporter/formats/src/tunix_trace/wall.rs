//! Converts the times of a trace to wall-clock time. Tunix's clocks have no defined origin; only the file's name has a date.

use pulsetrain_perfetto::Time;

/// The offset between the clock of a trace and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WallClock {
    /// The wall-clock time at `clock_nanos`, in nanoseconds since 1970.
    start_unix_nanos: u64,
    /// The time of the trace's clock at the same moment.
    clock_nanos: u64,
}

impl WallClock {
    /// Creates a clock that read `clock_nanos` at `start_unix_nanos`. Without a start, times count from 1970.
    pub(super) fn new(start_unix_nanos: u64, clock_nanos: u64) -> Self {
        let clock_nanos = if start_unix_nanos == 0 { 0 } else { clock_nanos };
        Self {
            start_unix_nanos,
            clock_nanos,
        }
    }

    /// Converts a time of the trace's clock to nanoseconds since 1970.
    pub(super) fn unix(&self, nanos: u64) -> u64 {
        if nanos >= self.clock_nanos {
            self.start_unix_nanos.saturating_add(nanos - self.clock_nanos)
        } else {
            self.start_unix_nanos.saturating_sub(self.clock_nanos - nanos)
        }
    }

    /// Returns the nanoseconds of an event's time, whichever clock it uses.
    pub(super) fn nanos(time: Time) -> u64 {
        match time {
            Time::Unix(nanos) | Time::Clock { nanos, .. } => nanos,
        }
    }
}
