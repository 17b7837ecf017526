//! The time zone of times without one: Python's logging, absl and most consoles print the local time of their machine.

use std::fmt;

use pulsetrain_otlp::UnixNanos;

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};
use serde::{Deserialize, Serialize};

/// A time in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedTime {
    /// A time with a zone.
    Utc(UnixNanos),
    /// A time without a zone: the nanoseconds since 1970 as if the local clock showed UTC.
    Local(u64),
}

/// The zone of times without one, by its name: a name of the IANA database, `UTC`, `local`, or an offset like `-05:00`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timezone {
    name: String,
    rules: TimeZone,
}

impl Eq for Timezone {}

/// The reason why a zone is used.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimezoneReason {
    /// No other source of a time zone.
    #[default]
    Default,
    /// The user named the zone.
    Named,
    /// The newest time of the log was compared with the clock when it was written.
    Inferred,
    /// The program that printed the times runs on this machine.
    Machine,
}

/// The zone in which the times of a log are interpreted, and the reason.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct UsedTimezone {
    /// The zone.
    pub zone: Timezone,
    /// The reason.
    pub reason: TimezoneReason,
    /// The number of times that occur twice, at the end of daylight-saving time.
    #[serde(skip)]
    pub ambiguous_times: u64,
    /// The instant of the last local time, in nanoseconds since 1970. It decides which of the two instants the next time has, if
    /// that time occurs twice.
    #[serde(default)]
    pub last_local_unix_nanos: u64,
}

/// The error of a name that is not a zone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimezoneError {
    /// The name is neither a zone nor an offset.
    #[error("{0:?} is not a time zone")]
    Name(String),
    /// The zone of this machine is unknown.
    #[error("the zone of this machine is not known ({0})")]
    Local(#[from] jiff::Error),
}

impl TimezoneError {
    /// Returns the remedy; the message itself is the cause only.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Name(_) => {
                "it can be a name of the IANA database such as America/New_York, UTC, local, or an offset such as -05:00"
            }
            Self::Local(_) => "set TZ, or name a zone",
        }
    }
}

impl Default for Timezone {
    fn default() -> Self {
        Self {
            name: "UTC".to_owned(),
            rules: TimeZone::UTC,
        }
    }
}

impl Timezone {
    /// Parses the name of a zone: `America/New_York`, `UTC`, `local` for that of this machine, or an offset like `-05:00`. The
    /// rules are those of the system, or the bundled ones.
    ///
    /// # Errors
    /// A name without a zone.
    pub fn parse(name: &str) -> Result<Self, TimezoneError> {
        let rules = match name {
            "UTC" | "utc" => return Ok(Self::default()),
            "local" => return Self::local(),
            _ => offset(name)
                .map_or_else(|| TimeZone::get(name), |offset| Ok(TimeZone::fixed(offset)))
                .map_err(|_| TimezoneError::Name(name.to_owned()))?,
        };
        Ok(Self {
            name: name.to_owned(),
            rules,
        })
    }

    /// Returns the zone of this machine, with its name in the IANA database if it has one.
    pub fn local() -> Result<Self, TimezoneError> {
        let rules = TimeZone::try_system()?;
        let name = rules.iana_name().unwrap_or("local").to_owned();
        Ok(match name.as_str() {
            "UTC" | "Etc/UTC" | "Etc/GMT" | "GMT" => Self::default(),
            _ => Self { name, rules },
        })
    }

