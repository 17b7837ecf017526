//! Text of a log as the value of an attribute.

use pulsetrain_otlp::write::Value;
use pulsetrain_semconv::{Attribute, AttributeKind};

/// A part of a name or a field of a record, in the type of its attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text, or one of the members of a closed set.
    Text(String),
    /// A whole number.
    Int(i64),
}

impl Part {
    /// `text` as a value of the attribute, if it can be one: of a closed set only its members can.
    pub(crate) fn of(attribute: &Attribute, text: &str) -> Option<Self> {
        match attribute.kind {
            AttributeKind::Enum(known) => known.contains(&text).then(|| Self::Text(text.to_owned())),
            AttributeKind::Int => text.parse().ok().map(Self::Int),
            _ => Some(Self::Text(text.to_owned())),
        }
    }

    /// The value as it is written.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::Int(number) => Value::Int(*number),
        }
    }
}
