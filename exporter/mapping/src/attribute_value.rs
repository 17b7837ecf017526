//! Converts text of a log to attribute values.

use pulsetrain_otlp::write::AttributeValue;
use pulsetrain_semconv::{Attribute, AttributeKind};

/// A part of a key, or a value of a mapping, in the type of its attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedAttributeValue {
    /// Text, or one of the members of an enumeration.
    Text(String),
    /// An integer.
    Int(i64),
}

impl OwnedAttributeValue {
    /// Returns `text` as a value of the attribute, or `None` if the attribute does not allow it: an enumeration allows only
    /// its members.
    pub fn parse(attribute: &Attribute, text: &str) -> Option<Self> {
        match attribute.kind {
            AttributeKind::Enum(known) => known.contains(&text).then(|| Self::Text(text.to_owned())),
            AttributeKind::Int => text.parse().ok().map(Self::Int),
            _ => Some(Self::Text(text.to_owned())),
        }
    }

    /// Returns the value for the encoder.
    pub fn value(&self) -> AttributeValue<'_> {
        match self {
            Self::Text(text) => AttributeValue::Text(text),
            Self::Int(number) => AttributeValue::Int(*number),
        }
    }
}

impl std::fmt::Display for OwnedAttributeValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Int(number) => write!(f, "{number}"),
        }
    }
}
