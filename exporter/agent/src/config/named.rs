//! Entries under user-defined names: `sources` and `sinks`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::section::{Entry, Key, Setting, Shown};

/// Entries by name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named<T>(pub(crate) BTreeMap<String, T>);

/// The kinds of entry under a name, each with its own keys.
pub(crate) trait Kinds: Sized {
    /// Returns the kind and its keys.
    fn kind(&self) -> Key;

    /// Returns one entry of every kind, as examples.
    fn examples() -> Vec<(&'static str, Self)>;
}

impl<T> Named<T> {
    /// Iterates over the entries, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, entry)| (name.as_str(), entry))
    }
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> FromIterator<(String, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A key without a value is an empty list of entries.
        let entries = Option::<BTreeMap<String, T>>::deserialize(deserializer)?;
        Ok(Self(entries.unwrap_or_default()))
    }
}

impl<T: Kinds> Setting for Named<T> {
    fn shown(&self) -> Shown {
        let set: Vec<Entry> = self.iter().map(|(name, entry)| show(name, entry)).collect();
        let examples = T::examples()
            .iter()
            .map(|(name, entry)| show(name, entry))
            .filter(|example| set.iter().all(|entry| entry.kind.name != example.kind.name))
            .collect();
        Shown::Named { set, examples }
    }
}

fn show(name: &str, entry: &impl Kinds) -> Entry {
    Entry {
        name: name.to_owned(),
        kind: entry.kind(),
    }
}
