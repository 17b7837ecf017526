//! Converts exports of Nsight Systems (`nsys export --type sqlite`) to OTLP.
//!
//! The rows of all tables are sorted by their start (`rows`) and sent as spans (`spans`): those of a thread nest by time,
//! those of a CUDA stream have links to the calls that launched them. Marks are events, and sampled GPU metrics are gauges
//! (`samples`). The tables are documented in NVIDIA's "SQLite Schema Reference". Tables and columns that an export does not
//! have are skipped.

mod batches;
mod database;
mod names;
mod nvtx;
mod rows;
mod samples;
mod spans;
mod tables;

use pulsetrain_otlp::{Signal, UnixNanos};
use pulsetrain_pipeline::spill::MemoryBudget;

pub use self::database::{NsightError, NsightExport};
use self::{batches::Batches, names::Names, rows::Rows, spans::Spans};
use crate::ConvertError;

/// The counts of a conversion of an export.
#[derive(Debug, Default)]
pub struct NsightConversion {
    /// OTLP messages that were delivered.
    pub messages: u64,
    /// Ranges that never end; they last until the end of the export.
    pub unfinished: u64,
    /// Ranges of threads that begin while too many others are open. Ranges and marks are not nested in them.
    pub too_many_open: u64,
    /// GPU work without a process, because the export does not name it. Such work has no link to its launch.
    pub without_process: u64,
    /// Tables with events that OTLP cannot represent, or with unknown columns, and the number of their rows.
    pub left_out: Vec<(String, u64)>,
    /// Whether times count from 1970, because neither the export nor the caller has the start of the capture.
    pub is_undated: bool,
    /// Read errors.
    pub errors: Vec<String>,
    /// The number of bytes that were written to temporary files.
    pub spilled_bytes: u64,
}

/// Reads an export and passes OTLP messages to `deliver`. Without `TARGET_INFO_SESSION_START_TIME`, times count from
/// `start_unix_nanos`. Ids of spans depend on `file_name` and on the start of the capture. Rows beyond `room` are spilled to
/// temporary files.
///
/// # Errors
///
/// A temporary file cannot be used, or `deliver` fails. Problems of the export are listed in the conversion.
pub fn convert_nsight<E: From<ConvertError>>(
    export: &NsightExport,
    file_name: &str,
    start_unix_nanos: Option<UnixNanos>,
    room: &MemoryBudget,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<NsightConversion, E> {
    let mut conversion = NsightConversion {
        errors: export.problems().to_vec(),
        ..NsightConversion::default()
    };
    let start = export.start_unix_nanos().or(start_unix_nanos);
    conversion.is_undated = start.is_none();
    let start = start.unwrap_or_default().0;
    let names = Names::from_export(export, &mut conversion.errors);
    // The exports of several ranks often have the same name.
    let file = format!("{file_name}\0{start}");
    let mut rows = Rows::new(start, &file, room.share(2));
    rows.read(export, &mut conversion)
        .map_err(ConvertError::Temporary)?;
    let mut batches = Batches::new(&names, room, deliver);
    samples::send(export, start, &mut batches, &mut conversion)?;
    Spans::send(rows, &file, &names, room, &mut batches, &mut conversion)?;
    batches.send_all()?;
    conversion.messages = batches.messages();
    conversion.left_out.extend(export.unknown_tables());
    Ok(conversion)
}
