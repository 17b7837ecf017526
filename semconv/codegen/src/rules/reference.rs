//! References: every referenced entry exists, every attribute is referenced, and the values of enums are distinct.

use std::collections::HashSet;

use super::Finding;
use crate::definition::{Definition, DefinitionKind};
use crate::grammar::{AttributeDef, AttributeRef, AttributeType, Member, SimpleType};
use crate::registry::Registry;

/// Every referenced attribute, group and entity is defined.
pub(super) fn unknown(registry: &Registry) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for definition in registry.definitions() {
        let attribute = definition
            .references()
            .find_map(|reference| problem(registry, reference, &mut Vec::new()));
        let entity = definition
            .entities
            .iter()
            .find(|name| !has_entity(registry, name));
        if let Some(message) = attribute.or(entity.map(|name| undefined(name))) {
            findings.push(Finding::new(definition, message));
        }
    }
    findings
}

/// Returns the problem of a reference, or of one inside its group; `path` has the groups that enclose it.
fn problem<'a>(
    registry: &'a Registry,
    reference: &'a AttributeRef,
    path: &mut Vec<&'a str>,
) -> Option<String> {
    match (&reference.attribute, &reference.group) {
        (Some(key), None) => registry
            .attribute(&key.value)
            .is_none()
            .then(|| undefined(&key.value)),
        (None, Some(id)) if path.contains(&id.value.as_str()) => {
            Some(format!("names `{}`, which is inside itself", id.value))
        }
        (None, Some(id)) => match registry.group(&id.value) {
            None => Some(undefined(&id.value)),
            Some(group) => {
                path.push(&id.value);
                let found = group
                    .attributes
                    .iter()
                    .find_map(|inner| problem(registry, inner, path));
                path.pop();
                found
            }
        },
        _ => Some("names an attribute neither by `ref` nor by `ref_group`, or by both".to_owned()),
    }
}

fn undefined(name: &str) -> String {
    format!("names `{name}`, which is not defined")
}

fn has_entity(registry: &Registry, name: &str) -> bool {
    registry
        .entities
        .iter()
        .any(|entity| entity.def.name.value == name)
}

/// Every attribute is referenced.
pub(super) fn unused(registry: &Registry) -> Vec<Finding<'_>> {
    let definitions = registry.definitions();
    let lists = definitions
        .iter()
        .flat_map(|definition| [definition.attributes, definition.description]);
    let used: HashSet<String> = lists
        .flat_map(|list| registry.resolve(list))
        .map(|reference| reference.key)
        .collect();
    let is_unused = |definition: &Definition<'_>| {
        definition.kind == DefinitionKind::Attribute && !used.contains(&definition.name.value)
    };
    let message = "is carried by no entity, metric, span or event";
    let unused = definitions.into_iter().filter(is_unused);
    unused
        .map(|definition| Finding::new(definition, message.to_owned()))
        .collect()
}

/// No metric carries an attribute with unbounded values: each value would be a new series.
pub(super) fn unbounded(registry: &Registry) -> Vec<Finding<'_>> {
    let is_unbounded = |key: &str| registry.attribute(key).is_some_and(is_unbounded);
    let mut findings = Vec::new();
    for entry in &registry.metrics {
        let references = registry.resolve(&entry.def.attributes);
        if let Some(reference) = references.iter().find(|reference| is_unbounded(&reference.key)) {
            let message = format!(
                "carries `{}`, whose values never end; put it on a span or make it a value",
                reference.key
            );
            findings.push(Finding::new(entry.into(), message));
        }
    }
    findings
}

fn is_unbounded(attribute: &AttributeDef) -> bool {
    let is_label = match &attribute.kind {
        AttributeType::Enum { .. } => true,
        AttributeType::Simple(kind) => {
            matches!(kind, SimpleType::String | SimpleType::Int | SimpleType::Boolean)
        }
    };
    !is_label || attribute.annotations.pulsetrain.unbounded
}

/// An enum has members, and no two of them have the same spelling.
pub(super) fn enum_members(registry: &Registry) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for entry in &registry.attributes {
        let AttributeType::Enum { members } = &entry.def.kind else {
            continue;
        };
        let mut seen = HashSet::new();
        let twin = members
            .iter()
            .map(Member::value)
            .find(|value| !seen.insert(*value));
        if members.is_empty() {
            findings.push(Finding::new(
                entry.into(),
                "is an enum without members".to_owned(),
            ));
        } else if let Some(value) = twin {
            findings.push(Finding::new(
                entry.into(),
                format!("has the member `{value}` twice"),
            ));
        }
    }
    findings
}
