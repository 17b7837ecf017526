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

/// The error of a name that is not a format of times.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimeFormError {
    /// The directives cannot read a time.
    #[error("{name:?} cannot be read: {source}")]
    Directives {
        /// The directives.
        name: String,
        /// The error.
        source: jiff::Error,
    },
    /// The name is unknown.
    #[error("unknown time format {0:?}")]
    Unknown(String),
}

impl TimeFormError {
    /// Returns the remedy if it is known; the message itself is the cause only.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Directives { .. } => None,
            Self::Unknown(_) => Some(
                "it can be: auto, unix_s, unix_ms, unix_us, unix_ns, or directives like \"%Y-%m-%d %H:%M:%S\"",
            ),
        }
    }
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
    /// A name that is neither known nor readable directives.
    pub fn parse(name: &str) -> Result<Self, TimeFormError> {
        if name == "auto" {
            return Ok(Self::Auto);
        }
        if let Some((_, nanos)) = UNIX.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Unix(*nanos));
        }
        if name.contains('%') {
            return match check(name) {
                Ok(()) => Ok(Self::Directives(name.to_owned())),
                Err(source) => Err(TimeFormError::Directives {
                    name: name.to_owned(),
                    source,
                }),
            };
        }
        Err(TimeFormError::Unknown(name.to_owned()))
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
