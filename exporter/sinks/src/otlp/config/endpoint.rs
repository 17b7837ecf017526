//! Endpoints: accepted URLs, default ports and paths.

use http::{
    Uri,
    uri::{Authority, Scheme},
};
use pulsetrain_otlp::Signal;

use super::Protocol;
use crate::SinkError;

/// The name in messages of a target that does not come from a variable.
const TARGET: &str = "target";
const TARGET_FORMS: &str = "write grpc://host:4317, grpcs://host:4317, http://host:4318 or https://host:4318";
const NO_PATH: &str = "a gRPC target has no path: remove everything after the port";
const HTTP_FORMS: &str = "write a URL such as http://localhost:4318";
const GRPC_FORMS: &str = "write a URL such as http://localhost:4317, or https:// for TLS";
const GRPC_SCHEME: &str =
    "write http://, or https:// for TLS, in place of this scheme, and set OTEL_EXPORTER_OTLP_PROTOCOL=grpc";

/// The endpoint of a signal, before OTLP's path is added.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    /// A base URL. Over HTTP, `v1/<signal>` is added.
    Base(Uri),
    /// A complete URL.
    Exact(Uri),
}

/// An explicit target of the command line.
pub(super) struct EndpointTarget {
    grpc: bool,
    pub(super) endpoint: Endpoint,
}

impl Endpoint {
    /// Parses the value of the variable for all signals.
    pub(super) fn base(
        name: &str,
        value: &str,
        protocol: Protocol,
        insecure: bool,
    ) -> Result<Self, SinkError> {
        from_variable(name, value, protocol, insecure).map(Self::Base)
    }

    /// Parses the value of the variable of one signal.
    pub(super) fn exact(
        name: &str,
        value: &str,
        protocol: Protocol,
        insecure: bool,
    ) -> Result<Self, SinkError> {
        from_variable(name, value, protocol, insecure).map(Self::Exact)
    }

    /// Returns the default of the specification.
    pub(super) fn default_for(protocol: Protocol) -> Self {
        Self::Base(match protocol {
            Protocol::Grpc => Uri::from_static("http://localhost:4317"),
            Protocol::HttpProtobuf | Protocol::HttpJson => Uri::from_static("http://localhost:4318"),
        })
    }

    pub(super) fn uri(&self) -> &Uri {
        let (Self::Base(uri) | Self::Exact(uri)) = self;
        uri
    }

    /// Returns scheme, host and port.
    pub(super) fn origin(&self) -> (&str, String, u16) {
        let uri = self.uri();
        let scheme = uri.scheme_str().unwrap_or_default();
        let default = if scheme == "https" { 443 } else { 80 };
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        (scheme, host, uri.port_u16().unwrap_or(default))
    }

    /// Returns the URL of one signal. An endpoint of gRPC has no path, because the method is the path.
    pub(super) fn for_signal(&self, signal: Signal, protocol: Protocol) -> Uri {
        match self {
            Self::Base(uri) | Self::Exact(uri) if protocol == Protocol::Grpc => with_path(uri, "/"),
            Self::Exact(uri) => uri.clone(),
            Self::Base(uri) => {
                let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
                with_path(
                    uri,
                    &format!("{}/v1/{signal}{query}", uri.path().trim_end_matches('/')),
                )
            }
        }
    }
}

