//! The part of a trainer's mapping for numbers under tags: TensorBoard event files, wandb files, OTLP gauges.

use crate::{FieldTable, key_pattern::KeyPattern};

/// The mapping of a trainer's tags.
#[derive(Clone, Debug, Default)]
pub struct ScalarSection {
    /// The tags that no other trainer has; any of them identifies the trainer.
    pub(crate) signatures: Vec<KeyPattern>,
    /// The rows of its tags.
    pub(crate) table: FieldTable,
    /// The tags of texts that are options of the configuration; the variable part of a tag is the name of the option.
    pub(crate) options: Vec<OptionForm>,
    /// The tags of texts that are the complete configuration.
    pub(crate) configuration: Vec<KeyPattern>,
}

/// The text before and after the name of an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionForm {
    before: String,
    after: String,
}

impl OptionForm {
    /// Parses `before{}after`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.split_once("{}")?;
        Some(Self {
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    fn name<'t>(&self, tag: &'t str) -> Option<&'t str> {
        let name = tag
            .strip_prefix(self.before.as_str())?
            .strip_suffix(self.after.as_str())?;
        (!name.is_empty()).then_some(name)
    }
}

/// The role of texts under a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TextRole {
    /// The value of the option with this name.
    Option(String),
    /// The complete configuration.
    Configuration,
}

impl ScalarSection {
    /// Returns whether only this trainer writes the tag.
    pub fn is_signature(&self, tag: &str) -> bool {
        self.signatures.iter().any(|signature| signature.matches(tag))
    }

    /// Returns the rows of the tags.
    pub fn table(&self) -> &FieldTable {
        &self.table
    }

    /// Returns the signatures as the mapping spells them.
    pub fn signatures(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(KeyPattern::text)
    }

    /// Returns the role of texts under the tag, if the trainer has one.
    pub(crate) fn text_role(&self, tag: &str) -> Option<TextRole> {
        if self.configuration.iter().any(|pattern| pattern.matches(tag)) {
            return Some(TextRole::Configuration);
        }
        let name = self.options.iter().find_map(|form| form.name(tag))?;
        Some(TextRole::Option(name.to_owned()))
    }
}
