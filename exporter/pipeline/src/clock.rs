//! The clock: the only module of the workspace that reads the time of the machine.
//!
//! Waiting and measuring use [`now`], which a test can pause and advance (`tokio::time::pause`). [`unix_now`] is for
//! file times and dates, and [`unix_nanos`] for timestamps on the wire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pulsetrain_otlp::UnixNanos;
pub use tokio::time::Instant;

/// Returns the monotonic time, which does not advance in a test that has paused it.
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the time `wait` after `start`, or 30 years after it if the clock cannot represent that time.
pub fn later(start: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    start.checked_add(wait).unwrap_or_else(|| start + FAR)
}

/// Returns the wall time since 1970-01-01 UTC, or zero if the machine's clock is before 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock module: everyone else asks here"
)]
pub fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the wall time as an OTLP timestamp.
pub fn unix_nanos() -> UnixNanos {
    UnixNanos::since_1970(unix_now())
}
