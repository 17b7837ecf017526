//! Sinks: files, OTLP and remote-write endpoints, OpenMetrics histories, Perfetto traces, and the console.
//!
//! A sink receives batches of encoded OTLP and returns the result of each delivery. The pipeline retries and
//! counts. Only the console selects metrics, by the constants of the registry.

mod attributes;
mod blocking;
mod console;
mod error;
mod file;
mod file_series;
mod live;
mod openmetrics;
mod otlp;
mod remote_write;
mod unfinished_file;

pub use attributes::{AttributesSink, sha256_hex};
pub use blocking::{WriterStopped, blocking};
pub use console::{ConsoleSink, ConsoleStyle};
pub use error::{HeaderFault, SinkError};
pub use file::{
    FileCompression, FileConfig, FileControl, FileFormat, FileJournal, FileNotice, FilePermissions,
    FileRotation, FileSink,
};
pub use live::{
    FlightRecorder, FlightRecorderConfig, FlightRecorderSink, PerfettoFiles, PerfettoFilesConfig,
    PerfettoFilesSink, TraceSnapshot,
};
pub use openmetrics::OpenMetricsSink;
pub use otlp::{HostAnswer, OtlpConfig, OtlpSettings, OtlpSink, Protocol, SignalConfig, ask_host};
pub use remote_write::RemoteWriteSink;
pub use unfinished_file::UnfinishedFile;
