//! `generated/attribute.rs`: one constant per attribute.

use super::{HEADER, literal, table};
use crate::grammar::{AttributeDef, AttributeType, Member, SimpleType};
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let attributes: Vec<&AttributeDef> = registry.attributes.iter().map(|entry| &entry.def).collect();
    let names: Vec<&str> = attributes
        .iter()
        .map(|attribute| attribute.key.value.as_str())
        .collect();
    let constants: String = attributes.iter().map(|attribute| constant(attribute)).collect();
    format!(
        "//! Every attribute of the registry.\n\n{HEADER}\n\
         use crate::definition::{{Attribute, AttributeKind, Stability}};\n\n{constants}{}",
        table("Attribute", &names)
    )
}

fn constant(attribute: &AttributeDef) -> String {
    let brief = literal::brief(attribute.brief.as_ref());
    format!(
        "{}pub const {}: Attribute = Attribute {{\nname: {},\nbrief: {},\nkind: {},\ndescriptive: {},\nstability: {},\n}};\n\n",
        literal::doc(&brief),
        literal::constant(&attribute.key.value),
        literal::string(&attribute.key.value),
        literal::string(&brief),
        kind(&attribute.kind),
        attribute.annotations.pulsetrain.descriptive,
        literal::stability(attribute.stability),
    )
}

fn kind(kind: &AttributeType) -> String {
    let variant = match kind {
        AttributeType::Enum { members } => {
            let values = members.iter().map(Member::value);
            return format!("AttributeKind::Enum({})", literal::strings(values));
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
    format!("AttributeKind::{variant}")
}
