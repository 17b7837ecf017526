//! The sinks that make Perfetto traces of what is happening.

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
    /// Perfetto traces (open them at ui.perfetto.dev), one file after the other. Each can be opened at any moment and
    /// shows what came in while it was written. The section perfetto sets how they are drawn.
    pub(crate) struct PerfettoSection {
        /// A path that ends in .pftrace; every file gets the time of its begin before that.
        path: Spanned<String> = Spanned::without_location(String::new()),
        /// How much telemetry one file shows. So much is held in memory; then the next file begins.
        bytes: Size = Size(64 << 20),
        /// How long one file is written to.
        age: Time = Time::secs(600),
        /// How many files are kept; the oldest is removed first.
        keep: usize = 24,
        /// How often the file catches up. What came in after that is lost by a kill.
        flush_every: Time = Time::secs(5),
        /// The signals that it shows (a list of traces, metrics and logs); without the key all of them.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
    }
}

section! {
    /// What came in during the last minutes, in memory. GET /trace?last=5m of the health address answers with it as a Perfetto
    /// trace, to this machine and to clients that prove who they are (health.auth); SIGUSR1 writes it into a file. Under run that signal is the trainer's, and the file is
    /// written when the trainer has failed.
    pub(crate) struct FlightRecorderSection {
        /// For how long it is kept.
        last: Time = Time::secs(300),
        /// How much of it at most; beyond that the oldest goes first.
        bytes: Size = Size(64 << 20),
        /// Where files are written: a path that ends in .pftrace; every file gets the time of its begin before that.
        path: Spanned<String> = Spanned::without_location("recorded.pftrace".to_owned()),
        /// The signals that it keeps (a list of traces, metrics and logs); without the key all of them.
        signals: Option<Spanned<SignalList>> = None,
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
    }
}

impl PerfettoSection {
    /// The settings as the sink takes them, which draws like this.
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
    /// The settings as the recorder takes them, which draws like this.
    pub(crate) fn settings(&self, drawing: &DrawingSection) -> FlightRecorderConfig {
        FlightRecorderConfig {
            last: self.last.0,
            bytes: self.bytes.0,
            path: PathBuf::from(&self.path.value),
            perfetto: drawing.settings(),
        }
    }
}
