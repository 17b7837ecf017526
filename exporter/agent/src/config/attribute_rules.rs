//! The key `attributes` of a sink: rules that drop, hash or rename attributes for its receiver.

use pulsetrain_otlp::attributes::{AttributeAction, AttributeRules};
use pulsetrain_pipeline::Problem;
use pulsetrain_sinks::sha256_hex;
use serde::Deserialize;

use super::{
    Location, Spanned,
    section::{Setting, Shown},
};

/// The rules, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct AttributeList(Vec<Spanned<Rule>>);

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// Removes an attribute.
    Drop(String),
    /// Replaces the value of an attribute by its SHA-256.
    Hash(String),
    /// Replaces the key of an attribute.
    Rename(Renaming),
}

/// The key of an attribute and its new one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Renaming {
    from: String,
    to: String,
}

impl AttributeList {
    /// Returns the rules, or `None` if there are none.
    ///
    /// # Errors
    /// Returns the first rule that cannot be used, with its place.
    pub(crate) fn rules(&self) -> Result<Option<AttributeRules>, (Location, Problem)> {
        let mut rules: Vec<(String, AttributeAction)> = Vec::new();
        let mut made = None;
        for rule in &self.0 {
            rules.push(match &rule.value {
                Rule::Drop(key) => (key.clone(), AttributeAction::Drop),
                Rule::Hash(key) => (key.clone(), AttributeAction::Hash),
                Rule::Rename(Renaming { from, to }) => (from.clone(), AttributeAction::Rename(to.clone())),
            });
            let so_far = AttributeRules::new(rules.clone(), sha256_hex);
            made =
                Some(so_far.map_err(|error| (rule.location, Problem::new(format!("attributes: {error}"))))?);
        }
        Ok(made)
    }
}

impl Setting for AttributeList {
    fn shown(&self) -> Shown {
        Shown::List(Vec::new())
    }
}
