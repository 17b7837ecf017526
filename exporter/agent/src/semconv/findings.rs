//! The findings of a check: each finding once, with its number of occurrences and the first frame.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

/// The fault of a name or a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finding {
    UnknownName {
        kind: &'static str,
        name: String,
    },
    WrongUnit {
        metric: String,
        expected: &'static str,
        found: String,
    },
    WrongInstrument {
        metric: String,
        expected: &'static str,
        found: &'static str,
    },
    MissingAttribute {
        on: String,
        attribute: &'static str,
    },
    UnknownAttribute {
        on: String,
        attribute: String,
    },
    WrongAttributeType {
        on: String,
        attribute: &'static str,
        expected: String,
        found: &'static str,
    },
    Unreadable {
        message: String,
    },
}

/// The number of occurrences of a finding, and its first frame.
#[derive(Debug)]
struct Occurrences {
    count: u64,
    first: u64,
}

/// All findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: BTreeMap<Finding, Occurrences>,
    frame: u64,
}

impl Findings {
    /// Starts the next frame.
    pub(super) fn next_frame(&mut self) {
        self.frame += 1;
    }

    pub(super) fn add(&mut self, finding: Finding) {
        let first = self.frame;
        self.found
            .entry(finding)
            .or_insert(Occurrences { count: 0, first })
            .count += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Formats one finding per line.
    pub(super) fn to_text(&self) -> String {
        self.found.iter().fold(
            String::new(),
            |mut text, (finding, Occurrences { count, first })| {
                let _ = writeln!(text, "{finding} ({count} times, first in message {first})");
                text
            },
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { kind, name } => {
                let near = super::show::nearest(name).map(|near| format!("; did you mean {near}?"));
                write!(f, "unknown {kind} {name}{}", near.unwrap_or_default())
            }
            Self::WrongUnit {
                metric,
                expected,
                found,
            } => {
                write!(
                    f,
                    "metric {metric} has the unit {found:?}; the registry has {expected:?}"
                )
            }
            Self::WrongInstrument {
                metric,
                expected,
                found,
            } => {
                write!(f, "metric {metric} is a {found}; the registry has a {expected}")
            }
            Self::MissingAttribute { on, attribute } => {
                write!(f, "{on} lacks the required attribute {attribute}")
            }
            Self::UnknownAttribute { on, attribute } => {
                let near = super::show::nearest(attribute).map(|near| format!("; did you mean {near}?"));
                write!(
                    f,
                    "{on} has the attribute {attribute}, which the registry does not know{}",
                    near.unwrap_or_default()
                )
            }
            Self::WrongAttributeType {
                on,
                attribute,
                expected,
                found,
            } => {
                write!(f, "{on} has {attribute} as {found}; the registry has {expected}")
            }
            Self::Unreadable { message } => f.write_str(message),
        }
    }
}
