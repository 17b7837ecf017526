//! Times as training logs print them: `2026-11-21 00:18:40.978996216`, and absl's `1121 00:33:07.258122` without a year.
//!
//! No log says its time zone, so all are read as UTC, which is what clusters run on.

/// Nanoseconds since 1970; `None` where the text is no time. Fewer digits, a decimal comma, a `T` and a `Z` are
/// taken too.
pub(super) fn unix_nanos(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| digits(bytes.get(range)?);
    let separated = bytes.len() >= 19
        && [bytes[4], bytes[7], bytes[13], bytes[16]] == *b"--::"
        && matches!(bytes[10], b' ' | b'T');
    if !separated {
        return None;
    }
    let date = (number(0..4)?, number(5..7)?, number(8..10)?);
    nanos_at(date, clock_nanos(&bytes[11..])?)
}

/// Nanoseconds since 1970 at a time of a day.
fn nanos_at((year, month, day): (u64, u64, u64), clock_nanos: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    days_since_1970(year, month, day)?
        .checked_mul(NANOS_OF_DAY)?
        .checked_add(clock_nanos)
}

/// Nanoseconds since midnight of `00:18:40.978996216`.
fn clock_nanos(text: &[u8]) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| digits(text.get(range)?);
    let (hour, minute, second) = (number(0..2)?, number(3..5)?, number(6..8)?);
    if hour > 23 || minute > 59 || second > 60 || [text[2], text[5]] != *b"::" {
        return None;
    }
    let fraction = fraction_nanos(&text[8..])?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction)
}

/// Nanoseconds since 1970 of absl's `1121 00:33:07.258122`, in the year that brings it nearest to `near_unix_nanos`.
pub(super) fn absl_unix_nanos(text: &str, near_unix_nanos: u64) -> Option<u64> {
    let (date, clock) = text.split_at_checked(4)?;
    let (month, day) = date.split_at_checked(2)?;
    let clock = clock.strip_prefix(' ')?;
    let (month, day) = (digits(month.as_bytes())?, digits(day.as_bytes())?);
    let clock_nanos = clock_nanos(clock.as_bytes())?;
    let year = 1970 + near_unix_nanos / NANOS_OF_YEAR;
    let times = (year.saturating_sub(1).max(1970)..=year + 1)
        .filter_map(|year| nanos_at((year, month, day), clock_nanos));
    times.min_by_key(|time| time.abs_diff(near_unix_nanos))
}

const NANOS_OF_DAY: u64 = 86_400_000_000_000;
const NANOS_OF_YEAR: u64 = 31_556_952_000_000_000;

/// The nanoseconds of `.978996216`, or zero where there is no fraction.
fn fraction_nanos(rest: &[u8]) -> Option<u64> {
    let rest = rest.strip_suffix(b"Z").unwrap_or(rest);
    let Some(fraction) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) else {
        return rest.is_empty().then_some(0);
    };
    let kept = &fraction[..fraction.len().min(9)];
    digits(fraction)?;
    Some(digits(kept)? * 10u64.pow(9 - kept.len() as u32))
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u64::from(byte - b'0'))
    })
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar; `None` before 1970. The algorithm is
/// `days_from_civil` of <https://howardhinnant.github.io/date_algorithms.html>.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn a_date_without_a_year_takes_the_nearest() {
        let new_year = unix_nanos("2027-01-01 00:00:05").unwrap();
        assert_eq!(
            absl_unix_nanos("1231 23:59:59.5", new_year),
            unix_nanos("2026-12-31 23:59:59.5")
        );
        assert_eq!(
            absl_unix_nanos("0101 00:00:01", new_year),
            unix_nanos("2027-01-01 00:00:01")
        );
        assert_eq!(absl_unix_nanos("0000 00:00:1795221162.374285", new_year), None);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026-11-21",
            "2026-13-21 00:00:00",
            "2026-11-21 00:00:00.x",
            "2026-11-21 00:00:00 PST",
        ] {
            assert_eq!(unix_nanos(text), None, "{text:?}");
        }
    }
}
