//! The training systems whose tags are known, and the tags that give each of them away.

use super::{
    hf_trainer, kempnerforge, maxtext, pattern, row::TagRow, shared, surogate, torchspec, torchtitan, tunix,
};

/// A training system that writes numbers under tags.
#[derive(Debug)]
pub(crate) struct System {
    /// Its name, as in the registry's annotations.
    pub(crate) name: &'static str,
    /// The tags that no other system has; one of them is enough.
    pub(super) signs: &'static [&'static str],
    /// What its tags mean.
    pub(super) rows: &'static [TagRow],
    /// What its texts mean.
    pub(super) texts: &'static [TextRow],
    /// What is said of an event file in which a sign was found.
    pub(crate) seen_in_events: &'static str,
    /// What is said of a wandb file in which a sign was found.
    pub(crate) seen_in_wandb: &'static str,
}

/// What becomes of a text under a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRow {
    /// An option of the configuration, named by the varying part of the tag.
    Option(&'static str),
    /// The whole configuration.
    Configuration(&'static str),
}

/// What a text was found to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextMeaning {
    /// The value of the option of this name.
    Option(String),
    /// The whole configuration.
    Configuration,
}

impl TextRow {
    /// What a text under `tag` is, if the row knows it.
    pub(super) fn matches(&self, tag: &str) -> Option<TextMeaning> {
        match self {
            Self::Option(form) => pattern::parts(form, tag)?
                .first()
                .map(|name| TextMeaning::Option((*name).to_owned())),
            Self::Configuration(form) => pattern::matches(form, tag).then_some(TextMeaning::Configuration),
        }
    }
}

/// Every system that is known.
pub(super) static SYSTEMS: &[System] = &[
    kempnerforge::SYSTEM,
    maxtext::SYSTEM,
    torchspec::SYSTEM,
    tunix::SYSTEM,
    hf_trainer::SYSTEM,
    torchtitan::SYSTEM,
    surogate::SYSTEM,
];

/// The two sentences of a system: `seen!(Name, tags)`.
macro_rules! seen {
    ($in:literal, $name:literal, $tags:literal) => {
        concat!($in, " with tags that only ", $name, " writes (", $tags, ")")
    };
}
pub(super) use seen;

/// The system that a tag gives away.
pub(crate) fn system_of(tag: &str) -> Option<&'static System> {
    SYSTEMS
        .iter()
        .find(|system| system.signs.iter().any(|sign| pattern::matches(sign, tag)))
}

/// The rows for the tags of a system, or those for any trainer's.
pub(super) fn rows(system: Option<&'static System>) -> impl Iterator<Item = &'static TagRow> {
    system
        .map_or(&[][..], |system| system.rows)
        .iter()
        .chain(shared::ROWS)
}