    /// Returns the zone with a fixed offset from UTC.
    pub fn fixed(offset: Offset) -> Self {
        let (minutes, sign) = (
            offset.seconds().abs() / 60,
            if offset.is_negative() { '-' } else { '+' },
        );
        Self {
            name: format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
            rules: TimeZone::fixed(offset),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the instant of a local time in nanoseconds since 1970. For a time that a change to daylight-saving time skips,
    /// the offset before the change is used, and a time that occurs twice is the first of the two: RFC 5545, and jiff's
    /// `compatible`. A time before 1970 is 1970.
    pub fn instant(&self, local_unix_nanos: u64) -> UnixNanos {
        self.instants(local_unix_nanos).0
    }

    /// Returns the first and the second instant of a local time, which differ only if the time occurs twice.
    pub fn instants(&self, local_unix_nanos: u64) -> (UnixNanos, UnixNanos) {
        let ambiguous = (self.rules != TimeZone::UTC)
            .then(|| civil(local_unix_nanos))
            .flatten()
            .map(|time| self.rules.to_ambiguous_timestamp(time));
        let Some(ambiguous) = ambiguous else {
            return (UnixNanos(local_unix_nanos), UnixNanos(local_unix_nanos));
        };
        let instant = |found: Result<Timestamp, _>| {
            let nanos = found.map_or(i128::from(local_unix_nanos), Timestamp::as_nanosecond);
            UnixNanos(u64::try_from(nanos).unwrap_or_default())
        };
        let first = instant(ambiguous.compatible());
        match ambiguous.offset() {
            AmbiguousOffset::Fold { .. } => (first, instant(ambiguous.later())),
            _ => (first, first),
        }
    }
}

/// Returns the date and time that a clock in UTC shows.
fn civil(unix_nanos: u64) -> Option<DateTime> {
    let timestamp = Timestamp::from_nanosecond(i128::from(unix_nanos)).ok()?;
    Some(Offset::UTC.to_datetime(timestamp))
}

/// Parses `-05:00` or `+0530`, or returns `None` if the name is not an offset.
fn offset(name: &str) -> Option<Offset> {
    let (sign, digits) = match name.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replacen(':', "", 1);
    let is_offset = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i32 = is_offset.then(|| digits.parse().ok()).flatten()?;
    let (hours, minutes) = (number / 100, number % 100);
    let seconds = (hours * 60 + minutes) * 60;
    (hours <= 18 && minutes < 60).then(|| Offset::from_seconds(sign * seconds).ok())?
}

impl TryFrom<String> for Timezone {
    type Error = TimezoneError;

    fn try_from(name: String) -> Result<Self, TimezoneError> {
        Self::parse(&name)
    }
}

impl From<Timezone> for String {
    fn from(zone: Timezone) -> Self {
        zone.name
    }
}

impl UsedTimezone {
    /// Returns the zone that the user named, or UTC.
    pub fn named_or_utc(named: Option<&Timezone>) -> Self {
        Self::named(named).unwrap_or_default()
    }

    /// Returns the zone of this machine, or UTC if it is unknown.
    pub fn of_machine() -> Self {
        Timezone::parse("local").map_or_else(
            |_| Self::default(),
            |zone| Self::new(zone, TimezoneReason::Machine),
        )
    }

    /// Returns the zone that the user named.
    pub fn named(named: Option<&Timezone>) -> Option<Self> {
        named.map(|zone| Self::new(zone.clone(), TimezoneReason::Named))
    }

    /// Returns a zone that is used for a reason.
    pub fn new(zone: Timezone, reason: TimezoneReason) -> Self {
        Self {
            zone,
            reason,
            ambiguous_times: 0,
            last_local_unix_nanos: 0,
        }
    }

    /// Returns the instant of a time in a log; of a time that occurs twice, the first one.
    pub fn instant(&self, time: LoggedTime) -> UnixNanos {
        match time {
            LoggedTime::Utc(time) => time,
            LoggedTime::Local(local_unix_nanos) => self.zone.instant(local_unix_nanos),
        }
    }
}

impl fmt::Display for UsedTimezone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            TimezoneReason::Default => "the default; name another with --timezone",
            TimezoneReason::Named => "as named",
            TimezoneReason::Inferred => "from the clock when the log was written",
            TimezoneReason::Machine => "the zone of this machine",
        };
        write!(f, "{} ({why})", self.zone.name)?;
        match self.ambiguous_times {
            0 => Ok(()),
            times => write!(
                f,
                "; {times} of them occur twice, at the end of daylight-saving time, and are read in the order of the log"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(time: &str) -> u64 {
        let time: Timestamp = time.parse().unwrap();
        u64::try_from(time.as_nanosecond()).unwrap()
    }

    fn instant(zone: &str, local: &str) -> u64 {
        Timezone::parse(zone)
            .unwrap()
            .instant(nanos(&format!("{local}Z")))
            .0
    }

    #[test]
    fn local_times_become_instants_by_the_rules_of_their_zone() {
        for (zone, local, utc) in [
            ("UTC", "2026-11-21T12:00:00.5", "2026-11-21T12:00:00.5Z"),
            (
                "America/New_York",
                "2026-11-21T12:00:00.5",
                "2026-11-21T17:00:00.5Z",
            ),
            ("America/New_York", "2026-07-01T12:00:00", "2026-07-01T16:00:00Z"),
            ("Asia/Kolkata", "2026-11-21T00:00:00", "2026-11-20T18:30:00Z"),
            ("-05:00", "2026-07-01T12:00:00", "2026-07-01T17:00:00Z"),
            ("+0545", "2026-07-01T12:00:00", "2026-07-01T06:15:00Z"),
        ] {
            assert_eq!(instant(zone, local), nanos(utc), "{zone} {local}");
        }
    }

    #[test]
    fn ambiguous_local_time_is_the_earlier_and_skipped_one_follows_the_change() {
        let new_york = |local| instant("America/New_York", local);
        assert_eq!(new_york("2026-11-01T01:30:00"), nanos("2026-11-01T05:30:00Z"));
        assert_eq!(new_york("2026-03-08T02:30:00"), nanos("2026-03-08T07:30:00Z"));
    }

    #[test]
    fn unknown_timezone_name_is_rejected_with_an_example() {
        for name in ["", "Mars/Olympus", "EST5EDT6", "+99:00", "-5"] {
            let refused = Timezone::parse(name).unwrap_err();
            assert!(refused.remedy().contains("America/New_York"), "{refused}");
        }
    }

    #[test]
    fn timezone_is_serialized_as_its_name() {
        for name in ["America/New_York", "UTC", "-05:00"] {
            let zone = Timezone::parse(name).unwrap();
            let kept = serde_json::to_string(&zone).unwrap();
            assert_eq!(kept, format!("{name:?}"));
            assert_eq!(serde_json::from_str::<Timezone>(&kept).unwrap(), zone);
        }
    }
}
