//! Resolves the `OTEL_EXPORTER_OTLP_*` variables, an explicit target and the settings of a section, for each
//! signal.
//!
//! The rules are those of the OpenTelemetry specification, protocol/exporter.md. The settings of a section
//! override the environment for every signal. The settings of the environment apply only to its own endpoint.
//! Variables come from a lookup of the caller; this module reads no environment, file or network.

mod endpoint;
mod headers;
mod settings;
mod variables;

use std::time::Duration;

use http::{HeaderMap, HeaderName, Uri};
use pulsetrain_net::client::{ClientTls, Compression, Credentials, Proxy, is_loopback};
use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::Problem;

pub use self::settings::OtlpSettings;
use self::{endpoint::Endpoint, variables::Variables};
use super::{client::origin, peer::MAX_REQUEST_BYTES};
use crate::SinkError;

/// The endpoint and the settings of each signal.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpConfig {
    traces: SignalConfig,
    metrics: SignalConfig,
    logs: SignalConfig,
    signals: Signals,
    requested: Signals,
    notices: Vec<Problem>,
}

/// The endpoint and the settings of one signal.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalConfig {
    /// The complete URL for HTTP, or scheme and authority for gRPC.
    pub endpoint: Uri,
    /// The protocol.
    pub protocol: Protocol,
    /// Additional headers of each request. All values are marked as sensitive, so that `Debug` does not show
    /// them.
    pub headers: HeaderMap,
    /// The maximum duration of one request, response included. `None` means no limit.
    pub timeout: Option<Duration>,
    /// The compression of request bodies.
    pub compression: Compression,
    /// The PEM files for TLS. They are read only if the endpoint is `https`.
    pub tls: ClientTls,
    /// The credentials of the client, for the `authorization` header.
    pub credentials: Option<Credentials>,
    /// The proxy of the endpoint.
    pub proxy: Option<Proxy>,
    /// The maximum size of a request in bytes, before compression. A larger batch is split.
    pub max_request_bytes: usize,
}

/// The OTLP transport of a signal.
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
    /// Returns the maximum size of a request in bytes: the default limit of gRPC servers, or the limit of
    /// OTLP over HTTP.
    fn max_request_bytes(self) -> usize {
        match self {
            Self::Grpc => 4 << 20,
            Self::HttpProtobuf | Self::HttpJson => MAX_REQUEST_BYTES,
        }
    }
}

impl OtlpConfig {
    /// Returns the settings of the environment. The variable of a signal overrides the one for all signals.
    /// An empty variable counts as unset. The default is `http://localhost:4318` with protobuf. A signal with
    /// `OTEL_<SIGNAL>_EXPORTER=none` is not sent. A signal with its own endpoint is required.
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

    /// Returns the settings of a configuration section: its URL as for [`from_url`](Self::from_url), or the
    /// endpoints of the variables. Its `settings` override the variables of every signal. Other settings come
    /// from the variables, but only if the endpoint has the origin of theirs, which is
    /// `http://localhost:4318` by default. The choice of protobuf or JSON applies to every origin.
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
        let config = Self::build(variables, |variables, signal| variables.route(signal))?;
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
        let target = endpoint::EndpointTarget::parse(url)?;
        Self::build(variables, |variables, signal| {
            let asked = variables.target_protocol(signal);
            Ok((target.protocol(asked), target.endpoint.clone()))
        })
    }

    /// Returns warnings with advice: credentials that are sent unencrypted, and variables with unknown
    /// values, which are ignored (specification, configuration/sdk-environment-variables.md, "Parsing empty
    /// value" and "Enum").
    pub fn notices(&self) -> &[Problem] {
        &self.notices
    }

    /// Sends only these signals, which the user has selected by name. If a receiver does not support one of
    /// them, its items are lost.
    #[must_use]
    pub fn with_signals(self, signals: Signals) -> Self {
        Self {
            signals,
            requested: signals,
            ..self
        }
    }

    /// Splits the configuration by receiver. The signals of one scheme, host and port stay together. With a
    /// sink for each, a dead receiver does not block the others.
    pub fn by_receiver(&self) -> Vec<Self> {
        let mut parts: Vec<(String, Signals)> = Vec::new();
        for signal in self.signals.iter() {
            let origin = origin(&self.signal(signal).endpoint);
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

    /// Returns the name of a sink: `otlp http://collector:4318`, with every receiver once.
    pub fn name(&self) -> String {
        let mut origins: Vec<String> = Vec::new();
        for signal in self.signals.iter() {
            let origin = origin(&self.signal(signal).endpoint);
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        format!("otlp {}", origins.join(", "))
    }

    /// Returns the signals that are sent.
    pub fn signals(&self) -> Signals {
        self.signals
    }

    /// Returns the signals that the user has selected by name.
    pub(super) fn requested(&self) -> Signals {
        self.requested
    }

    /// Returns the settings of one signal.
    pub fn signal(&self, signal: Signal) -> &SignalConfig {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }

    fn build(
        variables: &Variables<'_>,
        route: impl Fn(&Variables<'_>, Signal) -> Result<(Protocol, Endpoint), SinkError>,
    ) -> Result<Self, SinkError> {
        let build = |signal| {
            let (protocol, endpoint) = route(variables, signal)?;
            variables.signal_config(signal, protocol, &endpoint)
        };
        let mut config = Self {
            traces: build(Signal::Traces)?,
            metrics: build(Signal::Metrics)?,
            logs: build(Signal::Logs)?,
            signals: Signals::ALL,
            requested: Signals::NONE,
            notices: variables.notices(),
        };
        for signal in Signal::ALL {
            let warning = config.signal(signal).cleartext_warning();
            let is_new = |warning: &Problem| !config.notices.contains(warning);
            let warning = warning.filter(is_new);
            config.notices.extend(warning);
        }
        Ok(config)
    }
}

impl SignalConfig {
    /// Returns a warning if credentials are sent unencrypted to another machine.
    fn cleartext_warning(&self) -> Option<Problem> {
        let is_secret = |name: &HeaderName| {
            let name = name.as_str();
            name == "authorization" || ["key", "token", "secret"].iter().any(|word| name.contains(word))
        };
        let has_secret = self.credentials.is_some() || self.headers.keys().any(is_secret);
        let host = self.endpoint.host().unwrap_or_default();
        let is_clear = self.endpoint.scheme_str() == Some("http") && !is_loopback(host);
        (has_secret && is_clear).then(|| {
            Problem::new(format!(
                "credentials travel unencrypted to {}",
                origin(&self.endpoint)
            ))
            .with_remedy("use https:// or grpcs://")
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
