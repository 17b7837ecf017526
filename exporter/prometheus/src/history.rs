//! The history of a run as OpenMetrics text: every point with its time, for `promtool tsdb create-blocks-from
//! openmetrics`.
//!
//! Names and labels are those of the page and of Prometheus' own OTLP receiver (`ingest`). OpenMetrics 1.0
//! requires the samples of a family together, and those of a series in order of time. `samples` sorts them
//! with an external merge sort.
//!
//! Prometheus has millisecond timestamps. Of several points of a series in one millisecond the last is
//! written, and [`HistorySummary::replaced`] counts the others. Exemplars and the ends of series are not
//! written: `promtool` ignores exemplars, and the format has no staleness markers.

mod samples;

use std::io::{self, Write};

use pulsetrain_otlp::WireError;
use pulsetrain_pipeline::{Delivery, spill::MemoryBudget};

use self::samples::Samples;
use super::{PrometheusConfig, PrometheusStore, ingest::Ingest, sink::delivery};

/// Collects OTLP metrics and writes them as OpenMetrics text.
///
/// Memory grows with the number of series. Points beyond the memory budget `room` are spilled to temporary
/// files.
pub struct OpenMetricsHistory {
    ingest: Ingest<Samples>,
}

/// The contents of a written history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistorySummary {
    /// The number of series, a histogram with its buckets as one.
    pub series: usize,
    /// The number of points written.
    pub points: u64,
    /// The number of points that a later point of the same series and millisecond with another value
    /// replaced.
    pub replaced: u64,
}

impl OpenMetricsHistory {
    /// Returns an empty history with the names, labels and limits of `config`.
    pub fn new(config: &PrometheusConfig, room: MemoryBudget) -> Self {
        let store = PrometheusStore::new(config);
        Self {
            ingest: Ingest::into_receiver(store.clone(), Samples::new(store, room)),
        }
    }

    /// Adds a `MetricsData` message. Returns the number of rejected points, with reasons.
    ///
    /// Points of delta temporality are rejected, as by Prometheus' own OTLP receiver.
    ///
    /// # Errors
    /// Malformed OTLP, or a temporary file that cannot be written.
    pub fn add(&mut self, bytes: &[u8]) -> Result<Delivery, HistoryError> {
        let refused = self.ingest.batch(bytes)?;
        self.ingest.receiver().failure()?;
        Ok(delivery(&refused))
    }

    /// Returns whether no point was added.
    pub fn is_empty(&mut self) -> bool {
        self.ingest.receiver().is_empty()
    }

    /// Writes all points.
    ///
    /// # Errors
    /// An output that cannot be written, or a temporary file that cannot be read.
    pub fn write(self, out: &mut impl Write) -> io::Result<HistorySummary> {
        self.ingest.into_inner().write(out)
    }
}

impl HistorySummary {
    /// Describes the points that are not in the file, for a message.
    pub fn problem(&self) -> Option<String> {
        if self.points == 0 {
            return Some("there is no file, because no metrics arrived".to_owned());
        }
        (self.replaced > 0).then(|| {
            format!(
                "{} of {} points are left out, because Prometheus resolves milliseconds and a later point of their series \
                 has the same one",
                self.replaced,
                self.points + self.replaced
            )
        })
    }
}

/// The reason why a message cannot be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The bytes are not OTLP.
    #[error("the batch is not OTLP: {0}")]
    Wire(#[from] WireError),
    /// A temporary file cannot be written.
    #[error("cannot write a temporary file: {0}; free space on its disk, or set TMPDIR to another folder")]
    Spill(#[from] io::Error),
}

#[cfg(test)]
mod tests;
