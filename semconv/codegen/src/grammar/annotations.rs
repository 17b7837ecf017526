//! Annotations: keys that the grammar leaves to the authors of a registry.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The annotations of an entry; Weaver does not interpret them, and an unknown key is an error.
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
    /// The source systems that fill the entry, with their own names for it.
    pub(crate) sources: BTreeMap<String, Vec<String>>,
    /// The name of a histogram's set of bounds.
    pub(crate) buckets: Option<String>,
    /// For a metric in `1`: numerator and denominator.
    pub(crate) ratio: Option<String>,
    /// For a metric: how its values are aggregated over all of its attributes.
    pub(crate) aggregation: Option<Aggregation>,
    /// For an attribute: its set of values is unbounded (a step number, an id), so no metric may carry it.
    pub(crate) unbounded: bool,
    /// For an attribute: it describes a series without identifying it. A series has one value of it at a time.
    pub(crate) descriptive: bool,
}

/// How the values of a metric are aggregated over all of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aggregation {
    /// The sum is a value of the same kind.
    Sum,
    /// The mean is a value of the same kind.
    Average,
    /// Neither the sum nor the mean is meaningful: select one value of an attribute first.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Number {
    Int,
    Double,
}
