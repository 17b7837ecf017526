//! Infers the time zone of a growing log: compares its newest time with the clock at the time of the write.

use std::time::Duration;

use jiff::tz::Offset;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Timezone, TimezoneReason, UsedTimezone};

mod stamp;

use self::stamp::Stamp;

/// The number of bytes at the end of a log that are searched for its newest time.
pub const NEWEST_BYTES: usize = 64 << 10;

/// The maximum lead of a time over the clock that judges it: clocks of file systems and machines differ.
const MAX_LEAD: Duration = Duration::from_secs(60);

/// The maximum age of the newest time: lines without a time may follow it.
const MAX_AGE: Duration = Duration::from_secs(600);

/// Offsets of zones are multiples of this.
const QUARTER_NANOS: i64 = 900 * 1_000_000_000;

/// The offsets that zones have, in quarter hours: UTC-12:00 to UTC+14:00.
const QUARTERS: std::ops::RangeInclusive<i64> = -48..=56;

/// A time without a line for longer than this may hide a change of the offset.
const CHANGE_AGE: Duration = Duration::from_secs(24 * 3600);

/// Zones with daylight-saving time. If two zones have the same offsets before and after a change, the one that changes later is
/// first.
const CHANGING_ZONES: [&str; 16] = [
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Anchorage",
    "America/Halifax",
    "America/St_Johns",
    "America/Santiago",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Helsinki",
    "Asia/Jerusalem",
    "Australia/Sydney",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
];

/// Returns the zone in which the newest time of a text is plausible, or `None`. The text was written at the given time.
///
/// The zone of this machine and UTC come first, because their clocks are those of most trainers. Any other offset has to fit the
/// last line to the minute.
pub fn infer(text: &[u8], written_unix_nanos: UnixNanos) -> Option<UsedTimezone> {
    infer_on(Timezone::parse("local").ok(), text, written_unix_nanos)
}

fn infer_on(machine: Option<Timezone>, text: &[u8], written_unix_nanos: UnixNanos) -> Option<UsedTimezone> {
    let newest = stamp::newest(
        &text[text.len().saturating_sub(NEWEST_BYTES)..],
        written_unix_nanos,
    )?;
    let known = [machine, Some(Timezone::default())];
    let mut known = known.into_iter().flatten();
    let zone = known.find(|zone| fits(zone, newest, written_unix_nanos, MAX_AGE));
    let zone = zone.or_else(|| {
        let ahead = newest.local_unix_nanos as i64 - written_unix_nanos.0 as i64;
        newest.is_last.then(|| fixed(ahead))?
    });
    zone.map(|zone| UsedTimezone::new(zone, TimezoneReason::Inferred))
}

/// Returns the zone of a log's writer after a change of its UTC offset: the text no longer fits the inferred zone, but a zone with
/// daylight-saving time that had the same offset at `fitted_unix_nanos`, or a day ago. Returns `None` if the zone still fits, or
/// if no zone has this change.
pub fn infer_after_change(
    used: &UsedTimezone,
    fitted_unix_nanos: UnixNanos,
    text: &[u8],
    written_unix_nanos: UnixNanos,
) -> Option<UsedTimezone> {
    let newest = stamp::newest(text, written_unix_nanos)?;
    if !newest.is_last || fits(&used.zone, newest, written_unix_nanos, MAX_AGE) {
        return None;
    }
    let before = fitted_unix_nanos
        .min(written_unix_nanos.saturating_sub(CHANGE_AGE))
        .0;
    let zones = CHANGING_ZONES
        .iter()
        .filter_map(|name| Timezone::parse(name).ok());
    let mut changed = zones.filter(|zone| zone.instant(before) == used.zone.instant(before));
    let zone = changed.find(|zone| fits(zone, newest, written_unix_nanos, MAX_LEAD))?;
    Some(UsedTimezone { zone, ..used.clone() })
}

/// Returns whether a time of a zone is plausible in a text that was written then: `max_age` old, at most.
fn fits(zone: &Timezone, time: Stamp, written_unix_nanos: UnixNanos, max_age: Duration) -> bool {
    let (first, second) = zone.instants(time.local_unix_nanos);
    [first, second].into_iter().any(|instant| {
        let late = written_unix_nanos.0 as i64 - instant.0 as i64;
        (-(MAX_LEAD.as_nanos() as i64)..=max_age.as_nanos() as i64).contains(&late)
    })
}

