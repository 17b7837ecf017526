//! An instant in OTLP's resolution.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// An instant: nanoseconds since 1970-01-01 UTC, the unit of every time in OTLP.
///
/// Every number but zero is an instant, so the field is public. Zero is OTLP's unknown time, [`UnixNanos::UNKNOWN`].
///
/// Writers, recorders and configurations take this type. These times remain plain `u64`:
///
/// - raw fields of a message in [`view`](crate::view), as `time_unix_nano` of protobuf;
/// - times of a trace, whose clock may count from boot, and the loops that convert them;
/// - readings of a local clock without a time zone, and times in saved state.
///
/// ```
/// use std::time::Duration;
/// use pulsetrain_otlp::UnixNanos;
///
/// let start = UnixNanos(1_795_220_320_000_000_000);
/// let end = start.saturating_add(Duration::from_millis(1500));
/// assert_eq!(end.saturating_duration_since(start), Duration::from_millis(1500));
/// assert_eq!(start.secs_since(end), -1.5);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UnixNanos(pub u64);

impl UnixNanos {
    /// The value of time fields that are not set.
    pub const UNKNOWN: Self = Self(0);
    /// The last instant, in the year 2554.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns whether the time is not [`UnixNanos::UNKNOWN`].
    #[inline]
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Returns the time `elapsed` after 1970, at most [`UnixNanos::MAX`].
    #[inline]
    pub const fn since_1970(elapsed: Duration) -> Self {
        Self(nanos(elapsed))
    }

    /// Returns the time of the system's clock. A time before 1970 is [`UnixNanos::UNKNOWN`].
    pub fn from_system_time(time: SystemTime) -> Self {
        Self::since_1970(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Returns the time `duration` after this one, at most [`UnixNanos::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// Returns the time `duration` before this one, or [`UNKNOWN`](Self::UNKNOWN) before 1970.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// Returns the time `secs` before this one, or [`UNKNOWN`](Self::UNKNOWN) before 1970. A negative number or NaN counts as zero.
    #[inline]
    #[must_use]
    pub fn minus_secs(self, secs: f64) -> Self {
        // Rounded: 0.119 s is 118,999,999.99 ns in binary.
        Self(self.0.saturating_sub((secs.max(0.0) * 1e9).round() as u64))
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// Returns the nanoseconds since `earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the seconds since `earlier`, negative if `earlier` is later.
    #[inline]
    pub fn secs_since(self, earlier: Self) -> f64 {
        if self >= earlier {
            (self.0 - earlier.0) as f64 / 1e9
        } else {
            -((earlier.0 - self.0) as f64 / 1e9)
        }
    }

    /// Returns the milliseconds since 1970, rounded down.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns the seconds since 1970.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for UnixNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Converts a duration, at most `u64::MAX`.
#[inline]
const fn nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn sums_and_differences_saturate() {
        let time = UnixNanos(u64::MAX - 1);
        assert_eq!(time.saturating_add(SECOND), UnixNanos::MAX);
        assert_eq!(time.saturating_add(Duration::MAX), UnixNanos::MAX);
        assert_eq!(time.saturating_add(Duration::from_nanos(1)), UnixNanos::MAX);
        assert_eq!(UnixNanos(5).saturating_sub(SECOND), UnixNanos::UNKNOWN);
        assert_eq!(UnixNanos(5).nanos_since(UnixNanos(7)), 0);
    }

    #[test]
    fn seconds_before_a_time_are_rounded_to_nanoseconds() {
        let time = UnixNanos(1_000_000_000);
        assert_eq!(time.minus_secs(0.119), UnixNanos(881_000_000));
        assert_eq!([-1.0, f64::NAN].map(|secs| time.minus_secs(secs)), [time, time]);
        assert_eq!(time.minus_secs(2.0), UnixNanos::UNKNOWN);
    }

    #[test]
    fn system_time_before_1970_becomes_an_unknown_time() {
        let time = UNIX_EPOCH + Duration::from_nanos(17);
        assert_eq!(UnixNanos::from_system_time(time), UnixNanos(17));
        assert!(!UnixNanos::from_system_time(UNIX_EPOCH - SECOND).is_known());
    }
}
