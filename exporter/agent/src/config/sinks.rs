//! The kinds of sink that a configuration can name.

use std::{collections::BTreeMap, net::SocketAddr};

use pulsetrain_pipeline::Requirement;
use pulsetrain_sinks::{PrometheusConfig, Translation};
use serde::Deserialize;

use super::{
    Named, Placed,
    named::Kinds,
    perfetto::{FlightRecorderSection, PerfettoSection},
    quantity::Time,
    section::{Key, Section, Setting, Shown, section},
    signals::SignalList,
};

/// A sink.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SinkConfig {
    /// A page for Prometheus.
    Prometheus(Placed<PrometheusSection>),
    /// An OTLP receiver.
    Otlp(Placed<OtlpSection>),
    /// A file.
    File(Placed<FileSection>),
    /// A line on the terminal.
    Console(Placed<ConsoleSection>),
    /// Perfetto traces in files that follow each other.
    Perfetto(Placed<PerfettoSection>),
    /// The last minutes in memory.
    FlightRecorder(Placed<FlightRecorderSection>),
}

section! {
    /// The last value of every series, on a page that Prometheus fetches.
    pub(crate) struct PrometheusSection {
        /// Where the page is served. Only this machine can reach a loopback address.
        listen: Placed<SocketAddr> = Placed::nowhere(PrometheusConfig::default().listen),
        /// Allows an address that other machines can reach: everybody who can connect then reads every metric.
        allow_remote: bool = PrometheusConfig::default().allow_remote,
        /// The path of the page.
        path: String = PrometheusConfig::default().path,
        /// The resource attributes that become labels of every series; all others are in target_info only.
        resource_labels: Vec<String> = PrometheusConfig::default().resource_labels,
        /// Whether every series carries the labels otel_scope_name, otel_scope_version and otel_scope_schema_url.
        scope_labels: bool = PrometheusConfig::default().scope_labels,
        /// The most series at one time; points of further series are refused and counted. What the agent says of itself has
        /// room beyond that.
        series_limit: usize = PrometheusConfig::default().series_limit,
        /// How long a run may send nothing before its series end.
        stale_after: Time = Time(PrometheusConfig::default().stale_after),
        /// How long a connection may move nothing before it is cut off: a scraper that does not read, half a request, or
        /// nobody any more.
        idle_timeout: Time = Time(PrometheusConfig::default().idle_timeout),
        /// How names become Prometheus names: underscore_escaping_with_suffixes, underscore_escaping_without_suffixes,
        /// no_utf8_escaping_with_suffixes or no_translation.
        translation: TranslationName = TranslationName::UnderscoreEscapingWithSuffixes,
    }
}

section! {
    /// A receiver of OTLP: a Collector, Tempo, Mimir.
    pub(crate) struct OtlpSection {
        /// grpc://host:port, grpcs://host:port, http://host:port or https://host:port. What is not set here is read from the
        /// OTEL_EXPORTER_OTLP_* variables, headers only where the endpoint of the variables has the same scheme, host and port.
        /// Without variables the endpoint is http://localhost:4318. Where signals have endpoints of several hosts or ports, each
        /// of these has a queue of its own.
        endpoint: Option<Placed<String>> = None,
        /// The signals that it receives (a list of traces, metrics and logs); without the key all of them. Without the key, the
        /// items of a signal that the receiver does not support are counted as unsupported_signal, and are no loss while it
        /// supports another signal. A signal that is named here has to be supported.
        signals: Option<Placed<SignalList>> = None,
        /// Headers of every request, of all signals. Keep secrets in variables: Bearer ${TOKEN}.
        headers: Headers = Headers::default(),
        /// gzip or none.
        compression: Option<Placed<String>> = None,
        /// The longest that one request may take.
        timeout: Option<Time> = None,
        /// Whether its data must arrive: while its queue is full, receivers answer 503 and logs are not read on. Otherwise it
        /// drops what finds no room.
        required: bool = true,
    }
}

