//! The format of the times of a log.

use jiff::{Timestamp, fmt::strtime, tz::TimeZone};

/// The format of the times of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TimeForm {
    /// RFC 3339, the same with a space and without a zone, or a number since 1970 whose magnitude implies its unit.
    #[default]
    Auto,
    /// A number since 1970, with the nanoseconds per unit.
    Unix(f64),
    /// Directives of `strftime`; the time is local if they contain no zone.
    Directives(String),
}

/// The names of units, with the nanoseconds per unit.
const UNIX: [(&str, f64); 4] = [
    ("unix_s", 1e9),
    ("unix_ms", 1e6),
    ("unix_us", 1e3),
    ("unix_ns", 1.0),
];

impl TimeForm {
    /// Returns the format with a name.
    ///
    /// # Errors
    /// Returns the list of names.
    pub fn of(name: &str) -> Result<Self, String> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        if let Some((_, nanos)) = UNIX.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Unix(*nanos));
        }
        if name.contains('%') {
            return match check(name) {
                Ok(()) => Ok(Self::Directives(name.to_owned())),
                Err(error) => Err(format!("{name:?} cannot be read: {error}")),
            };
        }
        Err(format!(
            "unknown time format {name:?}; it can be: auto, unix_s, unix_ms, unix_us, unix_ns, or directives like \"%Y-%m-%d %H:%M:%S\""
        ))
    }
}

/// Checks that directives can write a time, and can read its date and time again.
fn check(directives: &str) -> Result<(), jiff::Error> {
    let text = strtime::format(directives, &Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC))?;
    let time = strtime::parse(directives, &text)?;
    // A text without a zone has only a date and a time.
    time.to_timestamp()
        .map(drop)
        .or_else(|_| time.to_datetime().map(drop))
}
