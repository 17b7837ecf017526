//! The configuration of derived signals. The stage, its steps and its derivations read it.

use std::time::Duration;

/// The maximum length of a resource from which signals are derived. The stages remember resources, so a longer one passes unread.
pub(crate) const MAX_RESOURCE_BYTES: usize = 16 << 10;

/// The maximum length together of the resources that each of several maps remembers.
pub(crate) const MAX_REMEMBERED_BYTES: usize = 16 << 20;

/// The maximum number of reasons of throttling that a GPU can have. The drivers have about ten.
pub(crate) const MAX_REASONS: usize = 64;

/// The limits of open steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalsConfig {
    /// The time that a step waits for more of its spans and points after the first one.
    pub wait: Duration,
    /// The maximum number of open steps of all ranks. Beyond it the oldest closes early. An open step uses
    /// about 1 KB.
    pub max_open: usize,
    /// The maximum number of ranks. Beyond it the rank that was silent for the longest time is dropped. A
    /// rank uses about 4 KB.
    pub max_ranks: usize,
}

impl Default for SignalsConfig {
    /// Returns the limits for live training: 1 s.
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(1),
            max_open: 16_384,
            max_ranks: 16_384,
        }
    }
}

impl SignalsConfig {
    /// Returns the limits for recordings. Spans may arrive long after points, because an importer sends
    /// batches of one signal when they are full.
    pub fn offline() -> Self {
        Self {
            wait: Duration::from_secs(24 * 3600),
            max_open: 65_536,
            ..Self::default()
        }
    }
}
