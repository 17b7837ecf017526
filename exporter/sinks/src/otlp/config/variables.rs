//! One method a setting: which variable gives it for a signal, and how its text is read.

use std::time::Duration;

use http::HeaderMap;
use pulsetrain_otlp::Signal;

use super::{Compression, Endpoint, Identity, NamedFile, Protocol, TlsFiles, headers};
use crate::SinkError;

/// `OTEL_EXPORTER_OTLP_TIMEOUT` where it is not set (specification, protocol/exporter.md).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The `OTEL_EXPORTER_OTLP_*` variables behind a lookup.
pub(super) struct Variables<'a> {
    lookup: Lookup<'a>,
    /// What a section sets, by the name of the variable for all signals.
    settings: Option<Lookup<'a>>,
}

/// Returns the value of a variable by its name.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable that is set, and what to.
struct Variable {
    name: String,
    value: String,
}

impl<'a> Variables<'a> {
    pub(super) fn new(lookup: Lookup<'a>) -> Self {
        Self {
            lookup,
            settings: None,
        }
    }

    /// The same variables, overridden for every signal by what a section sets.
    pub(super) fn overridden_by(self, settings: Lookup<'a>) -> Self {
        Self {
            settings: Some(settings),
            ..self
        }
    }

    /// The protocol and the endpoint of a signal, by the variables alone.
    pub(super) fn route(&self, signal: Signal) -> Result<(Protocol, Endpoint), SinkError> {
        let protocol = self.protocol(signal)?.unwrap_or(Protocol::HttpProtobuf);
        Ok((protocol, self.endpoint(signal, protocol)?))
    }

    /// Whether `OTEL_<SIGNAL>_EXPORTER` turns the signal off.
    pub(super) fn is_off(&self, signal: Signal) -> bool {
        let name = format!("OTEL_{}_EXPORTER", signal.as_str().to_ascii_uppercase());
        self.read(name)
            .is_some_and(|variable| variable.value.eq_ignore_ascii_case("none"))
    }

    /// Whether the signal has an endpoint of its own.
    pub(super) fn has_own_endpoint(&self, signal: Signal) -> bool {
        self.own(signal, "ENDPOINT").is_some()
    }

    pub(super) fn protocol(&self, signal: Signal) -> Result<Option<Protocol>, SinkError> {
        let Some(variable) = self.get(signal, "PROTOCOL") else {
            return Ok(None);
        };
        match variable.value.as_str() {
            "grpc" => Ok(Some(Protocol::Grpc)),
            "http/protobuf" => Ok(Some(Protocol::HttpProtobuf)),
            "http/json" => Ok(Some(Protocol::HttpJson)),
            _ => Err(variable.expected("set it to grpc, http/protobuf or http/json")),
        }
    }

    fn endpoint(&self, signal: Signal, protocol: Protocol) -> Result<Endpoint, SinkError> {
        let insecure = self.insecure(signal)?;
        if let Some(own) = self.own(signal, "ENDPOINT") {
            return Endpoint::exact(&own.name, &own.value, protocol, insecure);
        }
        match self.generic("ENDPOINT") {
            Some(base) => Endpoint::base(&base.name, &base.value, protocol, insecure),
            None => Ok(Endpoint::default_for(protocol)),
        }
    }

    /// The headers for what is sent to this endpoint. Those of the environment belong to its endpoint.
    pub(super) fn headers(&self, signal: Signal, to: &Endpoint) -> Result<HeaderMap, SinkError> {
        let of_environment = || self.of_environment(signal, "HEADERS");
        let variable = match self.setting("HEADERS") {
            None if self.is_own_endpoint(signal, to) => of_environment(),
            setting => setting,
        };
        variable.map_or_else(
            || Ok(HeaderMap::new()),
            |variable| headers::parse(&variable.name, &variable.value),
        )
    }

