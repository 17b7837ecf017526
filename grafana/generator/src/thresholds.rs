//! The thresholds of alerts and panels, and the classes of XID errors, in one place: `grafana/definitions/thresholds.yaml` and
//! `xid.yaml`.

use std::{collections::BTreeMap, fs, path::Path};

use serde::{Deserialize, de::DeserializeOwned};

use crate::{DefinitionError, alert::duration};

/// Named numbers that queries, panels and texts refer to as `${threshold.NAME}`, and codes of XID errors as `${xid.CLASS}`.
///
/// A format may follow the name: `${threshold.NAME|duration}` is seconds as `2h`, `${threshold.NAME|percent}` a share as `20 %`,
/// and `${xid.CLASS|list}` separates codes by commas. Without a format codes are the alternatives of a regular expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds {
    numbers: BTreeMap<String, Threshold>,
    xid_classes: BTreeMap<String, XidClass>,
}

/// The error of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThresholdError {
    /// There is no threshold of this name.
    #[error("no threshold `{0}` in thresholds.yaml")]
    Name(String),
    /// A threshold has no such format.
    #[error("unknown format `{0}`; use duration or percent")]
    Format(String),
    /// There is no such class of XID errors.
    #[error("no class `{0}` of XID errors in xid.yaml")]
    XidClass(String),
    /// A class of XID errors has no such format.
    #[error("unknown format `{format}` of `{name}`; use list")]
    XidFormat {
        /// The placeholder.
        name: String,
        /// The format.
        format: String,
    },
    /// A placeholder has no end.
    #[error("`{0}` without `}}`")]
    Unclosed(String),
}

/// One threshold.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The number.
    pub value: f64,
    /// Its unit in UCUM; `s` marks a time, which a test may scale.
    pub unit: String,
    /// The quantity that it limits, and the reason for its value.
    pub description: String,
}

/// Codes of XID errors with the same meaning for an operator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct XidClass {
    codes: Vec<u16>,
    description: String,
}

impl Thresholds {
    /// Reads `thresholds.yaml` and `xid.yaml` of a folder of definitions.
    ///
    /// # Errors
    ///
    /// Returns the file that cannot be read, and the reason.
    pub fn load(definitions: &Path) -> Result<Self, DefinitionError> {
        Ok(Self {
            numbers: read(definitions, "thresholds.yaml")?,
            xid_classes: read(definitions, "xid.yaml")?,
        })
    }

    /// Returns the number of a threshold, or `None` for an unknown name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).map(|threshold| threshold.value)
    }

    /// Iterates over all thresholds by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Threshold)> {
        self.numbers
            .iter()
            .map(|(name, threshold)| (name.as_str(), threshold))
    }

    /// Replaces every `${threshold.NAME}` and `${xid.CLASS}` of a text.
    ///
    /// # Errors
    ///
    /// Returns the placeholder with an unknown name or an unknown format.
    pub fn substitute(&self, text: &str) -> Result<String, ThresholdError> {
        self.replace(text, |threshold, _| threshold.value)
    }

    /// As [`substitute`](Self::substitute), with every time (unit `s`) divided by `factor`. A number followed by `s` is part of a
    /// duration in PromQL and stays as it is: it is divided with the other durations of the expression.
    ///
    /// # Errors
    ///
    /// As [`substitute`](Self::substitute).
    pub fn substitute_scaled(&self, text: &str, factor: f64) -> Result<String, ThresholdError> {
        self.replace(text, |threshold, after| {
            if threshold.unit == "s" && !after.starts_with('s') {
                threshold.value / factor
            } else {
                threshold.value
            }
        })
    }

    /// Replaces every placeholder by its codes, or by the result of `number` for its threshold and the text that follows.
    fn replace(
        &self,
        text: &str,
        number: impl Fn(&Threshold, &str) -> f64,
    ) -> Result<String, ThresholdError> {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        let next = |rest: &str| {
            let starts = ["${threshold.", "${xid."].map(|start| rest.find(start));
            starts.into_iter().flatten().min()
        };
        while let Some(start) = next(rest) {
            let (before, after) = (&rest[..start], &rest[start + 2..]);
            let (placeholder, after) = after
                .split_once('}')
                .ok_or_else(|| ThresholdError::Unclosed(rest[start..].to_owned()))?;
            let (name, format) = match placeholder.split_once('|') {
                Some((name, format)) => (name, Some(format)),
                None => (placeholder, None),
            };
            result.push_str(before);
            if let Some(name) = name.strip_prefix("threshold.") {
                let threshold = self
                    .numbers
                    .get(name)
                    .ok_or_else(|| ThresholdError::Name(name.to_owned()))?;
                result.push_str(&formatted(number(threshold, after), format)?);
            } else if let Some(class) = name.strip_prefix("xid.") {
                let separator = match format {
                    None => "|",
                    Some("list") => ", ",
                    Some(other) => {
                        return Err(ThresholdError::XidFormat {
                            name: name.to_owned(),
                            format: other.to_owned(),
                        });
                    }
                };
                result.push_str(&self.xid_codes(class)?.join(separator));
            }
            rest = after;
        }
        result.push_str(rest);
        Ok(result)
    }

    /// Returns the codes of a class, or of all classes, in ascending order.
    fn xid_codes(&self, class: &str) -> Result<Vec<String>, ThresholdError> {
        let classes = self.xid_classes.iter();
        let of_class = classes.filter(|(name, _)| class == "all" || *name == class);
        let mut codes: Vec<u16> = of_class.flat_map(|(_, class)| class.codes.clone()).collect();
        if codes.is_empty() {
            return Err(ThresholdError::XidClass(class.to_owned()));
        }
        codes.sort_unstable();
        Ok(codes.iter().map(ToString::to_string).collect())
    }
}

