//! The names under `train.custom`: a bounded number of them.

use std::collections::HashSet;

/// How many names a run may bring along; each is a series for ever.
const LIMIT: usize = 256;

/// The names that were admitted.
#[derive(Debug, Default)]
pub(super) struct CustomNames {
    names: HashSet<String>,
}

impl CustomNames {
    /// Whether values under `name` are kept.
    pub(super) fn admit(&mut self, name: &str) -> bool {
        if self.names.contains(name) {
            return true;
        }
        self.names.len() < LIMIT && self.names.insert(name.to_owned())
    }
}
