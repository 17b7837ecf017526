//! What a Perfetto trace is to show.

use std::{
    ops::{Range, RangeInclusive},
    path::PathBuf,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_semconv::{attribute, span};

/// What is held in memory unless the configuration has another number: with all that drawing needs besides, a conversion stays
/// below 256 MiB.
const MEMORY_BYTES: usize = 128 << 20;

/// What a Perfetto trace is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfettoConfig {
    /// Which attributes of spans are written.
    pub attributes: AttributePolicy,
    /// The attributes that put a span on rows of its own within its process; the first that a span has counts.
    pub rows: Vec<String>,
    /// The names of spans without a parent that have a row of their own, each with the label of the row. Other spans without a
    /// parent are on the row of their scope.
    pub root_rows: Vec<(String, String)>,
    /// The attributes of a resource that name its process; the first that it has counts.
    pub process_names: Vec<String>,
    /// The attributes of a resource that viewers show next to its process's name.
    pub process_labels: Vec<String>,
    /// Whether the spans of a trace share a row, whatever process they are of: a waterfall. Their category is then the name of
    /// their process, and they cannot be converted back.
    pub by_trace: bool,
    /// Whether viewers give the spans of one trace one colour.
    pub color_by_trace: bool,
    /// Whether the buckets of distributions are counters too.
    pub buckets: bool,
    /// Spans shorter than this, in nanoseconds, are merged with their neighbours unless they failed.
    pub merge_below: Option<u64>,
    /// How much memory spans, points and log records may take before they go to temporary files.
    pub memory_bytes: usize,
    /// The folder of temporary files; none is the system's.
    pub temporary: Option<PathBuf>,
    /// Only what overlaps this time.
    pub window: Option<Range<UnixNanos>>,
    /// Only the spans of these training steps.
    pub steps: Option<RangeInclusive<i64>>,
    /// Only the processes with these ranks.
    pub ranks: Vec<i64>,
}

/// Which attributes of spans are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributePolicy {
    /// All that a person asks for: the attributes, the status where it is an error, a kind other than internal, and the trace id
    /// of the first span of a tree.
    #[default]
    Lean,
    /// All fields of a span, ids included, so that it can be converted back.
    Full,
    /// Only these.
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
    /// The memory for what is to be drawn.
    pub(super) fn room(&self) -> MemoryBudget {
        MemoryBudget {
            bytes: self.memory_bytes,
            folder: self.temporary.clone(),
        }
    }

    /// Whether something from `start` to `end` is asked for.
    pub(super) fn shows_time(&self, start: u64, end: u64) -> bool {
        let overlaps = |window: &Range<UnixNanos>| start < window.end.0 && end >= window.start.0;
        self.window.as_ref().is_none_or(overlaps)
    }

    /// Whether something from `start` to `end` is merged with its neighbours unless it failed.
    #[inline]
    pub(super) fn is_short(&self, start: u64, end: u64) -> bool {
        self.merge_below.is_some_and(|below| end - start < below)
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