fn read<T: DeserializeOwned>(definitions: &Path, file: &str) -> Result<T, DefinitionError> {
    let error = |message: String| DefinitionError::new(file, "", message);
    let text = fs::read_to_string(definitions.join(file)).map_err(|source| error(source.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|source| error(source.to_string()))
}

fn formatted(value: f64, format: Option<&str>) -> Result<String, ThresholdError> {
    match format {
        None => Ok(value.to_string()),
        Some("duration") => Ok(duration::format((value * 1e3) as u64)),
        Some("percent") => Ok(format!("{} %", (value * 1e4).round() / 1e2)),
        Some(other) => Err(ThresholdError::Format(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thresholds() -> Thresholds {
        let number = |value, unit: &str| Threshold {
            value,
            unit: unit.to_owned(),
            description: String::new(),
        };
        let class = |codes: &[u16]| XidClass {
            codes: codes.to_vec(),
            description: String::new(),
        };
        Thresholds {
            numbers: [
                ("age".to_owned(), number(7200.0, "s")),
                ("share".to_owned(), number(0.2, "1")),
            ]
            .into(),
            xid_classes: [
                ("fatal".to_owned(), class(&[48, 79])),
                ("memory".to_owned(), class(&[63])),
            ]
            .into(),
        }
    }

    #[test]
    fn threshold_and_xid_placeholders_are_substituted_in_the_requested_format() {
        for (text, expected) in [
            ("x > ${threshold.age}", "x > 7200"),
            ("for ${threshold.age|duration}", "for 2h"),
            (
                "above ${threshold.share|percent}, ${threshold.share}",
                "above 20 %, 0.2",
            ),
            ("x=~\"${xid.fatal}\"", "x=~\"48|79\""),
            ("${xid.all|list} > ${threshold.share}", "48, 63, 79 > 0.2"),
        ] {
            assert_eq!(thresholds().substitute(text).as_deref(), Ok(expected));
        }
        let scaled = thresholds().substitute_scaled("${threshold.age} x[${threshold.age}s]", 60.0);
        assert_eq!(scaled.as_deref(), Ok("120 x[7200s]"));
    }

    #[test]
    fn unknown_placeholder_is_an_error() {
        for (text, expected) in [
            ("${threshold.other}", "no threshold `other`"),
            ("${xid.other}", "no class `other`"),
            ("${threshold.age|hours}", "unknown format `hours`"),
            ("${xid.fatal|hours}", "unknown format `hours`"),
            ("${xid.fatal", "without `}`"),
        ] {
            let error = thresholds().substitute(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
