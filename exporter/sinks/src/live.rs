//! Live Perfetto traces: rotating files, and a flight recorder of the last minutes in memory.
//!
//! Both buffer batches (`batch_ring`) and convert them with `pulsetrain-to-perfetto`, so that a span that ends
//! late still encloses its children. `files` replaces its newest file by a rename, so a reader always finds a
//! complete trace. `recorder` converts on request.

mod batch_ring;
mod files;
#[cfg(test)]
mod one_span;
mod recorder;
mod replace;

pub use files::{PerfettoFiles, PerfettoFilesConfig, PerfettoFilesSink};
pub use recorder::{FlightRecorder, FlightRecorderConfig, FlightRecorderSink, TraceSnapshot};

use std::path::Path;

use crate::{SinkError, file_series::FileSeries};

/// Returns the file series of the traces at `path`.
///
/// # Errors
/// A path that does not end in `.pftrace`.
fn trace_series(path: &Path) -> Result<FileSeries, SinkError> {
    FileSeries::from_path(path, ".pftrace", &[]).ok_or_else(|| SinkError::TraceName {
        path: path.to_owned(),
    })
}
