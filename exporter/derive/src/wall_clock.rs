//! Rejects times that no clock can have shown yet.

use std::time::Duration;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::clock;

/// The tolerance for times after the wall clock, because the clocks of hosts differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// Returns whether a time is more than a minute after the wall clock.
pub(crate) fn is_future(time: UnixNanos) -> bool {
    time > UnixNanos::since_1970(clock::unix_now().saturating_add(CLOCK_TOLERANCE))
}
