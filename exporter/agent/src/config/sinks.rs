//! The kinds of sink that a configuration can name.

use std::net::SocketAddr;

use pulsetrain_pipeline::{Requirement, SinkTaskConfig, SourceSet};
use pulsetrain_prometheus::{PrometheusConfig, Translation};
use serde::Deserialize;

use super::{
    AuthSection, ExposureKeys, LimitsConfig, Location, Named, ServerTlsSection, Spanned,
    file::FileSection,
    named::Kinds,
    otlp::OtlpSection,
    perfetto::{FlightRecorderSection, PerfettoSection},
    quantity::{Size, Time, TimeOrNever},
    section::{Key, Section, Setting, Shown, section},
    signals::SignalList,
    source_list::{SourceList, sources_doc},
    sources::{Listen, Mode},
};
use crate::log::{self, Subject};

/// A sink.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SinkConfig {
    /// A metrics endpoint for Prometheus.
    Prometheus(Box<Spanned<PrometheusSection>>),
    /// An OTLP receiver.
    Otlp(Box<Spanned<OtlpSection>>),
    /// A file.
    File(Spanned<FileSection>),
    /// A line on the terminal.
    Console(Spanned<ConsoleSection>),
    /// Perfetto traces in rotating files.
    Perfetto(Spanned<PerfettoSection>),
    /// A flight recorder of the last minutes, in memory.
    FlightRecorder(Spanned<FlightRecorderSection>),
}

section! {
    /// The last value of every series, on a page that Prometheus scrapes.
    pub(crate) struct PrometheusSection {
        /// The address of the page. Only this machine can reach a loopback address. unix:/run/pulsetrain/metrics.sock is a Unix
        /// socket, which Prometheus 3.16 scrapes by the label __unix_socket__.
        listen: Spanned<Listen> = Spanned::without_location(Listen(PrometheusConfig::default().listen)),
        /// Allows an address that other machines can reach without both tls and auth (or tls with client_ca). Then any
        /// client that can connect can read every metric.
        allow_remote: bool = false,
        /// TLS of the TCP connections; scrape it with scheme: https.
        tls: Option<Spanned<ServerTlsSection>> = None,
        /// The credentials that every request must have.
        auth: Option<Spanned<AuthSection>> = None,
        /// The permissions of a Unix socket, in octal. A scraper needs write permission.
        socket_mode: Mode = Mode(PrometheusConfig::default().socket_mode),
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
        /// The path of the page.
        path: String = PrometheusConfig::default().path,
        /// Whether / is a live page for browsers: curves, ranks, GPUs, verdicts and losses, from a bounded history in
        /// memory. Default: true on a loopback address, or if clients authenticate (auth, or tls with client_ca). On other
        /// addresses, true shows the runs to any client that can connect.
        page: Option<bool> = None,
        /// The resource attributes that become labels of every series. All others are only in target_info.
        resource_labels: Vec<String> = PrometheusConfig::default().resource_labels,
        /// Whether every series has the labels otel_scope_name, otel_scope_version and otel_scope_schema_url.
        scope_labels: bool = PrometheusConfig::default().scope_labels,
        /// The maximum number of series. Points of further series are refused and counted. The agent's own metrics may
        /// exceed it.
        series_limit: usize = PrometheusConfig::default().series_limit,
        /// The memory limit of series, names, help texts and resources; points above it are refused and counted. At this
        /// limit and at series_limit, the stalest series are evicted, after at least 5m.
        max_bytes: Size = Size(PrometheusConfig::default().max_bytes),
        /// The time without a sample after which a series ends, or never.
        series_stale_after: TimeOrNever = TimeOrNever(PrometheusConfig::default().series_stale_after),
        /// The time without data after which the series of a run end.
        stale_after: Time = Time(PrometheusConfig::default().stale_after),
        /// The idle timeout of a connection: a scraper that does not read, an incomplete request, or a lost peer.
        idle_timeout: Time = Time(PrometheusConfig::default().idle_timeout),
        /// The translation of names to Prometheus: underscore_escaping_with_suffixes, underscore_escaping_without_suffixes,
        /// no_utf8_escaping_with_suffixes or no_translation.
        translation: TranslationName = TranslationName::UnderscoreEscapingWithSuffixes,
    }
}

