//! Names of sources as numbers: a batch carries the number of its source, and a sink may receive some sources only.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The number of a source, constant for a name during the life of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

/// The sources whose batches a sink receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceSet {
    /// All sources, and batches without a source.
    #[default]
    All,
    /// These sources, in ascending order.
    Only(Arc<[SourceId]>),
}

impl SourceId {
    /// The number of batches that no named source has sent.
    pub const NONE: Self = Self(0);

    /// Returns the number of a name. Names are kept for the life of the process: they come from configurations.
    pub fn new(name: &str) -> Self {
        static NUMBERS: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
        Self(*numbers.entry(name.to_owned()).or_insert(next))
    }
}

impl SourceSet {
    /// Returns the set of the sources with these names.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<SourceId> = names.into_iter().map(SourceId::new).collect();
        ids.sort_unstable();
        ids.dedup();
        Self::Only(ids.into())
    }

    /// Returns whether a sink with this set receives batches of a source.
    pub fn contains(&self, source: SourceId) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.binary_search(&source).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_name_has_one_id_and_a_set_contains_only_its_names() {
        let (a, b) = (SourceId::new("a"), SourceId::new("b"));
        assert!(a != b && a == SourceId::new("a") && a != SourceId::NONE);
        let set = SourceSet::named(["b", "a", "b"]);
        assert_eq!(set, SourceSet::named(["a", "b"]));
        assert!(set.contains(a) && set.contains(b));
        assert!(!set.contains(SourceId::new("c")) && !set.contains(SourceId::NONE));
        assert!(SourceSet::All.contains(SourceId::NONE));
    }
}
