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
mod walk;

use std::io::{self, Write};

use bytes::Bytes;
use pulsetrain_otlp::{Signal, WireError};

pub use self::{
    config::{AttributePolicy, PerfettoConfig},
    summary::{ClockSkew, PerfettoSummary},
    trace_output::PerfettoParts,
};
use self::{
    partitions::Partitions, points::Points, records::Records, resources::Resources, scopes::Scopes,
    spans::Spans, walk::Input,
};

/// Collects OTLP and writes it as one Perfetto trace.
///
/// The bytes are kept until the trace is written, in memory up to [`PerfettoConfig::memory_bytes`] and in temporary files
/// beyond that. If a single trace of OTLP exceeds the budget, only its spans that are open at a time are held while its trees
/// are built. Resources, scopes and the names of series are always in memory and grow with the input.
#[derive(Debug)]
pub struct PerfettoMapper {
    config: PerfettoConfig,
    resources: Resources,
    scopes: Scopes,
    spans: Spans,
    /// The spans that were moved to a temporary file.
    spilled: Option<Partitions>,
    points: Points,
    records: Records,
    summary: PerfettoSummary,
}

/// The reason why a trace could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfettoError {
    /// The output or a temporary file cannot be written.
    #[error("cannot write the trace: {0}")]
    Write(#[from] io::Error),
    /// The input is not valid OTLP.
    #[error("the input is not OTLP: {0}")]
    Wire(#[from] WireError),
}

impl Default for PerfettoMapper {
    fn default() -> Self {
        Self::new(PerfettoConfig::default())
    }
}

impl PerfettoMapper {
    /// Creates a mapper.
    pub fn new(config: PerfettoConfig) -> Self {
        let room = config.room();
        Self {
            spans: Spans::new(&config),
            points: Points::new(room.share(8), config.buckets),
            records: Records::new(room.share(8)),
            resources: Resources::default(),
            scopes: Scopes::default(),
            spilled: None,
            summary: PerfettoSummary::default(),
            config,
        }
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// The bytes are not a message of that signal (the items before the error are kept), or a temporary file cannot be
    /// written.
    pub fn add(&mut self, signal: Signal, batch: impl Into<Bytes>) -> Result<(), PerfettoError> {
        let batch = batch.into();
        let mut input = Input {
            config: &self.config,
            resources: &mut self.resources,
            scopes: &mut self.scopes,
            summary: &mut self.summary,
            by_trace: self.config.by_trace && signal == Signal::Traces,
        };
        match signal {
            Signal::Traces => {
                self.spans.add(batch, &mut input)?;
            }
            Signal::Metrics => self.points.add(&batch, &mut input)?,
            Signal::Logs => self
                .records
                .add(&batch, &mut input, &mut self.spans, &mut self.spilled)?,
        }
        partitions::spill_beyond_budget(&mut self.spans, &mut self.spilled, &self.config)
    }

    /// Returns the configuration.
    pub fn config(&self) -> &PerfettoConfig {
        &self.config
    }

    /// Writes the trace.
    ///
    /// # Errors
    ///
    /// Errors of the output and of temporary files.
    pub fn write<W: Write>(self, out: W) -> Result<(W, PerfettoSummary), PerfettoError> {
        let mut single = SingleFile(Some(out));
        let summary = self.write_parts(&mut single, None)?;
        match single.0 {
            Some(out) => Ok((out, summary)),
            None => Err(io::Error::other("the output was taken and not given back").into()),
        }
    }

    /// Writes the trace into files of some `split` bytes each, by time; each file can be opened separately.
    ///
    /// # Errors
    ///
    /// As [`PerfettoMapper::write`].
    pub fn write_parts<P: PerfettoParts>(
        self,
        parts: &mut P,
        split: Option<u64>,
    ) -> Result<PerfettoSummary, PerfettoError> {
        emit::emit(self, parts, split)
    }
}

/// The output of a trace that is not split.
struct SingleFile<W>(Option<W>);

impl<W: Write> PerfettoParts for SingleFile<W> {
    type Part = W;

    fn open(&mut self, _: u32) -> io::Result<W> {
        self.0
            .take()
            .ok_or_else(|| io::Error::other("the trace has more than one file"))
    }

    fn close(&mut self, part: W) -> io::Result<()> {
        self.0 = Some(part);
        Ok(())
    }
}
