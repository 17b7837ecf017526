//! OTLP as a Perfetto trace: what is a process, what stands on which row, what an arrow means.
//!
//! | OTLP | Perfetto |
//! |---|---|
//! | resource | process, in the order of ranks; its attributes are an instant `resource` |
//! | span | slice on a row of its group: `device.id`, thread, or else the scope of the root (`forest`); rows never cross (`lanes`) |
//! | parent that does not contain its child on one row, link | arrow |
//! | span event | instant on the span's row |
//! | attribute | annotation of the same type (`values`) |
//! | number, distribution | counter; count, sum, quantiles and buckets are a counter each (`points`, `quantiles`) |
//! | state set | row of states |
//! | log record | log line, and instant on the row `logs` with all that it carries |
//!
//! Input may come in any order and batches. What does not make sense is drawn where it does least harm, and counted.

mod config;
mod draw;
mod forest;
mod identity;
mod lanes;
mod metrics;
mod points;
mod quantiles;
mod records;
mod resources;
mod scopes;
mod spans;
mod summary;
mod values;

use std::io::Write;

use bytes::Bytes;
use pulsetrain_otlp::{Signal, WireError};
use pulsetrain_perfetto::{Process, TraceWriter};

pub use self::{
    config::{AttributePolicy, PerfettoConfig},
    summary::PerfettoSummary,
};
use self::{
    draw::{Drawing, Group},
    forest::Flows,
    points::Points,
    records::Records,
    resources::Resources,
    scopes::Scopes,
    spans::Spans,
};

/// Gathers OTLP and writes it as one Perfetto trace.
///
/// The bytes are kept as they are until the trace is written, with some 100 bytes a span besides.
#[derive(Debug, Default)]
pub struct PerfettoMapper {
    config: PerfettoConfig,
    resources: Resources,
    scopes: Scopes,
    spans: Spans,
    points: Points,
    records: Records,
    summary: PerfettoSummary,
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfettoError {
    /// The output takes no more.
    #[error("cannot write the trace: {0}")]
    Write(#[from] std::io::Error),
    /// What was taken in is no OTLP.
    #[error("the input is no OTLP: {0}")]
    Wire(#[from] WireError),
}

impl PerfettoMapper {
    /// A mapper that draws what `config` says.
    pub fn new(config: PerfettoConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Takes in a batch.
    ///
    /// # Errors
    ///
    /// Bytes that are no message of that signal; what came before the fault is kept.
    pub fn add(&mut self, signal: Signal, batch: impl Into<Bytes>) -> Result<(), WireError> {
        let (config, resources, summary) = (&self.config, &mut self.resources, &mut self.summary);
        let batch = batch.into();
        match signal {
            Signal::Traces => self
                .spans
                .add(batch, config, resources, &mut self.scopes, summary),
            Signal::Metrics => self.points.add(&batch, config, resources, summary),
            Signal::Logs => self.records.add(batch, config, resources, summary),
        }
    }

    /// Writes the trace.
    pub fn write<W: Write>(mut self, out: W) -> Result<(W, PerfettoSummary), PerfettoError> {
        let mut trace = TraceWriter::new(out);
        self.spans.leave_asked(&self.config, &mut self.summary);
        let identities = forest::grow(&mut self.spans, &self.scopes, &mut self.summary);
        let mut flows = Flows::default();
        let groups = draw::groups(&self.spans, &mut flows, &mut self.summary);
        flows.add_links(&self.spans, &identities, &mut self.summary)?;
        drop(identities);
        flows.close(&mut self.summary);
        let pids = self.resources.pids();
        for (rank, number) in self.resources.in_order().into_iter().enumerate() {
            let mine: Vec<&Group> = groups.iter().filter(|group| group.resource == number).collect();
            self.process(
                &mut trace,
                number,
                rank as i32,
                pids[number as usize],
                &mine,
                &flows,
            )?;
        }
        Ok((trace.finish()?, self.summary))
    }

    fn process<W: Write>(
        &mut self,
        trace: &mut TraceWriter<W>,
        number: u32,
        rank: i32,
        pid: i32,
        groups: &[&Group],
        flows: &Flows,
    ) -> Result<(), PerfettoError> {
        let about = self.resources.get(number);
        let labels: Vec<&str> = about.labels.iter().map(String::as_str).collect();
        let process = trace.process(&Process {
            pid,
            name: &about.name,
            labels: &labels,
            rank,
        })?;
        self.summary.processes += 1;
        let mut drawing = Drawing {
            trace,
            spans: &self.spans,
            resources: &self.resources,
            scopes: &self.scopes,
            flows,
            config: &self.config,
            summary: &mut self.summary,
        };
        if let Some(first) = groups.iter().map(|group| group.first_start(&self.spans)).min() {
            drawing.resource(process, number, groups, first)?;
        }
        for (rank, group) in groups.iter().enumerate() {
            drawing.group(process, group, rank as i32)?;
        }
        metrics::draw(trace, process, number, &mut self.points, &mut self.summary)?;
        self.records.draw(trace, process, number, &mut self.summary)
    }
}
