//! The result of a check: each finding once, with its number of occurrences and the first frame.

use std::{collections::BTreeMap, fmt};

use crate::suggestion::nearest;

/// The fault of a name or a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finding {
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

/// The result of a check: all findings, and the number of items that were checked.
#[derive(Debug, Default)]
pub struct Report {
    /// The spans, points and log records of all messages.
    pub items: u64,
    found: BTreeMap<Finding, Occurrences>,
    frame: u64,
}

impl Report {
    /// Starts the next frame.
    pub(crate) fn next_frame(&mut self) {
        self.frame += 1;
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        let first = self.frame;
        self.found
            .entry(finding)
            .or_insert(Occurrences { count: 0, first })
            .count += 1;
    }

    /// Returns whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }
}

/// Formats one finding per line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.found
            .iter()
            .try_for_each(|(finding, Occurrences { count, first })| {
                writeln!(f, "{finding} ({count} times, first in message {first})")
            })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { kind, name } => {
                let near = nearest(name).map(|near| format!("; did you mean {near}?"));
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
                let near = nearest(attribute).map(|near| format!("; did you mean {near}?"));
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
