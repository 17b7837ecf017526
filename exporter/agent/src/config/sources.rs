//! The kinds of source that a configuration can name.

use std::sync::Arc;

use pulsetrain_formats::{LogFormat, format_by_name};
use pulsetrain_mapping::Mapping;
use pulsetrain_net::{ListenAddress, ListenAddressError};
use pulsetrain_pipeline::Problem;
use pulsetrain_receiver::ReceiverConfig;
use pulsetrain_record::{Timezone, TimezoneError};
use serde::Deserialize;

use super::{
    AuthSection, ExposureKeys, Named, ServerTlsSection, Spanned,
    fault::ValueError,
    mapping::MappingSection,
    named::Kinds,
    quantity::{Size, Time},
    rank::RankSection,
    section::{Key, Section, Setting, Shown, section},
    spanned::Location,
};

/// A source.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceConfig {
    /// Logs that are followed.
    Logs(Box<Spanned<LogsSection>>),
    /// A receiver for clients that send OTLP.
    Otlp(Box<Spanned<ReceiverSection>>),
}

impl SourceConfig {
    /// Returns the place in the file.
    pub(super) fn location(&self) -> Location {
        match self {
            Self::Logs(logs) => logs.location,
            Self::Otlp(receiver) => receiver.location,
        }
    }
}

section! {
    /// Training logs, followed while they are written, through rotation, truncation and restarts.
    pub(crate) struct LogsSection {
        /// Files, directories, and patterns with * and **. They need not exist yet.
        paths: Vec<Spanned<String>> = Vec::new(),
        /// The format, or auto to detect it.
        format: Spanned<String> = Spanned::without_location("auto".to_owned()),
        /// The metrics of keys, as in {format: text, step: iter, values: [{key: loss, metric: train.loss}, {key: dt, metric:
        /// train.step.duration, unit: ms}]}. MAPPING.md documents every key.
        mapping: Option<MappingSection> = None,
        /// The id of the run. Default: derived from the first record.
        run_id: Option<String> = None,
        /// The name of the run. Default: from the log.
        run_name: Option<String> = None,
        /// The rank of the logs, such as 3, or its place in their paths, such as {from: path, pattern: 'rank_(\d+)'}.
        /// Default: from torchrun's layout attempt_0/3/stdout.log, else 0.
        rank: Option<Spanned<RankSection>> = None,
        /// The zone of timestamps without one: a name such as America/New_York, local, UTC, an offset such as -05:00, or
        /// auto. auto infers the zone from the clock for a log that is being written, else UTC.
        timezone: Spanned<String> = Spanned::without_location("auto".to_owned()),
        /// Whether lines that are no measurements but explain the run become log records (run.message): warnings, errors,
        /// exceptions, failures, NaN, resumption, phases. Their text is sent; each at its occurrences 1, 10, 100, ...
        messages: bool = true,
        /// Whether links that lead out of a directory in paths, or out of the directory of a pattern, are followed. Links
        /// within it are. A path without wildcards may be a link itself.
        follow_links: bool = false,
        /// The poll interval where the system does not report file changes.
        poll_interval: Spanned<Time> = Spanned::without_location(Time::secs(1)),
    }
}

section! {
    /// An OTLP receiver, for programs with an OpenTelemetry SDK: gRPC and HTTP, protobuf and JSON, gzip and zstd. While
    /// no sink has room, it asks clients to retry.
    pub(crate) struct ReceiverSection {
        /// The addresses to listen on; each accepts both gRPC and HTTP. Only this machine can reach a loopback address.
        /// unix:/run/pulsetrain/otlp.sock is a Unix socket.
        listen: Vec<Spanned<Listen>> = ReceiverConfig::default().listen.into_iter().map(Listen).map(Spanned::without_location).collect(),
        /// Allows an address that other machines can reach without both tls and auth (or tls with client_ca). Then any
        /// client that can connect can send data.
        allow_remote: bool = false,
        /// TLS of the TCP connections; a Unix socket has none.
        tls: Option<Spanned<ServerTlsSection>> = None,
        /// The credentials that every request must have.
        auth: Option<Spanned<AuthSection>> = None,
        /// The permissions of Unix sockets, in octal. A client needs the right to write.
        socket_mode: Mode = Mode(ReceiverConfig::default().socket_mode),
        /// The maximum number of connections. Requests on further connections are rejected.
        max_connections: Spanned<usize> = Spanned::without_location(ReceiverConfig::default().max_connections),
        /// The maximum size of a message, before and after decompression, from 1KiB to 64MiB. Up to eight messages are in
        /// memory at a time.
        max_message: Spanned<Size> = Spanned::without_location(Size(ReceiverConfig::default().max_message)),
        /// Whether metrics that Tunix sends (enable_opentelemetry) are renamed to the names of the registry.
        rename_tunix: bool = true,
    }
}

