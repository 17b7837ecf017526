//! A point in time in OTLP's resolution.

use std::time::Duration;

use pulsetrain_pipeline::clock;

/// The tolerance for times after the wall clock, because the clocks of hosts differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// A time in nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UnixNanos(pub(crate) u64);

impl UnixNanos {
    /// Returns the seconds since `earlier`, negative if `earlier` is later.
    pub(crate) fn secs_since(self, earlier: Self) -> f64 {
        if self >= earlier {
            (self.0 - earlier.0) as f64 / 1e9
        } else {
            -((earlier.0 - self.0) as f64 / 1e9)
        }
    }

    /// Returns the time `secs` before this one, but not before 1970.
    pub(crate) fn minus_secs(self, secs: f64) -> Self {
        // Rounded: 0.119 s is 118,999,999.99 ns in binary.
        Self(self.0.saturating_sub((secs.max(0.0) * 1e9).round() as u64))
    }

    /// Returns the time `wait` after this one.
    pub(crate) fn after(self, wait: Duration) -> Self {
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// Whether the time is more than a minute after the wall clock.
    pub(crate) fn is_future(self) -> bool {
        Duration::from_nanos(self.0) > clock::unix_now().saturating_add(CLOCK_TOLERANCE)
    }

    /// Returns the time as seconds since 1970.
    pub(crate) fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
}