/// Returns the fixed zone that is about this many nanoseconds ahead of UTC.
fn fixed(ahead_nanos: i64) -> Option<Timezone> {
    let quarters = (ahead_nanos + QUARTER_NANOS / 2).div_euclid(QUARTER_NANOS);
    let rest = ahead_nanos - quarters * QUARTER_NANOS;
    let is_plausible = QUARTERS.contains(&quarters) && rest.unsigned_abs() <= MAX_LEAD.as_nanos() as u64;
    let offset = Offset::from_seconds(i32::try_from(quarters * 900).ok()?).ok()?;
    is_plausible.then(|| Timezone::fixed(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21 12:00:00 UTC.
    const NOON: UnixNanos = UnixNanos(1_795_262_400_000_000_000);

    fn name(text: &str, written: UnixNanos) -> Option<String> {
        infer_on(None, text.as_bytes(), written).map(|used| used.zone.name().to_owned())
    }

    #[test]
    fn line_written_just_now_reveals_its_utc_offset() {
        for (line, offset) in [
            (
                "[titan] 2026-11-21 07:00:00,088 - root - INFO - step: 1\n",
                "-05:00",
            ),
            ("2026-11-21 17:30:01 step 1\n", "+05:30"),
            ("2026-11-21 17:44:59.5 step 1\n", "+05:45"),
            ("I1122 01:59:58.624218 14 metric_logger.py:230] text\n", "+14:00"),
        ] {
            assert_eq!(name(line, NOON), Some(offset.to_owned()), "{line}");
        }
    }

    #[test]
    fn time_that_matches_no_utc_offset_yields_no_timezone() {
        for line in [
            "2026-11-21 07:07:00 step 1\n",
            "2026-11-20 20:00:00 step 1\n",
            "2026-11-22 04:00:00 step 1\n",
            // Not written last: it may be hours old.
            "2026-11-21 07:00:00 start\nstep 1\n",
            "2026-11-21T07:00:00-05:00 step 1\n",
        ] {
            assert_eq!(name(line, NOON), None, "{line}");
        }
    }

    #[test]
    fn time_of_a_few_minutes_ago_matches_only_the_local_zone_or_utc() {
        let new_york = || Timezone::parse("America/New_York").ok();
        for (time, machine, zone) in [
            ("12:00:00", None, "UTC"),
            ("12:00:00", new_york(), "UTC"),
            ("07:00:00", new_york(), "America/New_York"),
        ] {
            let text = format!("2026-11-21 {time} start\nstep 1\n");
            let used = infer_on(
                machine,
                text.as_bytes(),
                NOON.saturating_add(Duration::from_secs(300)),
            )
            .unwrap();
            assert_eq!((used.zone.name(), used.reason), (zone, TimezoneReason::Inferred));
        }
    }

    fn nanos(time: &str) -> UnixNanos {
        let time: jiff::Timestamp = time.parse().unwrap();
        UnixNanos(time.as_nanosecond() as u64)
    }

    #[test]
    fn machine_zone_fits_in_both_of_the_repeated_hours() {
        for written in ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"] {
            let new_york = Timezone::parse("America/New_York").ok();
            let used = infer_on(new_york, b"2026-11-01 01:30:00 step 1\n", nanos(written)).unwrap();
            assert_eq!(used.zone.name(), "America/New_York", "{written}");
        }
    }

    #[test]
    fn changed_offset_reveals_the_zone_of_the_writer() {
        for (zone, time, written, changed) in [
            (
                "-04:00",
                "2026-11-01 01:00:01",
                "2026-11-01T06:00:01Z",
                Some("America/New_York"),
            ),
            (
                "UTC",
                "2027-03-28 02:00:01",
                "2027-03-28T01:00:01Z",
                Some("Europe/London"),
            ),
            (
                "+03:00",
                "2026-10-25 03:00:01",
                "2026-10-25T01:00:01Z",
                Some("Europe/Helsinki"),
            ),
            (
                "+03:00",
                "2026-10-25 01:00:01",
                "2026-10-24T23:00:01Z",
                Some("Asia/Jerusalem"),
            ),
            ("-04:00", "2026-11-01 01:55:00", "2026-11-01T05:59:59Z", None),
            // A line that is an hour old, on another day.
            ("-04:00", "2026-10-20 01:00:01", "2026-10-20T06:00:01Z", None),
        ] {
            let used = UsedTimezone::new(Timezone::parse(zone).unwrap(), TimezoneReason::Inferred);
            let text = format!("{time} step 1\n");
            let found = infer_after_change(&used, nanos(written), text.as_bytes(), nanos(written));
            let found = found.as_ref().map(|used| used.zone.name());
            assert_eq!(found, changed, "{zone} {time}");
        }
        let winter = UsedTimezone::new(Timezone::parse("-05:00").unwrap(), TimezoneReason::Inferred);
        let fitted = nanos("2026-02-01T12:00:00Z");
        let text = b"2026-07-01 12:00:00 step 1\n";
        let found = infer_after_change(&winter, fitted, text, nanos("2026-07-01T16:00:00Z"));
        assert_eq!(
            found.unwrap().zone.name(),
            "America/New_York",
            "after a long pause"
        );
    }
}
