//! `generated/attribute.rs`: one row per attribute.

use super::{HEADER, literal, row};
use crate::grammar::{AttributeDef, AttributeType, Member, SimpleType};
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let rows = registry.attributes.iter().map(|entry| attribute(&entry.def));
    format!(
        "//! Every attribute of the registry.\n\n{HEADER}\nuse crate::table::attributes;\n\n{}",
        row::table("attributes", rows)
    )
}

fn attribute(attribute: &AttributeDef) -> String {
    let name = &attribute.key.value;
    let lines = [
        format!(
            "name: {}, descriptive: {}, stability: {}",
            literal::string(name),
            attribute.annotations.pulsetrain.descriptive,
            literal::stability(attribute.stability)
        ),
        literal::brief(attribute.brief.as_ref()),
        kind(&attribute.kind),
    ];
    row::row(name, &lines)
}

fn kind(kind: &AttributeType) -> String {
    let variant = match kind {
        AttributeType::Enum { members } => {
            let values: Vec<String> = members
                .iter()
                .map(|member| literal::string(Member::value(member)))
                .collect();
            return row::list(0, "kind: Enum(", &values) + ")";
        }
        AttributeType::Simple(SimpleType::String) => "String",
        AttributeType::Simple(SimpleType::Int) => "Int",
        AttributeType::Simple(SimpleType::Double) => "Double",
        AttributeType::Simple(SimpleType::Boolean) => "Boolean",
        AttributeType::Simple(SimpleType::Strings) => "Strings",
        AttributeType::Simple(SimpleType::Ints) => "Ints",
        AttributeType::Simple(SimpleType::Doubles) => "Doubles",
        AttributeType::Simple(SimpleType::Booleans) => "Booleans",
        AttributeType::Simple(SimpleType::Any) => "Any",
    };
    format!("kind: {variant}")
}