    /// Whether an endpoint has the origin of the environment's. Where the environment names none, a target of the command
    /// line is all that its headers can be for.
    fn is_own_endpoint(&self, signal: Signal, to: &Endpoint) -> bool {
        let names_none = self.of_environment(signal, "ENDPOINT").is_none();
        (names_none && self.settings.is_none())
            || self
                .route(signal)
                .is_ok_and(|(_, own)| own.origin() == to.origin())
    }

    pub(super) fn timeout(&self, signal: Signal) -> Result<Option<Duration>, SinkError> {
        let Some(variable) = self.get(signal, "TIMEOUT") else {
            return Ok(Some(DEFAULT_TIMEOUT));
        };
        match variable.value.parse() {
            Ok(0) => Ok(None),
            Ok(millis) => Ok(Some(Duration::from_millis(millis))),
            Err(_) => Err(variable.expected("give whole milliseconds, such as 10000, or 0 for no limit")),
        }
    }

    pub(super) fn compression(&self, signal: Signal) -> Result<Compression, SinkError> {
        let Some(variable) = self.get(signal, "COMPRESSION") else {
            return Ok(Compression::None);
        };
        match variable.value.as_str() {
            "gzip" => Ok(Compression::Gzip),
            "none" => Ok(Compression::None),
            _ => Err(variable.expected("set it to gzip or none")),
        }
    }

    pub(super) fn tls(&self, signal: Signal) -> Result<TlsFiles, SinkError> {
        let certificate = self.file(signal, "CLIENT_CERTIFICATE");
        let key = self.file(signal, "CLIENT_KEY");
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            (Some(given), None) => return Err(half_identity(given, "CLIENT_KEY")),
            (None, Some(given)) => return Err(half_identity(given, "CLIENT_CERTIFICATE")),
        };
        Ok(TlsFiles {
            authority: self.file(signal, "CERTIFICATE"),
            identity,
        })
    }

    fn insecure(&self, signal: Signal) -> Result<bool, SinkError> {
        let Some(variable) = self.get(signal, "INSECURE") else {
            return Ok(false);
        };
        match variable.value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(variable.expected("set it to true or false")),
        }
    }

    fn file(&self, signal: Signal, name: &str) -> Option<NamedFile> {
        let variable = self.get(signal, name)?;
        Some(NamedFile {
            variable: variable.name,
            path: variable.value.into(),
        })
    }

    fn get(&self, signal: Signal, name: &str) -> Option<Variable> {
        self.setting(name).or_else(|| self.of_environment(signal, name))
    }

    fn setting(&self, name: &str) -> Option<Variable> {
        let settings = self.settings?;
        variable(settings, format!("OTEL_EXPORTER_OTLP_{name}"))
    }

    fn of_environment(&self, signal: Signal, name: &str) -> Option<Variable> {
        self.own(signal, name).or_else(|| self.generic(name))
    }

    fn own(&self, signal: Signal, name: &str) -> Option<Variable> {
        self.read(format!(
            "OTEL_EXPORTER_OTLP_{}_{name}",
            signal.as_str().to_ascii_uppercase()
        ))
    }

    fn generic(&self, name: &str) -> Option<Variable> {
        self.read(format!("OTEL_EXPORTER_OTLP_{name}"))
    }

    fn read(&self, name: String) -> Option<Variable> {
        variable(self.lookup, name)
    }
}

/// A variable of `lookup`; an empty one is none.
fn variable(lookup: Lookup<'_>, name: String) -> Option<Variable> {
    let text = lookup(&name)?;
    let value = text.trim();
    (!value.is_empty()).then(|| Variable {
        name,
        value: value.to_owned(),
    })
}

impl Variable {
    fn expected(self, expected: &'static str) -> SinkError {
        SinkError::Setting {
            name: self.name,
            value: self.value,
            expected,
        }
    }
}

fn half_identity(given: NamedFile, missing: &str) -> SinkError {
    SinkError::HalfIdentity {
        given: given.variable,
        missing: format!("OTEL_EXPORTER_OTLP_{missing}"),
    }
}