section! {
    /// One line per run on the terminal, updated in place. No output without a terminal.
    pub(crate) struct ConsoleSection {
        #[doc = sources_doc!()]
        sources: Option<Spanned<SourceList>> = None,
    }
}

/// The translation of names to Prometheus, in the Collector's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TranslationName {
    UnderscoreEscapingWithSuffixes,
    UnderscoreEscapingWithoutSuffixes,
    NoUtf8EscapingWithSuffixes,
    NoTranslation,
}

/// Returns the default sinks.
pub(super) fn default() -> Named<SinkConfig> {
    let prometheus =
        SinkConfig::Prometheus(Box::new(Spanned::without_location(PrometheusSection::default())));
    [("prometheus".to_owned(), prometheus)].into_iter().collect()
}

impl SinkConfig {
    /// Returns the place of the section.
    pub(super) fn location(&self) -> Location {
        match self {
            Self::Prometheus(section) => section.location,
            Self::Otlp(section) => section.location,
            Self::File(section) => section.location,
            Self::Console(section) => section.location,
            Self::Perfetto(section) => section.location,
            Self::FlightRecorder(section) => section.location,
        }
    }

    /// Returns whether the sink may block the sources.
    pub(crate) fn is_required(&self) -> bool {
        self.requirement() == Requirement::Required
    }

    /// Returns the requirement.
    pub(crate) fn requirement(&self) -> Requirement {
        let is_required = match self {
            Self::Otlp(otlp) => otlp.required,
            Self::File(file) => file.required,
            Self::Prometheus(_) | Self::Console(_) | Self::Perfetto(_) | Self::FlightRecorder(_) => false,
        };
        if is_required {
            Requirement::Required
        } else {
            Requirement::BestEffort
        }
    }

    /// Returns the queue and retry settings of the sink, with `limits` for the keys that its section does not set.
    pub(crate) fn task_config(&self, limits: &LimitsConfig) -> SinkTaskConfig {
        match self {
            Self::Otlp(otlp) => otlp.task_config(limits.task_config()),
            Self::File(_) => SinkTaskConfig {
                held_when_delivered: true,
                ..limits.task_config()
            },
            _ => limits.task_config(),
        }
    }

    /// Returns whether the sink writes to or listens on something that only one sink can hold at a time.
    pub(crate) fn is_exclusive(&self) -> bool {
        !matches!(self, Self::Otlp(_) | Self::Console(_))
    }

    /// Returns the sources that the section lists, if it has the key.
    pub(crate) fn source_list(&self) -> Option<&Spanned<SourceList>> {
        let list = match self {
            Self::Prometheus(section) => &section.sources,
            Self::Otlp(section) => &section.sources,
            Self::File(section) => &section.sources,
            Self::Console(section) => &section.sources,
            Self::Perfetto(section) => &section.sources,
            Self::FlightRecorder(section) => &section.sources,
        };
        list.as_ref()
    }

    /// Logs a warning, for a command that has other sources than the configuration, that the sink receives all of them.
    pub(crate) fn warn_sources_ignored(&self, name: &str) {
        if self.source_list().is_some() {
            let message = "`sources` is a setting of `pulsetrain agent`: here the sink receives everything";
            log::warn(Subject::Sink(name), message);
        }
    }

    /// Returns the sources that the sink receives.
    pub(crate) fn sources(&self) -> SourceSet {
        self.source_list().map_or(SourceSet::All, |list| list.set())
    }

    /// Returns the signals that the section lists, if it has the key.
    pub(crate) fn signals(&self) -> Option<&Spanned<SignalList>> {
        match self {
            Self::Otlp(otlp) => otlp.signals.as_ref(),
            Self::File(file) => file.signals.as_ref(),
            Self::Perfetto(files) => files.signals.as_ref(),
            Self::FlightRecorder(recorder) => recorder.signals.as_ref(),
            Self::Prometheus(_) | Self::Console(_) => None,
        }
    }
}

impl PrometheusSection {
    /// Returns the default page at this address.
    pub(crate) fn with_address(address: SocketAddr) -> Self {
        Self {
            listen: Spanned::without_location(Listen(address.into())),
            ..Self::default()
        }
    }

