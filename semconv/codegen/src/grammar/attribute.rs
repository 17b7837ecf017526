//! Attributes, groups of them, and references to both.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{Annotations, Stability};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeDef {
    pub(crate) key: Spanned<String>,
    #[serde(rename = "type")]
    pub(crate) kind: AttributeType,
    pub(crate) brief: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) stability: Option<Stability>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the YAML; part of the grammar")]
    examples: serde::de::IgnoredAny,
    #[serde(default)]
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AttributeType {
    Simple(SimpleType),
    Enum { members: Vec<Member> },
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum SimpleType {
    #[serde(rename = "string")]
    String,
    #[serde(rename = "int")]
    Int,
    #[serde(rename = "double")]
    Double,
    #[serde(rename = "boolean")]
    Boolean,
    #[serde(rename = "string[]")]
    Strings,
    #[serde(rename = "int[]")]
    Ints,
    #[serde(rename = "double[]")]
    Doubles,
    #[serde(rename = "boolean[]")]
    Booleans,
    #[serde(rename = "any")]
    Any,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) value: Option<String>,
    pub(crate) brief: Option<String>,
    #[expect(
        dead_code,
        reason = "a member is as stable as its attribute; Weaver requires the key"
    )]
    stability: Option<Stability>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupDef {
    pub(crate) id: Spanned<String>,
    #[expect(
        dead_code,
        reason = "always `internal`: groups are a way to write, not a thing to publish"
    )]
    visibility: Visibility,
    #[serde(default)]
    pub(crate) attributes: Vec<AttributeRef>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Visibility {
    Internal,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeRef {
    #[serde(rename = "ref")]
    pub(crate) attribute: Option<Spanned<String>>,
    #[serde(rename = "ref_group")]
    pub(crate) group: Option<Spanned<String>>,
    pub(crate) requirement_level: Option<RequirementLevel>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequirementLevel {
    Required,
    Recommended,
    OptIn,
    ConditionallyRequired(String),
}

impl SimpleType {
    /// Returns the type as the grammar spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::Double => "double",
            Self::Boolean => "boolean",
            Self::Strings => "string[]",
            Self::Ints => "int[]",
            Self::Doubles => "double[]",
            Self::Booleans => "boolean[]",
            Self::Any => "any",
        }
    }
}

impl Member {
    /// Returns the value on the wire.
    pub(crate) fn value(&self) -> &str {
        self.value.as_ref().unwrap_or(&self.id)
    }
}