section! {
    /// A file: .jsonl for JSON lines, .binpb for length-prefixed protobuf. After a restart the agent continues it, with every
    /// item once; a file that this agent has not written is appended to. A lock keeps a second
    /// program out of the file, where its file system has locks.
    pub(crate) struct FileSection {
        /// The file.
        path: Placed<String> = Placed::nowhere(String::new()),
        /// The signals that it receives (a list of traces, metrics and logs); without the key all of them.
        signals: Option<Placed<SignalList>> = None,
        /// Whether its data must arrive, as for otlp.
        required: bool = true,
    }
}

section! {
    /// A line for every run, kept up to date on the terminal; quiet where there is none.
    pub(crate) struct ConsoleSection {}
}

/// How names become Prometheus names, as the Collector spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TranslationName {
    UnderscoreEscapingWithSuffixes,
    UnderscoreEscapingWithoutSuffixes,
    NoUtf8EscapingWithSuffixes,
    NoTranslation,
}

/// Headers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Headers(pub(crate) BTreeMap<String, String>);

/// What the agent sends to where nothing is said.
pub(super) fn default() -> Named<SinkConfig> {
    let prometheus = SinkConfig::Prometheus(Placed::nowhere(PrometheusSection::default()));
    [("prometheus".to_owned(), prometheus)].into_iter().collect()
}

impl SinkConfig {
    /// Whether the sink may hold up the sources.
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

    /// Whether only one sink at a time can hold what it writes to or listens on.
    pub(crate) fn is_exclusive(&self) -> bool {
        !matches!(self, Self::Otlp(_) | Self::Console(_))
    }

    /// The signals that the section names, where it names some.
    pub(crate) fn signals(&self) -> Option<&Placed<SignalList>> {
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
    /// The settings as the sink takes them.
    pub(crate) fn settings(&self) -> PrometheusConfig {
        PrometheusConfig {
            listen: *self.listen,
            allow_remote: self.allow_remote,
            path: self.path.clone(),
            resource_labels: self.resource_labels.clone(),
            scope_labels: self.scope_labels,
            series_limit: self.series_limit,
            stale_after: self.stale_after.0,
            idle_timeout: self.idle_timeout.0,
            translation: self.translation.into(),
        }
    }
}

impl OtlpSection {
    /// What the section sets, under the name of the variable that it overrides, with those of single signals.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match name {
            "OTEL_EXPORTER_OTLP_HEADERS" => self.headers.list(),
            "OTEL_EXPORTER_OTLP_COMPRESSION" => self.compression.as_ref().map(|name| name.value.clone()),
            "OTEL_EXPORTER_OTLP_TIMEOUT" => self.timeout.map(|time| time.0.as_millis().to_string()),
            _ => None,
        }
    }
}

impl Headers {
    /// The headers as one variable holds them; nothing where there are none.
    fn list(&self) -> Option<String> {
        let encoded = |(name, value): (&String, &String)| {
            let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            format!("{name}={value}")
        };
        (!self.0.is_empty()).then(|| self.0.iter().map(encoded).collect::<Vec<_>>().join(","))
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

impl Setting for Headers {
    fn shown(&self) -> Shown {
        // Headers may hold secrets, which are not shown.
        Shown::Keys(Vec::new())
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
            endpoint: Some(Placed::nowhere("grpc://localhost:4317".to_owned())),
            ..OtlpSection::default()
        };
        let file = FileSection {
            path: Placed::nowhere("telemetry.jsonl".to_owned()),
            ..FileSection::default()
        };
        let traces = PerfettoSection {
            path: Placed::nowhere("traces/run.pftrace".to_owned()),
            ..PerfettoSection::default()
        };
        vec![
            ("prometheus", Self::Prometheus(Placed::default())),
            ("collector", Self::Otlp(Placed::nowhere(otlp))),
            ("archive", Self::File(Placed::nowhere(file))),
            ("terminal", Self::Console(Placed::default())),
            ("traces", Self::Perfetto(Placed::nowhere(traces))),
            ("recorder", Self::FlightRecorder(Placed::default())),
        ]
    }
}
