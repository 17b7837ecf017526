//! When it was: Tunix's clocks begin anywhere, and only the name of the file says near when.

use pulsetrain_perfetto::Time;

/// Brings the times of a trace onto the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WallClock {
    /// The wall clock at `shown`, in nanoseconds since 1970.
    start: u64,
    /// What the trace's clock showed then.
    shown: u64,
}

impl WallClock {
    /// A clock that showed `shown` at `start_unix_nanos`; one without a start counts as it does, from 1970.
    pub(super) fn new(start_unix_nanos: u64, shown: u64) -> Self {
        let shown = if start_unix_nanos == 0 { 0 } else { shown };
        Self {
            start: start_unix_nanos,
            shown,
        }
    }

    /// A time of the trace's clock on the wall clock.
    pub(super) fn unix(&self, nanos: u64) -> u64 {
        if nanos >= self.shown {
            self.start.saturating_add(nanos - self.shown)
        } else {
            self.start.saturating_sub(self.shown - nanos)
        }
    }

    /// What an event's time says; a trace that ties its clock to the wall clock says it in its own.
    pub(super) fn nanos(time: Time) -> u64 {
        match time {
            Time::Unix(nanos) | Time::Clock { nanos, .. } => nanos,
        }
    }
}
