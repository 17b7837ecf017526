//! The history of a run as OpenMetrics text: every point with its own time, for `promtool tsdb create-blocks-from openmetrics`.
//!
//! Names and labels are those of the page and of Prometheus' own OTLP receiver (`ingest`). OpenMetrics 1.0 wants all samples
//! of a family together, those of a series in a row, in the order of time: `samples` sorts them, in temporary files where they
//! do not fit into memory; `sink` is the sink.
//!
//! Prometheus resolves milliseconds. Of several points of a series in one millisecond the last is written, and
//! [`HistorySummary::replaced`] counts the others. Exemplars and the ends of series have no place in such a file:
//! `promtool` ignores the former, the format lacks the latter.

mod samples;
mod sink;

use std::io::{self, Write};

use pulsetrain_otlp::WireError;
use pulsetrain_pipeline::{Delivery, spill::Room};

use self::samples::Samples;
pub use self::sink::OpenMetricsSink;
use super::{PrometheusConfig, PrometheusStore, ingest::Ingest, sink::delivery};

/// Gathers OTLP metrics and writes them as OpenMetrics text.
///
/// Memory grows with the number of series; their points go to temporary files beyond the `room`.
pub struct OpenMetricsHistory {
    ingest: Ingest<Samples>,
}

/// What a history has become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistorySummary {
    /// The series, a histogram with its buckets as one.
    pub series: usize,
    /// The points written.
    pub points: u64,
    /// The points left out because a later one of their series, with another value, has the same millisecond.
    pub replaced: u64,
}

impl OpenMetricsHistory {
    /// An empty history, with the names, labels and limits of `config`.
    pub fn new(config: &PrometheusConfig, room: Room) -> Self {
        let store = PrometheusStore::new(config);
        Self {
            ingest: Ingest::into_receiver(store.clone(), Samples::new(store, room)),
        }
    }

    /// Adds a `MetricsData` message and returns how many of its points were refused, and why.
    ///
    /// Points of delta temporality are refused, as Prometheus' own OTLP receiver does.
    ///
    /// # Errors
    /// Bytes that are not OTLP; a temporary file that cannot be written.
    pub fn add(&mut self, bytes: &[u8]) -> Result<Delivery, HistoryError> {
        let refused = self.ingest.batch(bytes)?;
        self.ingest.receiver().failure()?;
        Ok(delivery(&refused))
    }

    /// Whether no point was added.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.ingest.receiver().is_empty()
    }

    /// Writes all points.
    ///
    /// # Errors
    /// An output that cannot be written, a temporary file that cannot be read.
    pub fn write(self, out: &mut impl Write) -> io::Result<HistorySummary> {
        self.ingest.into_inner().write(out)
    }
}

/// Why a message could not be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The bytes are not OTLP.
    #[error("the batch is not OTLP: {0}")]
    Wire(#[from] WireError),
    /// A temporary file cannot be written.
    #[error("cannot write a temporary file: {0}; make room in it, or set TMPDIR to another folder")]
    Spill(#[from] io::Error),
}

#[cfg(test)]
mod tests;
