//! Small pieces of Rust source: names, strings, lists.

use std::collections::BTreeMap;

use crate::grammar::{AttributeRef, RequirementLevel, Stability};
use crate::registry::Registry;

/// Returns the name of a definition's constant: `train.step.duration` becomes `TRAIN_STEP_DURATION`.
pub(super) fn constant(name: &str) -> String {
    name.replace('.', "_").to_uppercase()
}

/// Returns a doc comment with one line for each line of `text`.
pub(super) fn doc(text: &str) -> String {
    text.trim()
        .lines()
        .map(|line| format!("/// {}\n", line.trim()).replace("/// \n", "///\n"))
        .collect()
}

/// Returns a brief in one line, as in docs and on the wire.
pub(super) fn brief(text: Option<&String>) -> String {
    text.map_or(String::new(), |text| {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

pub(super) fn string(text: &str) -> String {
    format!("{text:?}")
}

pub(super) fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(string).collect();
    format!("&[{}]", texts.join(", "))
}

pub(super) fn stability(stability: Option<Stability>) -> &'static str {
    match stability {
        Some(Stability::Stable) => "Stability::Stable",
        Some(Stability::ReleaseCandidate) => "Stability::ReleaseCandidate",
        Some(Stability::Development) | None => "Stability::Development",
    }
}

pub(super) fn upstream(sources: &BTreeMap<String, Vec<String>>) -> String {
    let systems: Vec<String> = sources
        .iter()
        .map(|(system, names)| {
            format!(
                "Upstream {{ system: {}, names: {} }}",
                string(system),
                strings(names.iter().map(String::as_str))
            )
        })
        .collect();
    format!("&[{}]", systems.join(", "))
}

pub(super) fn attributes(registry: &Registry, references: &[AttributeRef]) -> String {
    let uses: Vec<String> = registry
        .resolve(references)
        .iter()
        .map(|reference| {
            format!(
                "AttributeUse {{ attribute: &attribute::{}, requirement: {} }}",
                constant(&reference.key),
                requirement(&reference.level)
            )
        })
        .collect();
    format!("&[{}]", uses.join(", "))
}

fn requirement(level: &RequirementLevel) -> &'static str {
    match level {
        RequirementLevel::Required => "Requirement::Required",
        RequirementLevel::ConditionallyRequired(_) => "Requirement::ConditionallyRequired",
        RequirementLevel::Recommended => "Requirement::Recommended",
        RequirementLevel::OptIn => "Requirement::OptIn",
    }
}