    /// Returns the keys of the exposure.
    pub(crate) fn exposure(&self) -> ExposureKeys<'_> {
        ExposureKeys {
            allow_remote: self.allow_remote,
            tls: self.tls.as_ref(),
            auth: self.auth.as_ref(),
        }
    }

    /// Returns whether the section has a live page.
    pub(crate) fn has_page(&self) -> bool {
        self.page
            .unwrap_or_else(|| self.is_on_loopback() || self.exposure().settings().authenticates())
    }

    fn is_on_loopback(&self) -> bool {
        let address = self.listen.value.0.tcp();
        address.is_some_and(|address| address.ip().is_loopback())
    }

    /// Returns the settings of the sink.
    pub(crate) fn settings(&self) -> PrometheusConfig {
        PrometheusConfig {
            listen: self.listen.value.0.clone(),
            socket_mode: self.socket_mode.0,
            exposure: self.exposure().settings(),
            path: self.path.clone(),
            resource_labels: self.resource_labels.clone(),
            scope_labels: self.scope_labels,
            series_limit: self.series_limit,
            max_bytes: self.max_bytes.0,
            series_stale_after: self.series_stale_after.0,
            stale_after: self.stale_after.0,
            idle_timeout: self.idle_timeout.0,
            translation: self.translation.into(),
        }
    }
}

impl From<TranslationName> for Translation {
    fn from(name: TranslationName) -> Self {
        match name {
            TranslationName::UnderscoreEscapingWithSuffixes => Self::UnderscoreEscapingWithSuffixes,
            TranslationName::UnderscoreEscapingWithoutSuffixes => Self::UnderscoreEscapingWithoutSuffixes,
            TranslationName::NoUtf8EscapingWithSuffixes => Self::NoUtf8EscapingWithSuffixes,
            TranslationName::NoTranslation => Self::NoTranslation,
        }
    }
}

impl Setting for TranslationName {
    fn shown(&self) -> Shown {
        let name = match self {
            Self::UnderscoreEscapingWithSuffixes => "underscore_escaping_with_suffixes",
            Self::UnderscoreEscapingWithoutSuffixes => "underscore_escaping_without_suffixes",
            Self::NoUtf8EscapingWithSuffixes => "no_utf8_escaping_with_suffixes",
            Self::NoTranslation => "no_translation",
        };
        Shown::Scalar(name.to_owned())
    }
}

impl Kinds for SinkConfig {
    fn kind(&self) -> Key {
        let (name, doc, value) = match self {
            Self::Prometheus(prometheus) => ("prometheus", PrometheusSection::DOC, prometheus.shown()),
            Self::Otlp(otlp) => ("otlp", OtlpSection::DOC, otlp.shown()),
            Self::File(file) => ("file", FileSection::DOC, file.shown()),
            Self::Console(console) => ("console", ConsoleSection::DOC, console.shown()),
            Self::Perfetto(files) => ("perfetto", PerfettoSection::DOC, files.shown()),
            Self::FlightRecorder(recorder) => {
                ("flight_recorder", FlightRecorderSection::DOC, recorder.shown())
            }
        };
        Key { name, doc, value }
    }

    fn examples() -> Vec<(&'static str, Self)> {
        let otlp = OtlpSection {
            endpoint: Some(Spanned::without_location("grpc://localhost:4317".to_owned())),
            ..OtlpSection::default()
        };
        let file = FileSection {
            path: Spanned::without_location("telemetry.jsonl".to_owned()),
            ..FileSection::default()
        };
        let traces = PerfettoSection {
            path: Spanned::without_location("traces/run.pftrace".to_owned()),
            ..PerfettoSection::default()
        };
        vec![
            ("prometheus", Self::Prometheus(Box::default())),
            ("collector", Self::Otlp(Box::new(Spanned::without_location(otlp)))),
            ("archive", Self::File(Spanned::without_location(file))),
            ("terminal", Self::Console(Spanned::default())),
            ("traces", Self::Perfetto(Spanned::without_location(traces))),
            ("recorder", Self::FlightRecorder(Spanned::default())),
        ]
    }
}