impl LogsSection {
    /// Returns the format from this section or from the mapping, or `None` if it is to be detected.
    pub(crate) fn log_format(&self) -> Option<&'static LogFormat> {
        let mapped = || format_by_name(self.built_mapping()?.format_name()?);
        format_by_name(&self.format).or_else(mapped)
    }

    /// Returns the mapping, if it exists and has no faults.
    pub(crate) fn built_mapping(&self) -> Option<Arc<Mapping>> {
        self.mapping.as_ref()?.build().ok()
    }

    /// Returns the zone of timestamps without one, or `None` if it is to be inferred.
    ///
    /// # Errors
    /// Returns a description of the valid zones.
    pub(crate) fn timezone(&self) -> Result<Option<Timezone>, TimezoneError> {
        match self.timezone.as_str() {
            "auto" => Ok(None),
            name => Timezone::parse(name).map(Some),
        }
    }
}

impl ReceiverSection {
    /// Returns the keys of the exposure.
    pub(crate) fn exposure(&self) -> ExposureKeys<'_> {
        ExposureKeys {
            allow_remote: self.allow_remote,
            tls: self.tls.as_ref(),
            auth: self.auth.as_ref(),
        }
    }

    /// Returns the settings of the source.
    pub(crate) fn settings(&self) -> ReceiverConfig {
        ReceiverConfig {
            listen: self
                .listen
                .iter()
                .map(|address| address.value.0.clone())
                .collect(),
            exposure: self.exposure().settings(),
            socket_mode: self.socket_mode.0,
            max_connections: *self.max_connections,
            max_message: self.max_message.0,
        }
    }
}

/// A listen address: TCP or a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Listen(pub(crate) ListenAddress);

impl TryFrom<String> for Listen {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        text.parse().map(Self).map_err(|error: ListenAddressError| {
            ValueError(Problem::new(error.to_string()).with_remedy(error.remedy()))
        })
    }
}

impl Setting for Listen {
    fn shown(&self) -> Shown {
        Shown::Scalar(self.0.to_string())
    }
}

impl Setting for Vec<Spanned<Listen>> {
    fn shown(&self) -> Shown {
        Shown::List(self.iter().map(|address| address.value.0.to_string()).collect())
    }
}

/// Permissions of a file in octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Mode(pub(crate) u32);

impl TryFrom<String> for Mode {
    type Error = ValueError;

    fn try_from(text: String) -> Result<Self, ValueError> {
        u32::from_str_radix(&text, 8)
            .ok()
            .filter(|mode| *mode <= 0o777)
            .map(Self)
            .ok_or_else(|| {
                let problem = Problem::new(format!("{text:?} is not a mode"));
                ValueError(problem.with_remedy("write permissions in octal, like \"0660\""))
            })
    }
}

impl Setting for Mode {
    fn shown(&self) -> Shown {
        Shown::Scalar(format!("\"0{:o}\"", self.0))
    }
}

/// Returns the source of the example.
pub(super) fn example() -> Named<SourceConfig> {
    let [(name, source), ..] = examples();
    [(name.to_owned(), source)].into_iter().collect()
}

fn examples() -> [(&'static str, SourceConfig); 2] {
    let logs = LogsSection {
        paths: vec![Spanned::without_location("training.json".to_owned())],
        ..LogsSection::default()
    };
    [
        (
            "trainer",
            SourceConfig::Logs(Box::new(Spanned::without_location(logs))),
        ),
        ("sdk", SourceConfig::Otlp(Box::default())),
    ]
}

impl Kinds for SourceConfig {
    fn kind(&self) -> Key {
        let (name, doc, value) = match self {
            Self::Logs(logs) => ("logs", LogsSection::DOC, logs.shown()),
            Self::Otlp(receiver) => ("otlp", ReceiverSection::DOC, receiver.shown()),
        };
        Key { name, doc, value }
    }

    fn examples() -> Vec<(&'static str, Self)> {
        examples().into()
    }
}
