//! Annotations: what the grammar leaves to its users.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What Weaver leaves to us; a key that is not here is a mistake.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Annotations {
    pub(crate) code_generation: CodeGeneration,
    pub(crate) naming_conventions: NamingConventions,
    pub(crate) pulsetrain: Pulsetrain,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CodeGeneration {
    pub(crate) metric_value_type: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NamingConventions {
    /// Rules that this entry may break, because its name comes from elsewhere.
    pub(crate) policy_exceptions: Vec<String>,
}

/// Our own annotations.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Pulsetrain {
    /// Who fills the entry, from which of their names.
    pub(crate) sources: BTreeMap<String, Vec<String>>,
    /// The name of a histogram's set of bounds.
    pub(crate) buckets: Option<String>,
    /// For a metric in `1`: numerator and denominator.
    pub(crate) ratio: Option<String>,
    /// Of a metric: how its values are aggregated over all of its attributes.
    pub(crate) aggregation: Option<Aggregation>,
    /// Of an attribute: its values never end (a step number, an identity), so that no metric may carry it.
    pub(crate) unbounded: bool,
    /// Of an attribute: it describes the value of a series and has one value at a time, so that it makes no second series.
    pub(crate) descriptive: bool,
}

/// How the values of a metric are aggregated over all of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aggregation {
    /// The sum is a value of the same kind.
    Sum,
    /// The mean is.
    Average,
    /// Neither is: select one value of an attribute first.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Number {
    Int,
    Double,
}
