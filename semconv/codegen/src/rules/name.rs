//! Names: their spelling, their uniqueness, and no name that is the namespace of another of its kind.

use std::collections::HashMap;

use super::Finding;
use crate::definition::{Definition, DefinitionKind};
use crate::registry::Registry;

/// `train.step.duration`: lower case, dots between namespaces, single underscores inside a part.
pub(super) fn grammar(registry: &Registry) -> Vec<Finding<'_>> {
    let message =
        "is not of the form `part.other_part`: lower case letters and digits, starting with a letter";
    let bad = |definition: &Definition<'_>| !is_well_formed(&definition.name.value);
    registry
        .definitions()
        .into_iter()
        .filter(bad)
        .map(|definition| Finding::new(definition, message.to_owned()))
        .collect()
}

fn is_well_formed(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.split(['.', '_']).all(is_word)
}

/// Two names of one kind must differ by more than a dot for an underscore, or they share a constant.
pub(super) fn duplicates(registry: &Registry) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for kind in DefinitionKind::ALL {
        let mut seen: HashMap<String, &str> = HashMap::new();
        for definition in of_kind(registry, kind) {
            let name = &definition.name.value;
            if let Some(other) = seen.insert(name.replace('.', "_"), name) {
                findings.push(Finding::new(
                    definition,
                    format!("is too like `{other}`; give it another name"),
                ));
            }
        }
    }
    findings
}

/// A metric's name is no namespace of another: no `train.step` together with `train.step.duration`.
pub(super) fn namespace_collisions(registry: &Registry) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for kind in DefinitionKind::ALL {
        let definitions: Vec<_> = of_kind(registry, kind).collect();
        for definition in &definitions {
            let namespace = format!("{}.", definition.name.value);
            let inside = |other: &&Definition<'_>| other.name.value.starts_with(&namespace);
            if let Some(other) = definitions.iter().find(inside) {
                let message = format!(
                    "is also the namespace of `{}`; write an underscore instead of a dot",
                    other.name.value
                );
                findings.push(Finding::new(*definition, message));
            }
        }
    }
    findings
}

fn of_kind(registry: &Registry, kind: DefinitionKind) -> impl Iterator<Item = Definition<'_>> {
    registry
        .definitions()
        .into_iter()
        .filter(move |definition| definition.kind == kind)
}
