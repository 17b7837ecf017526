//! The configuration of a Perfetto trace.

use std::{
    ops::{Range, RangeInclusive},
    path::PathBuf,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_semconv::{attribute, span};

/// The default memory budget: with everything else that drawing needs, a conversion stays below 256 MiB.
const MEMORY_BYTES: usize = 128 << 20;

/// The configuration of a Perfetto trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfettoConfig {
    /// The attributes of spans that are written.
    pub attributes: AttributePolicy,
    /// The attributes that put a span on separate rows within its process; the first one that a span has counts.
    pub rows: Vec<String>,
    /// The names of spans without a parent that have a separate row, each with the label of the row. Other spans without a
    /// parent are on the row of their scope.
    pub root_rows: Vec<(String, String)>,
    /// The attributes of a resource that name its process; the first that it has counts.
    pub process_names: Vec<String>,
    /// The attributes of a resource that viewers show after the name of its process.
    pub process_labels: Vec<String>,
    /// Whether the spans of a trace share a row, regardless of their processes: a waterfall. Their category is then the name
    /// of their process, and they cannot be converted back.
    pub by_trace: bool,
    /// Whether all spans of a trace have the same colour in viewers.
    pub color_by_trace: bool,
    /// Whether the buckets of distributions are counters too.
    pub buckets: bool,
    /// Spans shorter than this, in nanoseconds, are merged with their neighbours unless they failed.
    pub merge_below: Option<u64>,
    /// The memory budget for spans, points and log records, beyond which they are spilled to temporary files.
    pub memory_bytes: usize,
    /// The folder of temporary files; `None` is the system's.
    pub temporary: Option<PathBuf>,
    /// The time window; items outside it are dropped.
    pub window: Option<Range<UnixNanos>>,
    /// The selected training steps; spans of other steps are dropped.
    pub steps: Option<RangeInclusive<i64>>,
    /// The selected ranks; processes with other ranks are dropped. Empty selects all.
    pub ranks: Vec<i64>,
}

/// The attributes of spans that are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributePolicy {
    /// The fields that are useful for readers: the attributes, the status if it is an error, a kind other than internal, and
    /// the trace id of the root of a tree.
    #[default]
    Lean,
    /// All fields of a span, ids included, so that it can be converted back.
    Full,
    /// Only attributes with these keys.
    Only(Vec<String>),
}

impl Default for PerfettoConfig {
    fn default() -> Self {
        let names = [
            attribute::DEVICE_ID.name,
            "thread.name",
            "thread.id",
            attribute::PERF_TIMELINE.name,
        ];
        Self {
            attributes: AttributePolicy::Lean,
            rows: names.map(str::to_owned).to_vec(),
            root_rows: vec![(span::TRAIN_STEP.name.to_owned(), "steps".to_owned())],
            process_names: vec![attribute::SERVICE_NAME.name.to_owned()],
            process_labels: [attribute::HOST_NAME.name, "service.version"]
                .map(str::to_owned)
                .to_vec(),
            by_trace: false,
            color_by_trace: false,
            buckets: false,
            merge_below: None,
            memory_bytes: MEMORY_BYTES,
            temporary: None,
            window: None,
            steps: None,
            ranks: Vec::new(),
        }
    }
}

impl PerfettoConfig {
    /// Returns the memory budget for the input.
    pub(super) fn room(&self) -> MemoryBudget {
        MemoryBudget {
            bytes: self.memory_bytes,
            folder: self.temporary.clone(),
        }
    }

    /// Returns whether an item from `start` to `end` overlaps the window.
    pub(super) fn shows_time(&self, start: u64, end: u64) -> bool {
        let overlaps = |window: &Range<UnixNanos>| start < window.end.0 && end >= window.start.0;
        self.window.as_ref().is_none_or(overlaps)
    }

    /// Returns whether an item from `start` to `end` is merged with its neighbours unless it failed.
    #[inline]
    pub(super) fn is_short(&self, start: u64, end: u64) -> bool {
        self.merge_below.is_some_and(|below| end - start < below)
    }

    /// Returns whether a process with this rank is selected.
    pub(super) fn shows_rank(&self, rank: Option<i64>) -> bool {
        self.ranks.is_empty() || rank.is_some_and(|rank| self.ranks.contains(&rank))
    }
}

impl AttributePolicy {
    /// Returns whether an attribute with this key is selected.
    pub(super) fn shows(&self, key: &[u8]) -> bool {
        match self {
            Self::Lean | Self::Full => true,
            Self::Only(keys) => keys.iter().any(|asked| asked.as_bytes() == key),
        }
    }

    /// Returns whether all fields for the conversion back are written.
    pub(super) fn is_full(&self) -> bool {
        *self == Self::Full
    }
}
