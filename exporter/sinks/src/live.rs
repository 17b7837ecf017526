//! Perfetto traces of what is happening now: rotating files, and a recorder that keeps the last minutes in memory.
//!
//! Both hold the batches of a while (`held`) and draw them as `convert` would (`pulsetrain-convert`), so that a span that ends late still
//! is drawn around its children. `files` rewrites its newest file as it grows, by a rename: whoever opens it finds a complete trace.
//! `recorder` draws when it is asked.

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

/// Returns the series of the traces of `path`.
///
/// # Errors
/// A path that does not end in `.pftrace`.
fn trace_series(path: &Path) -> Result<FileSeries, SinkError> {
    FileSeries::of(path, ".pftrace", &[]).ok_or_else(|| SinkError::TraceName {
        path: path.to_owned(),
    })
}
