//! Small parts of a row: names, strings, and the fields that several kinds of definitions have.

use std::collections::BTreeMap;

use super::row;
use crate::grammar::{AttributeRef, RequirementLevel, Stability};
use crate::registry::Registry;

/// Returns the name of a definition's constant: `train.step.duration` becomes `TRAIN_STEP_DURATION`.
pub(super) fn constant(name: &str) -> String {
    name.replace('.', "_").to_uppercase()
}

/// Returns the field with the brief in one line, as in docs and on the wire.
pub(super) fn brief(text: Option<&String>) -> String {
    let words: Vec<&str> = text.map_or(Vec::new(), |text| text.split_whitespace().collect());
    format!("brief: {}", string(&words.join(" ")))
}

pub(super) fn string(text: &str) -> String {
    format!("{text:?}")
}

/// Returns the variant of `Stability`.
pub(super) fn stability(stability: Option<Stability>) -> &'static str {
    match stability {
        Some(Stability::Stable) => "Stable",
        Some(Stability::ReleaseCandidate) => "ReleaseCandidate",
        Some(Stability::Development) | None => "Development",
    }
}

/// Returns the field with the names of the source systems.
pub(super) fn upstream(sources: &BTreeMap<String, Vec<String>>) -> String {
    let systems: Vec<String> = sources
        .iter()
        .map(|(system, names)| {
            let names: Vec<String> = names.iter().map(|name| string(name)).collect();
            row::list(1, &format!("{}: ", string(system)), &names)
        })
        .collect();
    row::list(0, "upstream: ", &systems)
}

/// Returns the uses of attributes of a signal, each with its requirement level unless that is `Recommended`.
pub(super) fn attribute_uses(registry: &Registry, references: &[AttributeRef]) -> Vec<String> {
    registry
        .resolve(references)
        .iter()
        .map(|reference| constant(&reference.key) + requirement(&reference.level))
        .collect()
}

fn requirement(level: &RequirementLevel) -> &'static str {
    match level {
        RequirementLevel::Required => ": Required",
        RequirementLevel::ConditionallyRequired(_) => ": ConditionallyRequired",
        RequirementLevel::Recommended => "",
        RequirementLevel::OptIn => ": OptIn",
    }
}
