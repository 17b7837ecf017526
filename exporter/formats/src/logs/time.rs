//! Parses times of training logs: `2026-11-21 00:18:40.978996216`, and absl's `1121 00:33:07.258122` without a year.
//!
//! Most logs print local times without their zone; [`LoggedTime`] keeps that.

use jiff::civil::Date;
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::LoggedTime;

use super::timestamp;

/// Parses a time, or returns `None`. Fewer digits, a decimal comma, a `T` and a `Z` are accepted.
pub(crate) fn logged(text: &str) -> Option<LoggedTime> {
    let zoned = text.strip_suffix('Z').and_then(local_nanos);
    zoned
        .map(|nanos| LoggedTime::Utc(UnixNanos(nanos)))
        .or_else(|| local_nanos(text).map(LoggedTime::Local))
}

/// Returns the nanoseconds from 1970 to a time without a zone, as if it were UTC.
pub(crate) fn local_nanos(text: &str) -> Option<u64> {
    let (date, clock) = text.split_at_checked(11)?;
    let bytes = date.as_bytes();
    let is_separated = matches!([bytes[4], bytes[7]], [b'-', b'-'] | [b'/', b'/']);
    if !is_separated || !matches!(bytes[10], b' ' | b'T') {
        return None;
    }
    let date = (
        digits(&bytes[0..4])?,
        digits(&bytes[5..7])?,
        digits(&bytes[8..10])?,
    );
    nanos_at(date, clock_nanos(clock.as_bytes())?)
}

/// Returns the nanoseconds from 1970 to a time of a day.
fn nanos_at((year, month, day): (u64, u64, u64), clock_nanos: u64) -> Option<u64> {
    let date = Date::new(
        year.try_into().ok()?,
        month.try_into().ok()?,
        day.try_into().ok()?,
    );
    let secs = date.ok()?.duration_since(Date::constant(1970, 1, 1)).as_secs();
    u64::try_from(secs)
        .ok()?
        .checked_mul(NANOS_OF_SECOND)?
        .checked_add(clock_nanos)
}

/// Returns the nanoseconds from midnight to a clock time. Digits after the ninth decimal place are cut off.
fn clock_nanos(text: &[u8]) -> Option<u64> {
    let (clock, fraction) = text.split_at_checked(8)?;
    if [clock[2], clock[5]] != *b"::" {
        return None;
    }
    let part = |range: std::ops::Range<usize>| digits(&clock[range]);
    let (hour, minute, second) = (part(0..2)?, part(3..5)?, part(6..8)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = ((hour * 60 + minute) * 60 + second) * NANOS_OF_SECOND;
    if fraction.is_empty() {
        return Some(seconds);
    }
    let places = fraction
        .strip_prefix(b".")
        .or_else(|| fraction.strip_prefix(b","))?;
    digits(places)?;
    let nine = places.iter().chain(std::iter::repeat(&b'0')).take(9);
    Some(nine.fold(0, |nanos, digit| nanos * 10 + u64::from(digit - b'0')) + seconds)
}

/// Returns the nanoseconds from 1970 to absl's `1121 00:33:07.258122`, as if it were UTC, in the latest year in which it is not
/// in the future of `near_unix_nanos`.
pub(crate) fn absl_unix_nanos(text: &str, near_unix_nanos: UnixNanos) -> Option<u64> {
    let (date, clock) = text.split_at_checked(4)?;
    let (month, day) = date.split_at_checked(2)?;
    let clock = clock.strip_prefix(' ')?;
    let (month, day) = (digits(month.as_bytes())?, digits(day.as_bytes())?);
    let clock_nanos = clock_nanos(clock.as_bytes())?;
    timestamp::in_latest_year(near_unix_nanos, |year| nanos_at((year, month, day), clock_nanos))
}

const NANOS_OF_SECOND: u64 = 1_000_000_000;

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u64::from(byte - b'0'))
    })
}

#[cfg(test)]
pub(super) fn unix_nanos(text: &str) -> Option<u64> {
    logged(text).map(|time| pulsetrain_record::UsedTimezone::default().instant(time).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_a_zone_is_not_local() {
        assert_eq!(
            logged("1970-01-01T00:00:01Z"),
            Some(LoggedTime::Utc(UnixNanos(1_000_000_000)))
        );
        assert_eq!(
            logged("1970-01-01T00:00:01"),
            Some(LoggedTime::Local(1_000_000_000))
        );
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(unix_nanos("1970-01-01 00:00:00.000000001"), Some(1));
        assert_eq!(
            unix_nanos("2026-11-21 00:18:40.978996216"),
            Some(1_795_220_320_978_996_216)
        );
        assert_eq!(
            unix_nanos("2024-02-29T12:00:00.5Z"),
            Some(1_709_208_000_500_000_000)
        );
        assert_eq!(unix_nanos("1970-01-01 00:00:01,25"), Some(1_250_000_000));
        assert_eq!(
            unix_nanos("1970-01-01T00:00:00.123456789987654321"),
            Some(123_456_789)
        );
    }

    #[test]
    fn date_without_a_year_is_not_in_the_future() {
        let new_year = UnixNanos(unix_nanos("2027-01-01 00:00:05").unwrap());
        assert_eq!(
            absl_unix_nanos("1231 23:59:59.5", new_year),
            unix_nanos("2026-12-31 23:59:59.5")
        );
        assert_eq!(
            absl_unix_nanos("0101 00:00:01", new_year),
            unix_nanos("2027-01-01 00:00:01")
        );
        assert_eq!(
            absl_unix_nanos("0229 00:00:01", new_year),
            unix_nanos("2024-02-29 00:00:01")
        );
        assert_eq!(absl_unix_nanos("0000 00:00:1795221162.374285", new_year), None);
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026-11-21",
            "2026-13-21 00:00:00",
            "2026-02-29 00:00:00",
            "2026-11-21 00:00:00.x",
            "2026-11-21 00:00:00 PST",
            "2026-11-21 00:00:00.Z",
            "2026-11-21 0:00:00.5",
            "2026-11-21 24:00:00",
            "2026-11-21 00:00:00.1234567890123456789",
        ] {
            assert_eq!(unix_nanos(text), None, "{text:?}");
        }
    }
}
