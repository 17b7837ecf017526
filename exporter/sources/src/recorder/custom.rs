//! The names under `train.custom`: a bounded number of them.

use crate::in_order::InOrder;

/// How many names a run may bring along; each is a series for ever.
const LIMIT: usize = 256;

/// The names that were admitted.
#[derive(Debug, Default)]
pub(super) struct CustomNames {
    names: InOrder<()>,
}

impl CustomNames {
    /// Whether values under `name` are kept.
    pub(super) fn admit(&mut self, name: &str) -> bool {
        if self.names.place(name).is_some() {
            return true;
        }
        let has_room = self.names.len() < LIMIT;
        if has_room {
            self.names.add(name, ());
        }
        has_room
    }
}
