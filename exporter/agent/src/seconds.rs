//! Parses durations of the command line.

use std::time::Duration;

use pulsetrain_pipeline::Problem;

/// Parses a number of seconds.
///
/// # Errors
/// Not a number, or one that is negative or too large.
pub(crate) fn seconds(text: &str) -> Result<Duration, Problem> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "is not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| Problem::new(error.to_string()))
}
