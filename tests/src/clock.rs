//! The clock of the machine.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time, in Unix nanoseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "other programs compare what is sent with their own clock"
)]
pub fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is later than 1970").as_nanos() as u64
}
