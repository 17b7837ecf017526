//! The keys of a row: one key, a form of keys with variable parts, or a regular expression.

use regex::Regex;

use crate::{MappingError, MappingPart};

/// The keys that a row is for.
#[derive(Clone, Debug)]
pub enum KeyPattern {
    /// One key.
    Exact(String),
    /// All keys of a form: literal text, and parts in braces.
    Form(Form),
    /// All keys that a regular expression matches completely.
    Regex(Regex),
}

/// Literal text with parts in braces: `data/{data.name}/tokens`, `gpu.{gpu.id,gpu.index}.temp`, `loss/{}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    text: String,
    /// One more than there are parts.
    literals: Vec<String>,
    /// The names of the attributes for each part.
    parts: Vec<Vec<String>>,
}

/// The prefix and the suffix that make an expression match a complete key.
const ANCHORS: (&str, &str) = ("^(?:", ")$");

impl KeyPattern {
    /// Reads a key, which is a form if it has braces.
    ///
    /// # Errors
    /// [`MappingError`] for an empty key or a brace without its counterpart.
    pub fn key(text: &str) -> Result<Self, MappingError> {
        if text.is_empty() {
            return Err(MappingError::new(MappingPart::Key, "a key is not empty"));
        }
        if !text.contains('{') {
            return Ok(Self::Exact(text.to_owned()));
        }
        Form::parse(text).map(Self::Form).ok_or_else(|| {
            let message =
                format!("{text:?}: a part that varies is written as {{attribute}} or {{}}, with text between two of them");
            MappingError::new(MappingPart::Key, message)
        })
    }

    /// Reads a regular expression; the names of its groups are attributes.
    ///
    /// # Errors
    /// Returns [`MappingError`] if it is not a regular expression.
    pub fn regex(text: &str) -> Result<Self, MappingError> {
        if text.is_empty() {
            return Err(MappingError::new(MappingPart::Key, "a pattern is not empty"));
        }
        let complete = [ANCHORS.0, text, ANCHORS.1].concat();
        regex(text, &complete, MappingPart::Key).map(Self::Regex)
    }

    /// Returns the key, the form or the expression as the mapping spells it.
    pub fn text(&self) -> &str {
        match self {
            Self::Exact(key) => key,
            Self::Form(form) => &form.text,
            Self::Regex(regex) => {
                let pattern = regex.as_str();
                let inner = pattern.strip_prefix(ANCHORS.0).unwrap_or(pattern);
                inner.strip_suffix(ANCHORS.1).unwrap_or(inner)
            }
        }
    }

    /// Returns the names of the attributes that are captured from a key.
    pub fn attributes(&self) -> Vec<String> {
        match self {
            Self::Exact(_) => Vec::new(),
            Self::Form(form) => form.parts.concat(),
            Self::Regex(regex) => regex.capture_names().flatten().map(str::to_owned).collect(),
        }
    }

    /// Returns the attributes that are captured from `key`, with their values, or `None` if the key does not match.
    pub fn captures<'k>(&self, key: &'k str) -> Option<Vec<(&str, &'k str)>> {
        match self {
            Self::Exact(known) => (known == key).then(Vec::new),
            Self::Form(form) => form.captures(key),
            Self::Regex(regex) => {
                let captures = regex.captures(key)?;
                let names = regex.capture_names().flatten();
                Some(
                    names
                        .filter_map(|name| Some((name, captures.name(name)?.as_str())))
                        .collect(),
                )
            }
        }
    }

    /// Returns whether `key` matches.
    pub fn matches(&self, key: &str) -> bool {
        match self {
            Self::Exact(known) => known == key,
            Self::Form(form) => form.split(key).is_some(),
            Self::Regex(regex) => regex.is_match(key),
        }
    }
}

