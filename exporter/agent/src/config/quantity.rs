//! Durations and sizes with units: `5s`, `64MiB`.

use std::time::Duration;

use pulsetrain_pipeline::{GiveUp, Problem};
use serde::Deserialize;

use super::{
    fault::ValueError,
    section::{Setting, Shown},
};

/// A duration: a number with `ms`, `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Time(pub(crate) Duration);

/// A duration, or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct TimeOrNever(pub(crate) Option<Duration>);

/// A size: a number of bytes, or one with `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Size(pub(crate) usize);

const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, usize); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Time {
    /// Returns a duration in seconds.
    pub(crate) const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
}

/// Parses a duration.
pub(crate) fn parsed_time(text: &str) -> Result<Duration, Problem> {
    match Time::try_from(text.to_owned()) {
        Ok(Time(time)) => Ok(time),
        Err(ValueError(problem)) => Err(problem),
    }
}

impl TimeOrNever {
    /// Returns the rule that gives up a batch of this age.
    pub(crate) fn give_up(self) -> GiveUp {
        self.0.map_or(GiveUp::Never, GiveUp::WhenFull)
    }
}

impl TryFrom<String> for Time {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        let wrong = || {
            let problem = Problem::new(format!("{text:?} is not a duration"));
            ValueError(problem.with_remedy("write a number with its unit, like 500ms, 5s, 2m or 1h"))
        };
        let (number, unit) = split(&text);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let (_, millis) = TIME_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        let duration = Duration::try_from_secs_f64(number * *millis as f64 / 1e3);
        duration.map(Self).map_err(|_| wrong())
    }
}

impl TryFrom<String> for TimeOrNever {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        if text == "never" {
            return Ok(Self(None));
        }
        match Time::try_from(text) {
            Ok(Time(time)) => Ok(Self(Some(time))),
            Err(ValueError(problem)) => {
                let remedy = format!("{}, or never", problem.remedy.as_deref().unwrap_or_default());
                Err(ValueError(problem.with_remedy(remedy)))
            }
        }
    }
}

impl TryFrom<String> for Size {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        let wrong = || {
            let problem = Problem::new(format!("{text:?} is not a size"));
            let remedy = "write bytes, or a number with its unit, like 512KiB, 64MiB or 1GiB";
            ValueError(problem.with_remedy(remedy))
        };
        let (number, unit) = split(&text);
        let number: usize = number.parse().map_err(|_| wrong())?;
        let unit = if unit.is_empty() { "B" } else { unit };
        let (_, bytes) = SIZE_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        number.checked_mul(*bytes).map(Self).ok_or_else(wrong)
    }
}

/// Splits a quantity into the number and the unit.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

impl Setting for Time {
    fn shown(&self) -> Shown {
        let millis = self.0.as_millis() as u64;
        let fits = |(_, unit): &&(&str, u64)| millis >= *unit && millis.is_multiple_of(*unit);
        let (name, unit) = TIME_UNITS.iter().find(fits).unwrap_or(&("s", 1_000));
        Shown::Scalar(format!("{}{name}", millis / unit))
    }
}

impl Setting for TimeOrNever {
    fn shown(&self) -> Shown {
        match self.0 {
            Some(time) => Time(time).shown(),
            None => Shown::Scalar("never".to_owned()),
        }
    }
}

impl Setting for Size {
    fn shown(&self) -> Shown {
        let fits = |(_, unit): &&(&str, usize)| self.0 >= *unit && self.0.is_multiple_of(*unit);
        let (name, unit) = SIZE_UNITS.iter().find(fits).unwrap_or(&("B", 1));
        Shown::Scalar(format!("{}{name}", self.0 / unit))
    }
}

impl Setting for bool {
    fn shown(&self) -> Shown {
        Shown::Scalar(self.to_string())
    }
}

impl Setting for usize {
    fn shown(&self) -> Shown {
        Shown::Scalar(self.to_string())
    }
}

impl Setting for i32 {
    fn shown(&self) -> Shown {
        Shown::Scalar(self.to_string())
    }
}

impl Setting for std::net::SocketAddr {
    fn shown(&self) -> Shown {
        Shown::Scalar(self.to_string())
    }
}

impl Setting for String {
    fn shown(&self) -> Shown {
        Shown::Scalar(quoted(self))
    }
}

impl Setting for Vec<String> {
    fn shown(&self) -> Shown {
        Shown::List(self.iter().map(|text| quoted(text)).collect())
    }
}

impl Setting for Vec<super::Spanned<String>> {
    fn shown(&self) -> Shown {
        Shown::List(self.iter().map(|text| quoted(text)).collect())
    }
}

impl Setting for Vec<super::Spanned<std::net::SocketAddr>> {
    fn shown(&self) -> Shown {
        Shown::List(self.iter().map(|address| address.value.to_string()).collect())
    }
}

impl<T: Setting> Setting for Option<T> {
    fn shown(&self) -> Shown {
        self.as_ref().map_or(Shown::Unset, Setting::shown)
    }
}

/// Returns text as YAML, quoted only if it could be mistaken for another type.
fn quoted(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
    let begins_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    if begins_plain && text.chars().all(is_plain) && !["true", "false", "null", "yes", "no"].contains(&text) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_round_trip_through_text() {
        for text in ["500ms", "5s", "90s", "2m", "1h", "0s"] {
            let time = Time::try_from(text.to_owned()).unwrap();
            assert!(
                matches!(time.shown(), Shown::Scalar(shown) if shown == text),
                "{text}"
            );
        }
        for text in ["64MiB", "1GiB", "3KiB", "1000B"] {
            let size = Size::try_from(text.to_owned()).unwrap();
            assert!(
                matches!(size.shown(), Shown::Scalar(shown) if shown == text),
                "{text}"
            );
        }
        for text in ["never", "5m"] {
            let time = TimeOrNever::try_from(text.to_owned()).unwrap();
            assert!(matches!(time.shown(), Shown::Scalar(shown) if shown == text));
        }
        assert!(
            TimeOrNever::try_from("soon".to_owned())
                .unwrap_err()
                .to_string()
                .contains("or never")
        );
        assert_eq!(
            Time::try_from("1.5 s".to_owned()),
            Ok(Time(Duration::from_millis(1500)))
        );
        assert_eq!(Size::try_from("1000".to_owned()), Ok(Size(1000)));
    }

    #[test]
    fn invalid_quantity_is_rejected_with_an_example() {
        for text in ["5", "s", "-1s", "5 parsecs", "1e99h", ""] {
            assert!(
                Time::try_from(text.to_owned())
                    .unwrap_err()
                    .to_string()
                    .contains("like 500ms"),
                "{text}"
            );
        }
        for text in ["1.5MiB", "MiB", "5MB", "99999999999GiB"] {
            assert!(
                Size::try_from(text.to_owned())
                    .unwrap_err()
                    .to_string()
                    .contains("like 512KiB"),
                "{text}"
            );
        }
    }
}
