//! The sinks that write Perfetto traces of live telemetry.

use std::path::PathBuf;

use pulsetrain_sinks::{FlightRecorderConfig, PerfettoFilesConfig};

use super::{
    DrawingSection, Spanned,
    quantity::{Size, Time},
    section::section,
    signals::SignalList,
    source_list::{SourceList, sources_doc},
};

section! {
    /// Perfetto traces (open them at ui.perfetto.dev) in rotating files. Each file can be opened at any time, and shows
    /// the telemetry of its period. The section perfetto sets how traces are drawn.
    pub(crate) struct PerfettoSection {
        /// A path that ends in .pftrace. The start time of each file is inserted before the extension.
        path: Spanned<String> = Spanned::without_location(String::new()),
        /// The amount of telemetry per file, which is held in memory. Then the next file begins.
        bytes: Size = Size(64 << 20),
        /// The maximum age of a file.
        age: Time = Time::secs(600),
        /// The number of files to keep; the oldest is removed first.
        keep: usize = 24,
        /// The flush interval. A kill loses the telemetry after the last flush.
        flush_every: Time = Time::secs(5),
        /// The signals to show: a list of traces, metrics and logs. Default: all.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
    }
}

section! {
    /// The telemetry of the last minutes, in memory. GET /trace?last=5m on the health address returns it as a Perfetto
    /// trace, to this machine and to authenticated clients (health.auth). SIGUSR1 writes it to a file. Under run that
    /// signal belongs to the trainer, and the file is written when the trainer fails.
    pub(crate) struct FlightRecorderSection {
        /// The time span to keep.
        last: Time = Time::secs(300),
        /// The maximum size; above it, the oldest telemetry is evicted.
        bytes: Size = Size(64 << 20),
        /// The path of the files, which ends in .pftrace. The start time of each file is inserted before the extension.
        path: Spanned<String> = Spanned::without_location("recorded.pftrace".to_owned()),
        /// The signals to keep: a list of traces, metrics and logs. Default: all.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
    }
}

impl PerfettoSection {
    /// Returns the settings of the sink, with the layout of `drawing`.
    pub(crate) fn settings(&self, drawing: &DrawingSection) -> PerfettoFilesConfig {
        PerfettoFilesConfig {
            path: PathBuf::from(&self.path.value),
            bytes: self.bytes.0,
            age: self.age.0,
            keep: self.keep,
            flush_every: self.flush_every.0,
            perfetto: drawing.settings(),
        }
    }
}

impl FlightRecorderSection {
    /// Returns the settings of the recorder, with the layout of `drawing`.
    pub(crate) fn settings(&self, drawing: &DrawingSection) -> FlightRecorderConfig {
        FlightRecorderConfig {
            last: self.last.0,
            bytes: self.bytes.0,
            path: PathBuf::from(&self.path.value),
            perfetto: drawing.settings(),
        }
    }
}
