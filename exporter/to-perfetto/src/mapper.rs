//! The mapper: collects batches, and writes them as one trace.

use std::io::{self, Write};

use bytes::Bytes;
use pulsetrain_otlp::{Signal, WireError};

use super::{
    PerfettoConfig, PerfettoParts, PerfettoSummary, emit,
    partitions::{self, Partitions},
    points::Points,
    records::Records,
    resources::Resources,
    scopes::Scopes,
    spans::Spans,
    walk::Input,
};

/// Collects OTLP and writes it as one Perfetto trace.
///
/// The bytes are kept until the trace is written, in memory up to [`PerfettoConfig::memory_bytes`] and in temporary files
/// beyond that. If a single trace of OTLP exceeds the budget, only its spans that are open at a time are held while its trees
/// are built. Resources, scopes and the names of series are always in memory and grow with the input.
#[derive(Debug)]
pub struct PerfettoMapper {
    pub(super) config: PerfettoConfig,
    pub(super) resources: Resources,
    pub(super) scopes: Scopes,
    pub(super) spans: Spans,
    /// The spans that were moved to a temporary file.
    pub(super) spilled: Option<Partitions>,
    pub(super) points: Points,
    pub(super) records: Records,
    pub(super) summary: PerfettoSummary,
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
