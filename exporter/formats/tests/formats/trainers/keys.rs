//! The keys that a trainer can log, resolved by its mapping: `keys.txt` in the folder of its samples.
//!
//! A line is `KEY`, or `[KIND] KEY` for a record of a kind, where the kind `tags` is for TensorBoard and W&B files.
//! `KEY => FIELD` names the field into which a pattern of lines or a parser converts the key. `- ` marks a dropped key. Lines
//! that begin with `# ` are comments; the first ones name the source of the keys.

use std::collections::BTreeSet;

use pulsetrain_mapping::{Mapping, MappingTarget, ResolvedMapping, dictionary_row, trainer};

use super::FOLDER;
use crate::imported::sample_text;

/// The kind of tags.
const TAGS: &str = "tags";

/// The keys of the step if a mapping names none.
const STEPS: [&str; 4] = ["step", "global_step", "iteration", "iter"];

/// The beginning of a file.
const SOURCE: &str = "# Source: github.com/";

/// One line of `keys.txt`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    kind: Option<String>,
    key: String,
    field: Option<String>,
    /// Whether the line has the mark `- `.
    pub(super) is_left_out: bool,
}

/// The outcome for the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A metric of the registry.
    Metric,
    /// The step of the record.
    Step,
    /// An option of the run.
    Option,
    /// `train.custom`.
    Custom,
    /// Dropped, or the step again.
    LeftOut,
}

/// Returns the keys of a folder.
///
/// # Panics
/// Panics if the file does not name its source, or has a key twice.
pub(super) fn read(folder: &str) -> Vec<Key> {
    let text = sample_text(&format!("{FOLDER}{folder}/keys.txt"));
    assert!(
        text.starts_with(SOURCE),
        "{folder}/keys.txt begins with {SOURCE:?}"
    );
    let lines = text.lines().filter(|line| !line.starts_with("# "));
    let keys: Vec<Key> = lines.map(Key::parse).collect();
    let distinct: BTreeSet<&Key> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{folder}/keys.txt has a key twice");
    keys
}

impl Key {
    fn parse(line: &str) -> Self {
        let (is_left_out, line) = match line.strip_prefix("- ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let of_kind = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let (kind, line) = of_kind.map_or((None, line), |(kind, key)| (Some(kind.to_owned()), key));
        let (key, field) = match line.split_once(" => ") {
            Some((key, field)) => (key, Some(field.to_owned())),
            None => (line, None),
        };
        Self {
            kind,
            key: key.to_owned(),
            field,
            is_left_out,
        }
    }

    /// Returns the outcome for the key in logs of one of the mappings, or `None` if none of them has a row for it.
    pub(super) fn outcome(&self, mappings: &[&str]) -> Option<Outcome> {
        let mut mappings = mappings.iter().map(|name| trainer(name).mapping());
        mappings.find_map(|mapping| self.outcome_of(mapping))
    }

    fn outcome_of(&self, mapping: &Mapping) -> Option<Outcome> {
        if self.is_step(mapping) {
            return Some(Outcome::Step);
        }
        self.resolve(mapping)
            .map(|resolved| match &resolved.mapping.target {
                MappingTarget::Metric(_) | MappingTarget::State(..) => Outcome::Metric,
                MappingTarget::Option(_) => Outcome::Option,
                MappingTarget::Custom(_) => Outcome::Custom,
                MappingTarget::Step | MappingTarget::Dropped(_) => Outcome::LeftOut,
            })
    }

    fn resolve(&self, mapping: &Mapping) -> Option<ResolvedMapping> {
        let key = self.name();
        match self.kind.as_deref() {
            Some(TAGS) => {
                let own = mapping.scalars().table().resolve(key);
                own.or_else(|| dictionary_row(key))
            }
            Some(kind) => mapping.resolve(Some(kind), key),
            None => mapping.resolve_anywhere(key).next(),
        }
    }

    /// Returns the key in the spelling of the mapping.
    fn name(&self) -> &str {
        self.field.as_deref().unwrap_or(&self.key)
    }

    fn is_step(&self, mapping: &Mapping) -> bool {
        let name = self.name();
        let is_usual = mapping.steps().is_empty() && STEPS.contains(&name);
        let is_tag = self.kind.as_deref() == Some(TAGS);
        !is_tag && (is_usual || mapping.steps().iter().any(|step| step == name))
    }

    /// Returns whether the field of `KEY => FIELD` is a group of the lines, or the step or a row of the mapping.
    pub(super) fn has_known_field(&self, mappings: &[&str]) -> bool {
        let Some(field) = &self.field else {
            return true;
        };
        mappings.iter().any(|name| {
            let mapping = trainer(name).mapping();
            let mut groups = mapping
                .lines()
                .iter()
                .flat_map(|line| line.capture_names().flatten());
            groups.any(|group| group == field)
                || self.is_step(mapping)
                || mapping.resolve(self.kind.as_deref(), field).is_some()
        })
    }
}
