//! An interval of time.

use pulsetrain_otlp::UnixNanos;

/// From a start to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: UnixNanos,
    pub(super) end: UnixNanos,
}

impl Window {
    pub(super) fn new(start: UnixNanos, end: UnixNanos) -> Self {
        Self { start, end }
    }

    /// Returns the length in nanoseconds.
    pub(super) fn nanos(self) -> u64 {
        self.end.nanos_since(self.start)
    }

    /// Returns the length in seconds.
    pub(super) fn secs(self) -> f64 {
        self.nanos() as f64 / 1e9
    }

    /// Returns the intersection with another interval, or `None` if they do not overlap.
    pub(super) fn overlap(self, other: Self) -> Option<Self> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Self { start, end })
    }
}
