//! Rules that drop, hash or rename attributes, for receivers that must not get them.
//!
//! The rules apply to the attributes of resources, scopes, spans, events, links, metrics, points, exemplars and log records,
//! by their keys. Keys inside values are not checked. All other fields of a message keep their bytes, unknown fields included.

use crate::{
    Signal, WireError,
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor, Role},
    lookup,
    wire::{Reader, WireValue},
    write::Buffer,
};

/// `KeyValue.key` and `KeyValue.value` (opentelemetry/proto/common/v1/common.proto).
const KEY: u32 = 1;
const VALUE: u32 = 2;
/// `AnyValue.string_value`.
const STRING_VALUE: u32 = 1;
/// The message whose keys are not attributes.
const ANY_VALUE: &str = "AnyValue";

/// The action for the attributes with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeAction {
    /// They are removed.
    Drop,
    /// Replaces the value by its hash as text: of the text of a string, of the encoded `AnyValue` otherwise.
    Hash,
    /// Renames the key. If the new key exists already, the existing attribute is removed: keys are unique.
    Rename(String),
}

/// An error in rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeRuleError {
    /// A rule without a key, or one that renames to an empty key.
    #[error("a rule has an empty key: name the attribute")]
    EmptyKey,
    /// A key has two rules, or is the new name of another key.
    #[error("{key:?} is in two rules: keep one")]
    Twice {
        /// The key.
        key: String,
    },
}

/// The rules for one receiver.
#[derive(Clone, Debug)]
pub struct AttributeRules {
    rules: Vec<(String, AttributeAction)>,
    hash: fn(&[u8]) -> String,
}

impl AttributeRules {
    /// Creates rules by key; `hash` returns the new value for the bytes of an old one.
    ///
    /// # Errors
    /// An empty key, or a key in two rules.
    pub fn new(
        rules: Vec<(String, AttributeAction)>,
        hash: fn(&[u8]) -> String,
    ) -> Result<Self, AttributeRuleError> {
        let mut keys: Vec<&str> = Vec::new();
        for (key, action) in &rules {
            let renamed = match action {
                AttributeAction::Rename(to) => Some(to.as_str()),
                AttributeAction::Drop | AttributeAction::Hash => None,
            };
            for key in [Some(key.as_str()), renamed].into_iter().flatten() {
                if key.is_empty() {
                    return Err(AttributeRuleError::EmptyKey);
                }
                if keys.contains(&key) {
                    return Err(AttributeRuleError::Twice { key: key.to_owned() });
                }
                keys.push(key);
            }
        }
        Ok(Self { rules, hash })
    }

    /// Returns the message after the rules, or `None` if they apply to none of its attributes.
    ///
    /// # Errors
    /// The message is not valid protobuf.
    pub fn apply(&self, signal: Signal, message: &[u8]) -> Result<Option<Vec<u8>>, WireError> {
        self.message(lookup::top(signal), message)
    }

    fn message(&self, table: &'static MessageDescriptor, bytes: &[u8]) -> Result<Option<Vec<u8>>, WireError> {
        let mut changed: Option<Buffer> = None;
        let mut copied = 0;
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            let start = reader.position();
            let tag = reader.tag()?;
            let WireValue::Bytes(value) = reader.value(tag)? else {
                continue;
            };
            let Some(inner) = table.by_tag(tag).and_then(|(_, field)| message_of(field)) else {
                continue;
            };
            let outcome = if inner.role == Role::Attribute {
                self.attribute(value, || keys(table, bytes))?
            } else {
                self.message(inner, value)?
                    .map_or(Outcome::Same, Outcome::Changed)
            };
            if outcome == Outcome::Same {
                continue;
            }
            let out = changed.get_or_insert_with(|| Buffer::with_capacity(bytes.len()));
            out.append(&bytes[copied..start]);
            if let Outcome::Changed(value) = outcome {
                out.delimited(tag >> 3, &value);
            }
            copied = reader.position();
        }
        Ok(changed.map(|mut out| {
            out.append(&bytes[copied..]);
            out.into_vec()
        }))
    }

    /// Applies the rules to a `KeyValue`; `others` are the keys of the same list.
    fn attribute<'m>(
        &self,
        attribute: &'m [u8],
        others: impl Fn() -> Result<Vec<&'m [u8]>, WireError>,
    ) -> Result<Outcome, WireError> {
        let key = key(attribute)?;
        for (of, action) in &self.rules {
            match action {
                AttributeAction::Drop if of.as_bytes() == key => return Ok(Outcome::Removed),
                AttributeAction::Hash if of.as_bytes() == key => {
                    return self.hashed(attribute).map(Outcome::Changed);
                }
                AttributeAction::Rename(to) if of.as_bytes() == key => {
                    return with_field(attribute, KEY, to.as_bytes()).map(Outcome::Changed);
                }
                AttributeAction::Rename(to) if to.as_bytes() == key && others()?.contains(&of.as_bytes()) => {
                    return Ok(Outcome::Removed);
                }
                _ => {}
            }
        }
        Ok(Outcome::Same)
    }

    fn hashed(&self, attribute: &[u8]) -> Result<Vec<u8>, WireError> {
        let value = last(attribute, VALUE)?.unwrap_or_default();
        let hashed = (self.hash)(last(value, STRING_VALUE)?.unwrap_or(value));
        let mut value = Buffer::default();
        value.delimited(STRING_VALUE, hashed.as_bytes());
        with_field(attribute, VALUE, value.as_slice())
    }
}

/// The result of the rules for a field.
#[derive(PartialEq, Eq)]
enum Outcome {
    Same,
    Removed,
    Changed(Vec<u8>),
}

/// Returns the descriptor of a field that is, or can contain, attributes.
fn message_of(field: &FieldDescriptor) -> Option<&'static MessageDescriptor> {
    let (FieldKind::One(table) | FieldKind::Many(table)) = field.kind else {
        return None;
    };
    Some(table()).filter(|table| table.name != ANY_VALUE)
}

/// Returns the keys of the attributes of a message.
fn keys<'m>(table: &'static MessageDescriptor, message: &'m [u8]) -> Result<Vec<&'m [u8]>, WireError> {
    let mut keys = Vec::new();
    let mut reader = Reader::new(message);
    while !reader.is_at_end() {
        let tag = reader.tag()?;
        if let (WireValue::Bytes(value), Some((_, field))) = (reader.value(tag)?, table.by_tag(tag))
            && message_of(field).is_some_and(|table| table.role == Role::Attribute)
        {
            keys.push(key(value)?);
        }
    }
    Ok(keys)
}

fn key(attribute: &[u8]) -> Result<&[u8], WireError> {
    Ok(last(attribute, KEY)?.unwrap_or_default())
}

/// Returns the last field with this number: of duplicates, the last one counts.
fn last(message: &[u8], number: u32) -> Result<Option<&[u8]>, WireError> {
    let mut found = None;
    for field in Reader::new(message) {
        let field = field?;
        if let WireValue::Bytes(value) = field.value
            && field.number == number
        {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Replaces the value of a field; all other fields keep their bytes.
fn with_field(message: &[u8], number: u32, value: &[u8]) -> Result<Vec<u8>, WireError> {
    let mut out = Buffer::with_capacity(message.len() + value.len());
    out.delimited(number, value);
    let mut reader = Reader::new(message);
    while !reader.is_at_end() {
        let start = reader.position();
        let tag = reader.tag()?;
        reader.value(tag)?;
        if tag >> 3 != number {
            out.append(&message[start..reader.position()]);
        }
    }
    Ok(out.into_vec())
}

#[cfg(test)]
mod tests;
