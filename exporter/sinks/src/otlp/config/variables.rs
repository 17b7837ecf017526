//! The settings of a signal, one method each: from the section, else from the variables.
//!
//! A variable with an unknown value is ignored with a notice that does not contain the value.

use std::{cell::RefCell, time::Duration};

use http::HeaderMap;
use pulsetrain_net::client::{
    ClientTls, Compression, Credentials, Identity, NamedFile, Proxy, ProxyVariableError,
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::Problem;

use super::{Endpoint, OtlpSettings, Protocol, headers};
use crate::SinkError;

/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT` (specification, protocol/exporter.md).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The `OTEL_EXPORTER_OTLP_*` variables of a lookup.
pub(super) struct Variables<'a> {
    lookup: Lookup<'a>,
    /// The settings of a section.
    section: Option<&'a OtlpSettings>,
    notices: RefCell<Vec<Problem>>,
}

/// Returns the value of a variable by its name.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable and its value.
struct Variable {
    name: String,
    value: String,
}

impl<'a> Variables<'a> {
    pub(super) fn new(lookup: Lookup<'a>) -> Self {
        Self {
            lookup,
            section: None,
            notices: RefCell::default(),
        }
    }

    /// Overrides the variables of every signal by the settings of a section.
    pub(super) fn overridden_by(self, section: &'a OtlpSettings) -> Self {
        Self {
            section: Some(section),
            ..self
        }
    }

    /// Returns the variables that were ignored so far, each once.
    pub(super) fn notices(&self) -> Vec<Problem> {
        self.notices.borrow().clone()
    }

    /// Returns the protocol and the endpoint of a signal.
    pub(super) fn route(&self, signal: Signal) -> Result<(Protocol, Endpoint), SinkError> {
        let protocol = match (self.protocol(signal), self.encoding()) {
            (Some(Protocol::Grpc), _) => Protocol::Grpc,
            (variable, setting) => setting.or(variable).unwrap_or(Protocol::HttpProtobuf),
        };
        Ok((protocol, self.endpoint(signal, protocol)?))
    }

    /// Returns the protocol for a target whose URL chooses between gRPC and HTTP. The choice of protobuf or
    /// JSON applies to every host, because the variable is not a secret.
    pub(super) fn target_protocol(&self, signal: Signal) -> Option<Protocol> {
        self.encoding().or_else(|| self.protocol(signal))
    }

    fn encoding(&self) -> Option<Protocol> {
        let is_json = self.section?.json?;
        Some(if is_json {
            Protocol::HttpJson
        } else {
            Protocol::HttpProtobuf
        })
    }

    fn protocol(&self, signal: Signal) -> Option<Protocol> {
        self.parsed(self.get(signal, "PROTOCOL"), |value| {
            match value.to_ascii_lowercase().as_str() {
                "grpc" => Ok(Protocol::Grpc),
                "http/protobuf" => Ok(Protocol::HttpProtobuf),
                "http/json" => Ok(Protocol::HttpJson),
                _ => Err("set it to grpc, http/protobuf or http/json"),
            }
        })
    }

    /// Returns whether `OTEL_<SIGNAL>_EXPORTER` turns the signal off.
    pub(super) fn is_off(&self, signal: Signal) -> bool {
        let name = format!("OTEL_{}_EXPORTER", signal.as_str().to_ascii_uppercase());
        self.read(name)
            .is_some_and(|variable| variable.value.eq_ignore_ascii_case("none"))
    }

    /// Returns whether the signal has its own endpoint.
    pub(super) fn has_own_endpoint(&self, signal: Signal) -> bool {
        self.own(signal, "ENDPOINT").is_some()
    }

    fn endpoint(&self, signal: Signal, protocol: Protocol) -> Result<Endpoint, SinkError> {
        let insecure = self.insecure(signal);
        if let Some(own) = self.own(signal, "ENDPOINT") {
            return Endpoint::exact(&own.name, &own.value, protocol, insecure);
        }
        match self.generic("ENDPOINT") {
            Some(base) => Endpoint::base(&base.name, &base.value, protocol, insecure),
            None => Ok(Endpoint::default_for(protocol)),
        }
    }

    /// Returns the headers of requests to this endpoint.
    pub(super) fn headers(&self, signal: Signal, to: &Endpoint) -> Result<HeaderMap, SinkError> {
        if let Some(headers) = self.section.and_then(|section| section.headers.clone()) {
            return Ok(headers);
        }
        self.get_for(signal, "HEADERS", to).map_or_else(
            || Ok(HeaderMap::new()),
            |variable| headers::parse(&variable.name, &variable.value),
        )
    }

    pub(super) fn timeout(&self, signal: Signal, to: &Endpoint) -> Option<Duration> {
        let variable = || {
            self.parsed(self.get_for(signal, "TIMEOUT", to), |value| {
                let expected = "give an integer of milliseconds, such as 10000, or 0 for no limit";
                value.parse().map(Duration::from_millis).map_err(|_| expected)
            })
        };
        let setting = self.section.and_then(|section| section.timeout);
        let timeout = setting.or_else(variable).unwrap_or(DEFAULT_TIMEOUT);
        (!timeout.is_zero()).then_some(timeout)
    }

    pub(super) fn compression(&self, signal: Signal, to: &Endpoint) -> Compression {
        let variable = || {
            self.parsed(self.get_for(signal, "COMPRESSION", to), |value| {
                Compression::named(value, None)
            })
        };
        let setting = self.section.and_then(|section| section.compression);
        setting.or_else(variable).unwrap_or_default()
    }

    pub(super) fn tls(&self, signal: Signal, to: &Endpoint) -> Result<ClientTls, SinkError> {
        let set = self
            .section
            .map(|section| section.tls.clone())
            .unwrap_or_default();
        let file = |name| {
            self.get_for(signal, name, to).map(|variable| NamedFile {
                variable: variable.name,
                path: variable.value.into(),
            })
        };
        let identity = match (set.identity, file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
            (Some(identity), _, _) => Some(identity),
            (None, Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None, None) => None,
            (None, Some(given), None) => return Err(half_identity(given, "CLIENT_KEY")),
            (None, None, Some(given)) => return Err(half_identity(given, "CLIENT_CERTIFICATE")),
        };
        Ok(ClientTls {
            authority: set.authority.or_else(|| file("CERTIFICATE")),
            identity,
            ..set
        })
    }

    pub(super) fn credentials(&self) -> Option<Credentials> {
        self.section?.credentials.clone()
    }

    /// Returns the proxy of the environment for this endpoint.
    pub(super) fn proxy(&self, to: &Endpoint, protocol: Protocol) -> Option<Proxy> {
        match Proxy::from_variables(self.lookup, to.uri(), protocol == Protocol::Grpc) {
            Ok(proxy) => proxy,
            Err(error) => {
                let what = format!(
                    "{} is ignored, because it is not the URL of an HTTP or SOCKS5 proxy",
                    error.variable
                );
                self.record(Problem::new(what).with_remedy(ProxyVariableError::REMEDY));
                None
            }
        }
    }

    fn insecure(&self, signal: Signal) -> bool {
        let read = |value: &str| match value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("set it to true or false"),
        };
        self.parsed(self.get(signal, "INSECURE"), read).unwrap_or(false)
    }

    /// Parses a value. An unknown value is ignored with a notice.
    fn parsed<T>(
        &self,
        variable: Option<Variable>,
        read: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let Variable { name, value } = variable?;
        match read(&value) {
            Ok(value) => Some(value),
            Err(expected) => {
                let what = format!("{name} is ignored, because its value is unknown");
                self.record(Problem::new(what).with_remedy(expected));
                None
            }
        }
    }

    fn record(&self, notice: Problem) {
        let mut notices = self.notices.borrow_mut();
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    /// Returns the variable of a setting, if it applies to this endpoint.
    fn get_for(&self, signal: Signal, name: &str, to: &Endpoint) -> Option<Variable> {
        self.get(signal, name)
            .filter(|_| self.is_own_endpoint(signal, to))
    }

    /// Returns whether an endpoint has the origin of the environment's endpoint. If the environment has none,
    /// its settings apply to the target of the command line.
    fn is_own_endpoint(&self, signal: Signal, to: &Endpoint) -> bool {
        let names_none = self.get(signal, "ENDPOINT").is_none();
        (names_none && self.section.is_none())
            || self
                .route(signal)
                .is_ok_and(|(_, own)| own.origin() == to.origin())
    }

    fn get(&self, signal: Signal, name: &str) -> Option<Variable> {
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

/// Returns a variable of `lookup`, or `None` if it is empty.
fn variable(lookup: Lookup<'_>, name: String) -> Option<Variable> {
    let text = lookup(&name)?;
    let value = text.trim();
    (!value.is_empty()).then(|| Variable {
        name,
        value: value.to_owned(),
    })
}

fn half_identity(given: NamedFile, missing: &str) -> SinkError {
    SinkError::HalfIdentity {
        given: given.variable,
        missing: format!("OTEL_EXPORTER_OTLP_{missing}"),
    }
}
