//! What a Perfetto trace is to show.

use std::ops::{Range, RangeInclusive};

use pulsetrain_semconv::attribute;

/// What a Perfetto trace is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfettoConfig {
    /// Which attributes of spans are written.
    pub attributes: AttributePolicy,
    /// The attributes that put a span on rows of its own within its process, the first that a span has counts.
    pub group_by: Vec<String>,
    /// Only what overlaps this time, in nanoseconds since 1970.
    pub window: Option<Range<u64>>,
    /// Only the spans of these training steps.
    pub steps: Option<RangeInclusive<i64>>,
    /// Only the processes with these ranks.
    pub ranks: Vec<i64>,
}

/// Which attributes of spans are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributePolicy {
    /// All that a person asks for: the attributes, and the status where it is an error.
    #[default]
    Lean,
    /// Everything that a span says, ids included, so that it can be converted back.
    Full,
    /// Only these.
    Only(Vec<String>),
}

impl Default for PerfettoConfig {
    fn default() -> Self {
        let names = [attribute::DEVICE_ID.name, "thread.name", "thread.id"];
        Self {
            attributes: AttributePolicy::Lean,
            group_by: names.map(str::to_owned).to_vec(),
            window: None,
            steps: None,
            ranks: Vec::new(),
        }
    }
}

impl PerfettoConfig {
    /// Whether something from `start` to `end` is asked for.
    pub(super) fn shows_time(&self, start: u64, end: u64) -> bool {
        let overlaps = |window: &Range<u64>| start < window.end && end >= window.start;
        self.window.as_ref().is_none_or(overlaps)
    }

    /// Whether a process with this rank is asked for.
    pub(super) fn shows_rank(&self, rank: Option<i64>) -> bool {
        self.ranks.is_empty() || rank.is_some_and(|rank| self.ranks.contains(&rank))
    }
}

impl AttributePolicy {
    /// Whether an attribute with this key is asked for.
    pub(super) fn shows(&self, key: &[u8]) -> bool {
        match self {
            Self::Lean | Self::Full => true,
            Self::Only(keys) => keys.iter().any(|asked| asked.as_bytes() == key),
        }
    }

    /// Whether everything is written that is needed to convert back.
    pub(super) fn is_full(&self) -> bool {
        *self == Self::Full
    }
}
