//! Converts OTLP to a Perfetto trace: processes, rows and arrows.
//!
//! | OTLP | Perfetto |
//! |---|---|
//! | resource | process, in the order of ranks; its attributes are an instant `resource` |
//! | span | slice on a row of its group: `device.id`, thread, `steps`, or else the scope of the root (`span_trees`); rows never cross (`lanes`) |
//! | parent that does not contain its child on one row, link | arrow (`flows`) |
//! | span event | instant on the span's row |
//! | attribute | annotation of the same type (`values`) |
//! | number | counter; deltas are summed (`points`) |
//! | distribution | count, sum, limits, quantiles and buckets, a counter each; all but the first two per interval of a delta (`quantiles`) |
//! | state set | row of states, or counters if its points have further attributes |
//! | log record | log line, and instant with all of its fields: on the row of its span, else on the row `logs` |
//!
//! The passes, in their order:
//!
//! 1. `walk` reads each message once and numbers its resources and scopes.
//! 2. `scan` reads the ids, times and row of each span, and keeps the position of its bytes.
//! 3. Beyond the memory budget, `partitions` moves spans to a temporary file, grouped by their traces.
//! 4. Points (`points`) and log records that name no span (`records`) are sorted by time, with an external sort if they exceed
//!    the budget. A log record that names a span is kept with the spans, as a child without a duration.
//! 5. `span_trees` finds parents by a hash of their ids, cuts cycles and repairs times.
//! 6. `flows` numbers the arrows of links and of parents that do not contain their child.
//! 7. `lanes` splits each tree into parts that nest, and packs the parts on rows by their start. Log records outside of their
//!    spans are sorted with those of pass 4.
//! 8. The trees of a single trace that exceeds the budget are built in `external`, by a sweep over open spans.
//! 9. `emit` merges trees, points and log records by time.
//! 10. `draw` reads the bytes of each span a second time, and `annotations` encodes only what the trace shows.
//!
//! Input may have any order. Invalid data are repaired and counted (`summary`).

mod annotations;
mod config;
mod counter_names;
mod draw;
mod emit;
mod external;
mod flows;
mod identities;
mod identity;
mod labels;
mod lanes;
mod mapper;
mod merge;
mod message;
mod metric_heads;
mod metrics;
mod optional_index;
mod partitions;
mod point_kinds;
mod points;
mod prefetch;
mod quantiles;
mod readings;
mod records;
mod resources;
mod scan;
mod scopes;
mod series;
mod span_trees;
mod spans;
mod spilled_trees;
mod stack_trace;
mod summary;
mod trace_output;
mod tree_span;
mod trees;
mod values;
pub mod vocabulary;
mod walk;

pub use config::{AttributePolicy, PerfettoConfig};
pub use mapper::{PerfettoError, PerfettoMapper};
pub use summary::{ClockSkew, PerfettoSummary};
pub use trace_output::PerfettoParts;
