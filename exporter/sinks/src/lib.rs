//! Where telemetry goes to: files, OTLP endpoints, a page for Prometheus, Perfetto traces, and a line on the terminal.
//!
//! A sink takes batches of OTLP bytes as they are and returns how each delivery went. It never waits to try again and never
//! counts: that is the pipeline's part. Nothing here knows a metric or a span by name.

mod attributes;
mod blocking;
mod console;
mod error;
mod file;
mod file_series;
mod live;
mod otlp;
mod page;
mod prometheus;
mod sparkline;
mod unfinished_file;

#[cfg(feature = "prometheus-bridge")]
pub use self::prometheus::RegistryBridge;
pub use self::prometheus::{
    ExtraFamilies, ExtraFamily, ExtraKind, ExtraMetric, ExtraValue, HistoryError, HistorySummary,
    OpenMetricsHistory, OpenMetricsSink, PrometheusConfig, PrometheusCounts, PrometheusServer,
    PrometheusSink, PrometheusStore, Rejection, RemoteWriteSink, Translation,
};
pub use attributes::{AttributesSink, sha256_hex};
pub use blocking::blocking;
pub use console::{ConsoleSink, ConsoleStyle};
pub use error::SinkError;
pub use file::{
    FileCompression, FileConfig, FileControl, FileFormat, FileJournal, FileNotice, FilePermissions,
    FileRotation, FileSink,
};
pub use live::{
    FlightRecorder, FlightRecorderConfig, FlightRecorderSink, PerfettoFiles, PerfettoFilesConfig,
    PerfettoFilesSink, TraceSnapshot,
};
pub use otlp::{
    Compression, Credentials, HostAnswer, Identity, NamedFile, OtlpConfig, OtlpSettings, OtlpSink, Password,
    Protocol, Proxy, ProxyRoute, SignalConfig, TlsFiles, ask_host,
};
pub use page::{
    PageConfig, PageCounts, PageRejection, PageRejections, PageSink, PageStore, PageTelemetry, SinkState,
    TextStyle,
};
pub use unfinished_file::UnfinishedFile;