impl EndpointTarget {
    /// Parses `grpc://`, `grpcs://`, `http://` or `https://`.
    pub(super) fn parse(url: &str) -> Result<Self, SinkError> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| refused(TARGET, url, TARGET_FORMS))?;
        let (grpc, tls, port) = match scheme.to_ascii_lowercase().as_str() {
            "grpc" => (true, false, Some(4317)),
            "grpcs" => (true, true, Some(4317)),
            "http" => (false, false, Some(4318)),
            "https" => (false, true, None),
            _ => return Err(refused(TARGET, url, TARGET_FORMS)),
        };
        let uri = parse(TARGET, &format!("{}://{rest}", http_scheme(!tls)), TARGET_FORMS)?;
        if grpc && !matches!(uri.path(), "" | "/") {
            return Err(refused(TARGET, url, NO_PATH));
        }
        Ok(Self {
            grpc,
            endpoint: Endpoint::Base(with_port(uri, port)),
        })
    }

    /// Returns the protocol of the scheme. For HTTP it is JSON if the variables select it.
    pub(super) fn protocol(&self, asked: Option<Protocol>) -> Protocol {
        match asked {
            _ if self.grpc => Protocol::Grpc,
            Some(Protocol::HttpJson) => Protocol::HttpJson,
            _ => Protocol::HttpProtobuf,
        }
    }
}

/// Parses a variable. gRPC also accepts `host:port`. Then `OTEL_EXPORTER_OTLP_INSECURE` decides about TLS;
/// otherwise it is ignored.
fn from_variable(name: &str, value: &str, protocol: Protocol, insecure: bool) -> Result<Uri, SinkError> {
    let is_grpc = |scheme: &&str| value.starts_with(*scheme);
    let expected = match protocol {
        _ if ["grpc://", "grpcs://"].iter().any(is_grpc) => GRPC_SCHEME,
        Protocol::Grpc => GRPC_FORMS,
        Protocol::HttpProtobuf | Protocol::HttpJson => HTTP_FORMS,
    };
    match value.contains("://") {
        true => parse(name, value, expected),
        false if protocol == Protocol::Grpc => {
            parse(name, &format!("{}://{value}", http_scheme(insecure)), expected)
        }
        false => Err(refused(name, value, expected)),
    }
}

fn parse(name: &str, text: &str, expected: &'static str) -> Result<Uri, SinkError> {
    let uri: Uri = text.parse().map_err(|_| refused(name, text, expected))?;
    let authority = uri.authority().map_or("", Authority::as_str);
    if authority.contains('@') {
        return Err(SinkError::Credentials {
            name: name.to_owned(),
        });
    }
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    match known && is_host_and_port(authority, uri.host().unwrap_or_default()) {
        true => Ok(uri),
        false => Err(refused(name, text, expected)),
    }
}

/// Returns whether an authority is a host and a port. The `http` crate accepts any number of digits after the
/// colon.
fn is_host_and_port(authority: &str, host: &str) -> bool {
    let port = authority.strip_prefix(host).unwrap_or(authority);
    !host.is_empty()
        && (port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| port.parse::<u16>().is_ok()))
}

/// Returns the error of an invalid value. A value with an `@` may contain a password, and a query may contain
/// a key, so they are not shown.
fn refused(name: &str, value: &str, expected: &'static str) -> SinkError {
    let name = name.to_owned();
    match value.contains('@') {
        true => SinkError::Credentials { name },
        false => SinkError::Setting {
            name,
            value: match value.split_once('?') {
                Some((shown, _)) => format!("{shown}?..."),
                None => value.to_owned(),
            },
            expected,
        },
    }
}

fn http_scheme(plain: bool) -> &'static str {
    if plain { "http" } else { "https" }
}

fn with_port(uri: Uri, port: Option<u16>) -> Uri {
    let (Some(port), None, Some(host)) = (port, uri.port(), uri.host()) else {
        return uri;
    };
    let authority: Authority = format!("{host}:{port}")
        .parse()
        .expect("invariant: a parsed host with a number as its port is an authority");
    let mut parts = uri.into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).expect("invariant: only the authority of a complete URL was replaced")
}

fn with_path(uri: &Uri, path_and_query: &str) -> Uri {
    Uri::builder()
        .scheme(uri.scheme().cloned().unwrap_or(Scheme::HTTP))
        .authority(uri.authority().map_or("", Authority::as_str))
        .path_and_query(path_and_query)
        .build()
        .expect("invariant: scheme and authority are those of a checked URL, the path starts with a slash")
}