impl Form {
    fn parse(text: &str) -> Option<Self> {
        let (mut literals, mut parts) = (Vec::new(), Vec::new());
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let (names, after) = after.split_once('}')?;
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            literals.push(literal.to_owned());
            parts.push(names.map(str::to_owned).collect());
            rest = after;
        }
        literals.push(rest.to_owned());
        let inner = literals.get(1..literals.len() - 1)?;
        let is_clear = inner.iter().all(|literal| !literal.is_empty());
        let has_brace = literals.iter().any(|literal| literal.contains('}'));
        (is_clear && !has_brace).then(|| Self {
            text: text.to_owned(),
            literals,
            parts,
        })
    }

    fn captures<'k>(&self, key: &'k str) -> Option<Vec<(&str, &'k str)>> {
        let found = self.split(key)?;
        let named = self.parts.iter().zip(found);
        Some(
            named
                .flat_map(|(names, part)| names.iter().map(move |name| (name.as_str(), part)))
                .collect(),
        )
    }

    /// Returns the parts of a key. A part is not empty and as short as possible; only the last one reaches the end.
    fn split<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let (first, literals) = self.literals.split_first()?;
        let mut rest = key.strip_prefix(first.as_str())?;
        let mut parts = Vec::with_capacity(literals.len());
        for literal in literals {
            let len = if literal.is_empty() {
                rest.len()
            } else {
                rest.find(literal.as_str())?
            };
            let (part, after) = rest.split_at(len);
            if part.is_empty() {
                return None;
            }
            parts.push(part);
            rest = &after[literal.len()..];
        }
        rest.is_empty().then_some(parts)
    }
}

/// The most characters of a pattern in a message.
const MAX_SHOWN: usize = 40;

/// Compiles `pattern`, which the mapping spells as `given`.
pub(crate) fn regex(given: &str, pattern: &str, part: MappingPart) -> Result<Regex, MappingError> {
    Regex::new(pattern).map_err(|error| {
        let why = match error {
            regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().trim().to_owned(),
            other => other.to_string(),
        };
        let why = why.trim_start_matches("error: ");
        let start: String = given.chars().take(MAX_SHOWN).collect();
        let more = if start.len() < given.len() { "..." } else { "" };
        MappingError::new(
            part,
            format!("{start:?}{more} is not a regular expression: {why}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captures<'k>(pattern: &'k KeyPattern, key: &'k str) -> Option<Vec<(&'k str, &'k str)>> {
        pattern.captures(key)
    }

    #[test]
    fn placeholders_of_a_key_pattern_become_attributes() {
        let of = |text| KeyPattern::key(text).unwrap();
        assert_eq!(captures(&of("train/loss"), "train/loss"), Some(vec![]));
        assert_eq!(
            captures(&of("data/{data.name}/tokens"), "data/fineweb/tokens"),
            Some(vec![("data.name", "fineweb")])
        );
        assert_eq!(
            captures(&of("rewards/{data.split}/{rl.component}"), "rewards/eval/a/b"),
            Some(vec![("data.split", "eval"), ("rl.component", "a/b")])
        );
        assert_eq!(
            captures(&of("gpu.{gpu.id, gpu.index}.temp"), "gpu.3.temp"),
            Some(vec![("gpu.id", "3"), ("gpu.index", "3")])
        );
        assert_eq!(
            captures(&of("{}/text_summary"), "emb_dim/text_summary"),
            Some(vec![])
        );
    }

    #[test]
    fn key_that_does_not_match_the_pattern_has_no_captures() {
        for (form, key) in [
            ("train/loss", "train/loss2"),
            ("train/ploss_{}", "train/ploss_"),
            ("data/{}/tokens", "data//tokens"),
            ("data/{}/tokens", "data/a/tokens/b"),
        ] {
            let pattern = KeyPattern::key(form).unwrap();
            assert_eq!(captures(&pattern, key), None, "{form} {key}");
            assert!(!pattern.matches(key), "{form} {key}");
        }
    }

    #[test]
    fn ambiguous_or_malformed_key_pattern_is_rejected() {
        for text in ["", "a/{b", "{a}{b}", "a}/{b}"] {
            assert!(KeyPattern::key(text).is_err(), "{text}");
        }
        assert!(
            KeyPattern::regex("(")
                .unwrap_err()
                .message
                .contains("not a regular expression")
        );
    }

    #[test]
    fn regex_pattern_matches_complete_keys_only() {
        let pattern = KeyPattern::regex("critic/score/(?<rl.statistic>mean|max)").unwrap();
        assert_eq!(
            captures(&pattern, "critic/score/max"),
            Some(vec![("rl.statistic", "max")])
        );
        assert!(!pattern.matches("critic/score/maximum"));
        assert_eq!(pattern.text(), "critic/score/(?<rl.statistic>mean|max)");
    }
}
