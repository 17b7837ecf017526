//! The kinds of messages, from `kinds.yaml`.

use std::sync::LazyLock;

use pulsetrain_otlp::write::Severity;
use regex::{
    bytes::{RegexSet, RegexSetBuilder},
    escape,
};
use serde::Deserialize;

use crate::logs::prefix;

/// The kind of a message: a value of `run.message.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(&'static str);

/// The kinds with their phrases.
static TABLE: LazyLock<Table> = LazyLock::new(Table::load);

impl Kind {
    pub(super) const NOT_FINITE: Self = Self("not_finite");
    pub(super) const EXCEPTION: Self = Self("exception");
    const ERROR: Self = Self("error");
    const WARNING: Self = Self("warning");

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    /// Returns the kind and the severity of a line with a level, or `None` if it is not a message.
    pub(super) fn classify(text: &str, level: Option<Severity>) -> Option<(Self, Severity)> {
        let level = level.unwrap_or(Severity::Debug);
        let mut words = text.split(|letter: char| !letter.is_alphanumeric());
        // `error: 0.5` is a value.
        let is_text =
            words.any(|word| word.contains(char::is_alphabetic) && prefix::severity(word).is_none());
        let of_level = || match level {
            _ if !is_text => None,
            Severity::Error => Some((Self::ERROR, level)),
            Severity::Warn => Some((Self::WARNING, level)),
            Severity::Info | Severity::Debug => None,
        };
        let (kind, severity) = TABLE.find(text).or_else(of_level)?;
        Some((
            kind,
            if level as u64 > severity as u64 {
                level
            } else {
                severity
            },
        ))
    }
}

/// An entry of `kinds.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: String,
    severity: Level,
    #[serde(default)]
    phrases: Vec<String>,
    #[serde(default)]
    patterns: Vec<String>,
    /// Expressions of lines that are not of this kind.
    #[serde(default)]
    except: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Info,
    Warn,
    Error,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}

struct Table {
    set: RegexSet,
    /// The kinds, in the order of the file.
    kinds: Vec<(Kind, Severity)>,
    /// The kind of each expression of the set, and whether it is of lines that are not of the kind.
    expressions: Vec<(usize, bool)>,
}

impl Table {
    fn load() -> Self {
        let entries: Vec<Entry> =
            serde_saphyr::from_str(include_str!("kinds.yaml")).expect("kinds.yaml is valid");
        let (mut texts, mut expressions, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            let kind = Kind(String::leak(entry.kind));
            let phrases = entry.phrases.iter().map(|phrase| {
                let is_word = phrase.starts_with(|first: char| first.is_ascii_alphanumeric());
                let start = if is_word { r"\b" } else { "" };
                format!("{start}{}", escape(phrase))
            });
            let included = phrases.chain(entry.patterns).map(|text| (text, false));
            for (text, is_excluded) in included.chain(entry.except.into_iter().map(|text| (text, true))) {
                texts.push(text);
                expressions.push((kinds.len(), is_excluded));
            }
            kinds.push((kind, entry.severity.into()));
        }
        let set = RegexSetBuilder::new(&texts)
            .case_insensitive(true)
            .unicode(false)
            .build()
            .expect("the expressions of kinds.yaml are valid");
        Self {
            set,
            kinds,
            expressions,
        }
    }

    /// Returns the first kind that matches a text.
    fn find(&self, text: &str) -> Option<(Kind, Severity)> {
        let matches = self.set.matches(text.as_bytes());
        let mut found = matches.iter().map(|expression| self.expressions[expression]);
        let (kind, _) = found.find(|(kind, is_excluded)| {
            let is_other = |(other, excludes): (usize, bool)| other == *kind && excludes;
            !is_excluded
                && !matches
                    .iter()
                    .any(|expression| is_other(self.expressions[expression]))
        })?;
        Some(self.kinds[kind])
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_semconv::{AttributeKind, attribute};

    use super::*;

    #[test]
    fn kinds_are_the_values_of_the_registry() {
        let AttributeKind::Enum(values) = attribute::RUN_MESSAGE_KIND.kind else {
            panic!("run.message.kind is an enumeration");
        };
        let of_table = TABLE.kinds.iter().map(|(kind, _)| kind.name());
        let mut kinds: Vec<_> = of_table
            .chain([Kind::ERROR.name(), Kind::WARNING.name()])
            .collect();
        let mut values = values.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        values.sort_unstable();
        assert_eq!(kinds, values);
    }
}
