//! Infers the time zone of a growing log: compares its newest time with the clock at the time of the write.

use std::time::Duration;

use jiff::tz::Offset;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Timezone, TimezoneReason, UsedTimezone};

mod stamp;

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
    let fits = |zone: &Timezone| {
        let late = written_unix_nanos.0 as i64 - zone.instant(newest.local_unix_nanos).0 as i64;
        (-(MAX_LEAD.as_nanos() as i64)..=MAX_AGE.as_nanos() as i64).contains(&late)
    };
    let zone = known.into_iter().flatten().find(fits);
    let zone = zone.or_else(|| {
        let ahead = newest.local_unix_nanos as i64 - written_unix_nanos.0 as i64;
        newest.is_last.then(|| fixed(ahead))?
    });
    zone.map(|zone| UsedTimezone::new(zone, TimezoneReason::Inferred))
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
}
