//! What the `OTEL_EXPORTER_OTLP_*` variables and an explicit target say, settled for each signal.
//!
//! The rules are those of the OpenTelemetry specification, protocol/exporter.md. Variables come from a lookup that the
//! caller passes in; nothing here reads the process environment, a file or the network.

mod endpoint;
mod headers;
mod variables;

use std::{path::PathBuf, time::Duration};

use http::{HeaderMap, Uri};
use pulsetrain_otlp::{Signal, Signals};

use self::{endpoint::Endpoint, variables::Variables};
use super::transport;
use crate::SinkError;

/// Where and how each signal is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpConfig {
    traces: SignalConfig,
    metrics: SignalConfig,
    logs: SignalConfig,
    signals: Signals,
    requested: Signals,
}

/// Where and how one signal is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalConfig {
    /// The whole URL for HTTP; scheme and authority for gRPC.
    pub endpoint: Uri,
    /// The protocol.
    pub protocol: Protocol,
    /// Headers added to each request; every value is marked as sensitive, so that `Debug` does not show it.
    pub headers: HeaderMap,
    /// The longest that one request may take, answer included; `None` is no limit.
    pub timeout: Option<Duration>,
    /// How request bodies are compressed.
    pub compression: Compression,
    /// The PEM files for TLS; read only where the endpoint is `https`.
    pub tls: TlsFiles,
}

/// Which of OTLP's three transports carries a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `grpc`.
    Grpc,
    /// `http/protobuf`, the default.
    HttpProtobuf,
    /// `http/json`.
    HttpJson,
}

/// How request bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    None,
    /// gzip.
    Gzip,
}

/// The PEM files for TLS, each with the variable that names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities to trust instead of the system's.
    pub authority: Option<NamedFile>,
    /// What the client shows the server.
    pub identity: Option<Identity>,
}

/// A client's certificate chain and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate chain.
    pub certificate: NamedFile,
    /// The private key.
    pub key: NamedFile,
}

/// A file and the variable that names it, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The variable.
    pub variable: String,
    /// The file.
    pub path: PathBuf,
}

impl OtlpConfig {
    /// What the variables say. A variable for one signal goes before the one for all; an empty one counts as unset; without
    /// any, everything goes to `http://localhost:4318` as protobuf. A signal whose `OTEL_<SIGNAL>_EXPORTER` is `none` is not
    /// sent; one with an endpoint of its own is requested.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SinkError> {
        Self::of_environment(&Variables::new(&lookup))
    }

    /// An explicit target: `grpc://host:port` and `grpcs://host:port` (gRPC, plain and with TLS), `http://…` and `https://…`
    /// (a base URL, to which `/v1/<signal>` is added).
    ///
    /// Without a port `grpc`, `grpcs` and `http` mean OTLP's own ports, 4317 and 4318; `https` keeps 443, where hosted
    /// receivers listen. The variables still give timeout, compression and certificates, and choose between protobuf and
    /// JSON over HTTP; their endpoints do not count. They give headers unless they name an endpoint of another origin
    /// (scheme, host and port): headers may hold secrets.
    pub fn from_url(url: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SinkError> {
        Self::of_target(url, &Variables::new(&lookup))
    }

    /// A section of a configuration: its URL as for [`from_url`](Self::from_url), or the endpoints of the variables. Its
    /// `settings`, by the name of the variable for all signals, override the variables of every signal. Without headers of
    /// its own it gets those of the variables only where its origin is that of their endpoint.
    pub fn from_section(
        url: Option<&str>,
        settings: impl Fn(&str) -> Option<String>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SinkError> {
        let variables = Variables::new(&lookup).overridden_by(&settings);
        match url {
            Some(url) => Self::of_target(url, &variables),
            None => Self::of_environment(&variables),
        }
    }

    fn of_environment(variables: &Variables<'_>) -> Result<Self, SinkError> {
        let config = Self::settle(variables, |variables, signal| variables.route(signal))?;
        let all = || Signal::ALL.into_iter();
        Ok(Self {
            signals: all().filter(|signal| !variables.is_off(*signal)).collect(),
            requested: all()
                .filter(|signal| variables.has_own_endpoint(*signal))
                .collect(),
            ..config
        })
    }

    fn of_target(url: &str, variables: &Variables<'_>) -> Result<Self, SinkError> {
        let target = endpoint::Target::parse(url)?;
        Self::settle(variables, |variables, signal| {
            let asked = variables.protocol(signal)?;
            Ok((target.protocol(asked), target.endpoint.clone()))
        })
    }

    /// Sends only these signals, which the user has asked for by name: a receiver that does not support one of them loses its
    /// items.
    #[must_use]
    pub fn with_signals(self, signals: Signals) -> Self {
        Self {
            signals,
            requested: signals,
            ..self
        }
    }

    /// Splits the configuration by receiver: the signals whose endpoints have one scheme, host and port stay together. One
    /// sink for each keeps a dead receiver from holding up the others.
    pub fn by_receiver(&self) -> Vec<Self> {
        let mut parts: Vec<(String, Signals)> = Vec::new();
        for signal in self.signals.iter() {
            let origin = transport::origin(&self.signal(signal).endpoint);
            match parts.iter_mut().find(|(known, _)| *known == origin) {
                Some((_, signals)) => signals.insert(signal),
                None => parts.push((origin, [signal].into_iter().collect())),
            }
        }
        let part = |(_, signals)| Self {
            signals,
            ..self.clone()
        };
        parts.into_iter().map(part).collect()
    }

    /// The name of a sink with this configuration: `otlp http://collector:4318`, with every receiver once.
    pub fn name(&self) -> String {
        let mut origins: Vec<String> = Vec::new();
        for signal in self.signals.iter() {
            let origin = transport::origin(&self.signal(signal).endpoint);
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        format!("otlp {}", origins.join(", "))
    }

    /// The signals that are sent.
    pub fn signals(&self) -> Signals {
        self.signals
    }

    /// The signals that the user has asked for by name.
    pub(super) fn requested(&self) -> Signals {
        self.requested
    }

    /// The settings of one signal.
    pub fn signal(&self, signal: Signal) -> &SignalConfig {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }

    fn settle(
        variables: &Variables<'_>,
        route: impl Fn(&Variables<'_>, Signal) -> Result<(Protocol, Endpoint), SinkError>,
    ) -> Result<Self, SinkError> {
        let settle = |signal| {
            let (protocol, endpoint) = route(variables, signal)?;
            variables.signal_config(signal, protocol, &endpoint)
        };
        Ok(Self {
            traces: settle(Signal::Traces)?,
            metrics: settle(Signal::Metrics)?,
            logs: settle(Signal::Logs)?,
            signals: Signals::ALL,
            requested: Signals::NONE,
        })
    }
}

impl Variables<'_> {
    fn signal_config(
        &self,
        signal: Signal,
        protocol: Protocol,
        to: &Endpoint,
    ) -> Result<SignalConfig, SinkError> {
        Ok(SignalConfig {
            endpoint: to.for_signal(signal, protocol),
            protocol,
            headers: self.headers(signal, to)?,
            timeout: self.timeout(signal)?,
            compression: self.compression(signal)?,
            tls: self.tls(signal)?,
        })
    }
}

#[cfg(test)]
mod tests;
