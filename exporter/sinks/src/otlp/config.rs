//! Resolves the `OTEL_EXPORTER_OTLP_*` variables, an explicit target and the settings of a section for each signal.
//!
//! The rules are those of the OpenTelemetry specification, protocol/exporter.md. What a section sets overrides the
//! environment for every signal, and the environment's settings are used for its own endpoint only. Variables come from a
//! lookup that the caller passes in; nothing here reads the process environment, a file or the network.

mod compression;
mod endpoint;
mod headers;
mod proxy;
mod settings;
mod variables;

use std::{path::PathBuf, time::Duration};

use http::{HeaderMap, HeaderName, Uri};
use pulsetrain_otlp::{Signal, Signals};

pub use self::{
    compression::Compression,
    proxy::{Proxy, ProxyRoute},
    settings::{Credentials, OtlpSettings, Password},
};
use self::{endpoint::Endpoint, variables::Variables};
use super::{peer::MAX_REQUEST_BYTES, transport};
use crate::SinkError;

/// Where and how each signal is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpConfig {
    traces: SignalConfig,
    metrics: SignalConfig,
    logs: SignalConfig,
    signals: Signals,
    requested: Signals,
    notices: Vec<String>,
}

/// Where and how one signal is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalConfig {
    /// The complete URL for HTTP; scheme and authority for gRPC.
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
    /// Who the client is, by the header `authorization`.
    pub credentials: Option<Credentials>,
    /// The proxy through which the endpoint is reached.
    pub proxy: Option<Proxy>,
    /// The maximum size of a request in bytes, before compression; a larger batch is split.
    pub max_request_bytes: usize,
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

impl Protocol {
    /// The maximum size of a request in bytes: the default limit of gRPC servers, or that of OTLP, which receivers over HTTP
    /// need not have.
    fn max_request_bytes(self) -> usize {
        match self {
            Self::Grpc => 4 << 20,
            Self::HttpProtobuf | Self::HttpJson => MAX_REQUEST_BYTES,
        }
    }
}

/// Whom to trust over TLS and what to show, each file with the setting that names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authorities to trust instead of the system's.
    pub authority: Option<NamedFile>,
    /// What the client shows the server.
    pub identity: Option<Identity>,
    /// The name that the server's certificate is checked for, instead of the host of the endpoint.
    pub server_name: Option<String>,
    /// Accepts every certificate: the connection is encrypted, but nobody knows to whom.
    pub insecure_skip_verify: bool,
}

/// A client's certificate chain and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate chain.
    pub certificate: NamedFile,
    /// The private key.
    pub key: NamedFile,
}

/// A file and the variable or the key that names it, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The variable or the key.
    pub variable: String,
    /// The file.
    pub path: PathBuf,
}

impl OtlpConfig {
    /// Returns the settings of the environment. A variable for one signal overrides the one for all; an empty one counts as
    /// unset; without any, everything goes to `http://localhost:4318` as protobuf. A signal whose `OTEL_<SIGNAL>_EXPORTER` is
    /// `none` is not sent; one with an endpoint of its own is requested.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SinkError> {
        Self::of_environment(&Variables::new(&lookup))
    }

    /// Returns the settings for an explicit target: `grpc://host:port` and `grpcs://host:port` (gRPC, plain and with TLS),
    /// `http://…` and `https://…` (a base URL, to which `/v1/<signal>` is added).
    ///
    /// Without a port `grpc`, `grpcs` and `http` mean OTLP's own ports, 4317 and 4318; `https` keeps 443, where hosted
    /// receivers listen. The variables choose between protobuf and JSON. They give headers, timeout, compression and
    /// certificates unless they name an endpoint of another origin (scheme, host and port): then these are for that
    /// receiver.
    pub fn from_url(url: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SinkError> {
        Self::of_target(url, &Variables::new(&lookup))
    }

    /// Returns the settings of a section of a configuration: its URL as for [`from_url`](Self::from_url), or the endpoints of
    /// the variables. Its `settings` override the variables of every signal. What it does not set comes from the variables
    /// only if its origin is that of their endpoint, which is `http://localhost:4318` where they name none. Only the choice of
    /// protobuf or JSON is that of the variables for every origin.
    pub fn from_section(
        url: Option<&str>,
        settings: &OtlpSettings,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SinkError> {
        let variables = Variables::new(&lookup).overridden_by(settings);
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
            let asked = variables.target_protocol(signal);
            Ok((target.protocol(asked), target.endpoint.clone()))
        })
    }

    /// Returns warnings, each with what to do: credentials that travel unencrypted, and variables that were ignored because their
    /// values are not known (specification, configuration/sdk-environment-variables.md, "Parsing empty value" and "Enum").
    pub fn notices(&self) -> &[String] {
        &self.notices
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
        let mut config = Self {
            traces: settle(Signal::Traces)?,
            metrics: settle(Signal::Metrics)?,
            logs: settle(Signal::Logs)?,
            signals: Signals::ALL,
            requested: Signals::NONE,
            notices: variables.notices(),
        };
        for signal in Signal::ALL {
            let warning = config.signal(signal).cleartext_warning();
            let is_new = |warning: &String| !config.notices.contains(warning);
            let warning = warning.filter(is_new);
            config.notices.extend(warning);
        }
        Ok(config)
    }
}

impl SignalConfig {
    /// Returns a warning if credentials travel unencrypted to another machine.
    fn cleartext_warning(&self) -> Option<String> {
        let is_secret = |name: &HeaderName| {
            let name = name.as_str();
            name == "authorization" || ["key", "token", "secret"].iter().any(|word| name.contains(word))
        };
        let has_secret = self.credentials.is_some() || self.headers.keys().any(is_secret);
        let host = self.endpoint.host().unwrap_or_default();
        let is_clear = self.endpoint.scheme_str() == Some("http") && !proxy::is_loopback(host);
        (has_secret && is_clear).then(|| {
            format!(
                "credentials travel unencrypted to {}: use https:// or grpcs://",
                transport::origin(&self.endpoint)
            )
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
            timeout: self.timeout(signal, to),
            compression: self.compression(signal, to),
            tls: self.tls(signal, to)?,
            credentials: self.credentials(),
            proxy: self.proxy(to, protocol),
            max_request_bytes: protocol.max_request_bytes(),
        })
    }
}

#[cfg(test)]
mod tests;
