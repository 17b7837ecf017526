//! Parses the times of a log of unknown format.

use jiff::{Timestamp, civil, fmt::strtime, tz::TimeZone};
use pulsetrain_mapping::{FieldValue, TimeForm};
use pulsetrain_otlp::UnixNanos;

use crate::logs::time;
use pulsetrain_record::LoggedTime;

/// The smallest number that is read as a time: a day of 1973.
const EARLIEST: f64 = 1e8;

/// Reads a value as a time of a form, or returns `None`.
pub(super) fn read(form: &TimeForm, value: &FieldValue<'_>) -> Option<LoggedTime> {
    match (form, value) {
        (TimeForm::Auto, value) => match (value.number(), value) {
            // A small number is a duration.
            (Some(number), _) if number < EARLIEST => None,
            (Some(number), _) => unix(number, unit_of(number)).map(LoggedTime::Utc),
            (None, FieldValue::Text(text)) => date(text),
            (None, FieldValue::Number(_)) => None,
        },
        (TimeForm::Unix(nanos), value) => unix(value.number()?, *nanos).map(LoggedTime::Utc),
        (TimeForm::Directives(directives), FieldValue::Text(text)) => directed(directives, text),
        (TimeForm::Directives(directives), FieldValue::Number(number)) => {
            directed(directives, &number.to_string())
        }
    }
}

/// Returns the unit in which a number since 1970 is a plausible time: between 1973 and 5138 for each unit.
fn unit_of(number: f64) -> f64 {
    match number {
        ..1e11 => 1e9,
        ..1e14 => 1e6,
        ..1e17 => 1e3,
        _ => 1.0,
    }
}

fn unix(number: f64, nanos: f64) -> Option<UnixNanos> {
    if !(number >= 0.0 && number * nanos < 1.8e19) {
        return None;
    }
    // The integer part is converted separately, which keeps more digits of the fraction.
    let seconds = number.trunc();
    let fraction = ((number - seconds) * nanos).round();
    Some(UnixNanos(seconds as u64 * nanos as u64 + fraction as u64))
}

/// Parses a text of the form `auto`.
fn date(text: &str) -> Option<LoggedTime> {
    // The usual form first: parsing a zone takes longer.
    time::logged(text)
        .or_else(|| since_1970(&text.parse().ok()?).map(|nanos| LoggedTime::Utc(UnixNanos(nanos))))
}

fn directed(directives: &str, text: &str) -> Option<LoggedTime> {
    let parsed = strtime::parse(directives, text).ok()?;
    if let Ok(timestamp) = parsed.to_timestamp() {
        return since_1970(&timestamp).map(|nanos| LoggedTime::Utc(UnixNanos(nanos)));
    }
    let in_utc = |date: civil::DateTime| date.to_zoned(TimeZone::UTC);
    let local = parsed.to_datetime().and_then(in_utc).ok()?;
    since_1970(&local.timestamp()).map(LoggedTime::Local)
}

fn since_1970(timestamp: &Timestamp) -> Option<u64> {
    u64::try_from(timestamp.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_record::UsedTimezone;

    const NOON: u64 = 1_795_262_400_250_000_000;

    fn read(form: &str, text: &str) -> Option<u64> {
        let time = super::read(&TimeForm::parse(form).unwrap(), &FieldValue::parse(text))?;
        Some(UsedTimezone::default().instant(time).0)
    }

    #[test]
    fn only_times_with_a_zone_resolve_to_instants() {
        let read = |form: &str, text| super::read(&TimeForm::parse(form).unwrap(), &FieldValue::parse(text));
        for (form, text) in [
            ("auto", "2026-11-21 12:00:00,250"),
            ("%d/%m/%Y %H:%M:%S%.f", "21/11/2026 12:00:00.25"),
        ] {
            assert_eq!(read(form, text), Some(LoggedTime::Local(NOON)), "{form}: {text}");
        }
        for (form, text) in [
            ("auto", "2026-11-21T12:00:00.25Z"),
            ("auto", "1795262400.25"),
            ("%d/%m/%Y %H:%M:%S%.f %z", "21/11/2026 14:00:00.25 +0200"),
        ] {
            assert_eq!(
                read(form, text),
                Some(LoggedTime::Utc(UnixNanos(NOON))),
                "{form}: {text}"
            );
        }
    }

    #[test]
    fn every_time_format_is_parsed() {
        for (form, text) in [
            ("auto", "2026-11-21T12:00:00.25Z"),
            ("auto", "2026-11-21T13:00:00.25+01:00"),
            ("auto", "2026-11-21 12:00:00,250"),
            ("auto", "1795262400.25"),
            ("auto", "1795262400250"),
            ("unix_ms", "1795262400250"),
            ("unix_us", "1795262400250000"),
            ("%d/%m/%Y %H:%M:%S%.f", "21/11/2026 12:00:00.25"),
            ("%d/%m/%Y %H:%M:%S%.f %z", "21/11/2026 14:00:00.25 +0200"),
        ] {
            assert_eq!(read(form, text), Some(NOON), "{form}: {text}");
        }
    }

    #[test]
    fn invalid_times_are_not_parsed() {
        for (form, text) in [
            ("auto", "yesterday"),
            ("auto", "-1"),
            ("auto", "nan"),
            ("unix_s", "1e300"),
            ("unix_ns", "noon"),
            ("%Y-%m-%d", "21"),
        ] {
            assert_eq!(read(form, text), None, "{form}: {text}");
        }
        assert!(
            TimeForm::parse("unix")
                .unwrap_err()
                .remedy()
                .is_some_and(|remedy| remedy.contains("unix_ms"))
        );
        assert!(TimeForm::parse("%!").is_err());
    }
}
