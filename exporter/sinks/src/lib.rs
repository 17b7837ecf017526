//! Where telemetry goes to: files, OTLP endpoints, a page for Prometheus, Perfetto traces, and a line on the terminal.
//!
//! A sink takes batches of OTLP bytes as they are and says how each delivery went. It never waits to try again and never
//! counts: that is the pipeline's part. Nothing here knows a metric or a span by name.

mod console;
mod error;
mod file;
mod live;
mod otlp;
mod perfetto;
mod prometheus;

#[cfg(feature = "prometheus-bridge")]
pub use self::prometheus::RegistryBridge;
pub use self::prometheus::{
    ExtraFamilies, ExtraFamily, ExtraKind, ExtraMetric, ExtraValue, PrometheusConfig, PrometheusCounts,
    PrometheusServer, PrometheusSink, PrometheusStore, Refusal, Translation,
};
pub use console::{ConsoleSink, ConsoleStyle};
pub use error::SinkError;
pub use file::{FileFormat, FileJournal, FileNotice, FileSink};
pub use live::{
    FlightRecorder, FlightRecorderConfig, FlightRecorderSink, PerfettoFiles, PerfettoFilesConfig,
    PerfettoFilesSink, Recording,
};
pub use otlp::{
    Compression, HostAnswer, Identity, NamedFile, OtlpConfig, OtlpSink, Protocol, SignalConfig, TlsFiles,
    ask_host,
};
pub use perfetto::{
    AttributePolicy, PerfettoConfig, PerfettoError, PerfettoMapper, PerfettoParts, PerfettoSummary,
};
