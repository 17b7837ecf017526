//! Advice for a failed delivery, by the kind of the failure.

use std::{error::Error, io};

use http::StatusCode;
use pulsetrain_net::client::{ThroughProxyError, causes};
use rustls::{AlertDescription, CertificateError};
use tonic::Code;

use super::config::{Protocol, SignalConfig};

/// Advice that follows the failure in a message, or `None`.
pub(crate) type Advice = Option<&'static str>;

/// The encryption of a connection.
#[derive(Clone, Copy)]
pub(super) enum Encryption {
    Plain,
    /// TLS with the authorities of the system.
    SystemAuthorities,
    /// TLS with authorities that replace those of the system.
    OwnAuthorities,
}

impl Encryption {
    pub(super) fn from_config(config: &SignalConfig) -> Self {
        if config.endpoint.scheme_str() != Some("https") {
            Self::Plain
        } else if config.tls.authority.is_some() {
            Self::OwnAuthorities
        } else {
            Self::SystemAuthorities
        }
    }
}

pub(super) const SLOW: &str =
    "if the receiver is only slow, raise timeout of the sink, or OTEL_EXPORTER_OTLP_TIMEOUT (milliseconds)";
pub(crate) const CREDENTIALS: &str = "set the credentials in headers of the sink (or in bearer_token_file or basic_auth), or in OTEL_EXPORTER_OTLP_HEADERS (key=value) for its endpoint";
const NO_SUCH_PATH: &str = "check the path: OTLP/HTTP listens at /v1/traces, /v1/metrics and /v1/logs; if the receiver does not take \
                            this signal, name those that it takes with `signals`";
const REDIRECT: &str = "redirects are not followed: set the endpoint to the address it points to";
const NOT_OTLP: &str = "the receiver could not read the request: check that it takes OTLP at this path";
pub(super) const NOT_A_RECEIVER: &str = "check that the endpoint is an OTLP receiver";
const METHOD: &str =
    "check the port (usually 4318) and the path: OTLP/HTTP listens at /v1/traces, /v1/metrics and /v1/logs";
const OTHER_ENCODING: &str = "set OTEL_EXPORTER_OTLP_PROTOCOL to the other of http/protobuf and http/json";
const TLS_ONLY: &str = "use https:// or grpcs://: the port speaks TLS only";
const BUSY: &str = "the receiver limits its clients or has no room: raise its limits, or send less";
const FAILED: &str = "the receiver failed: look at its log for the error";
const NO_BACKEND: &str =
    "a proxy cannot reach the receiver: start the receiver, or correct its address in the proxy";
const UNAVAILABLE: &str = "the receiver has no room or does not run, and a proxy may answer for it: start it, raise its limits, or \
                           send less";
const SLOW_BACKEND: &str = "a proxy got no answer from the receiver in time: look at the receiver's log, or raise the timeout of the proxy";
const NO_SUCH_SERVICE: &str = "check that an OTLP/gRPC receiver for this signal listens there; if it does not take this signal, name \
                               those that it takes with `signals`";
const TOO_OLD: &str = "the receiver accepts no samples that old: set storage.tsdb.out_of_order_time_window in Prometheus, or \
                       limits.out_of_order_time_window in Mimir, above their age; or write them with --to openmetrics:FILE \
                       for `promtool tsdb create-blocks-from openmetrics`";
pub(super) const SMALLER: &str = "raise the receiver's message limit or make smaller batches";
const NOT_LISTENING: &str =
    "start a receiver there or change the endpoint (4317 is usual for gRPC, 4318 for HTTP)";
const NO_SUCH_HOST: &str = "check the host name in the endpoint";
const PROXY: &str = "check HTTPS_PROXY and HTTP_PROXY, or add the host to NO_PROXY";
const PROXY_CREDENTIALS: &str =
    "write the proxy's user and password into its URL: HTTPS_PROXY=http://user:password@host:port";
const NOT_HTTP: &str = "if this is a gRPC port (usually 4317) use grpc:// (OTEL_EXPORTER_OTLP_PROTOCOL=grpc), if it wants TLS use https://";
const NOT_GRPC: &str = "if this is an OTLP/HTTP port (usually 4318) use http:// (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf), if it wants TLS use grpcs://";
const NO_TLS: &str = "the port does not speak TLS: use http:// or grpc://, or another port";
const AUTHORITY: &str = "set tls.ca of the sink, or OTEL_EXPORTER_OTLP_CERTIFICATE, to the PEM file of the authority that signed the certificate";
const OTHER_AUTHORITY: &str = "the authority in tls.ca of the sink, or in OTEL_EXPORTER_OTLP_CERTIFICATE, did not sign the receiver's \
                               certificate: name the PEM file of the authority that signed it";
const CA_AS_SERVER: &str = "the receiver presents the certificate of an authority: give it one with basicConstraints=CA:FALSE, also if it is self-signed \
                            (openssl req -x509 -addext basicConstraints=critical,CA:FALSE)";
const HOST_NAME: &str =
    "use the host name that the receiver's certificate is for, or name it in tls.server_name of the sink";
const EXPIRED: &str = "renew the receiver's certificate, or set this machine's clock";
const IDENTITY: &str = "set tls.certificate and tls.key of the sink, or OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and \
                        OTEL_EXPORTER_OTLP_CLIENT_KEY, to files that the receiver accepts";
const CLOSED_GRPC: &str = "the receiver closed the connection; if it wants TLS use grpcs://, if this is an OTLP/HTTP port (usually 4318) \
                           use http://";
const CLOSED_HTTP: &str = "the receiver closed the connection; if it wants TLS use https://, if this is a gRPC port (usually 4317) use \
                           grpc://";
/// A receiver that rejects the client certificate after the handshake may close the connection before its
/// alert is read.
const CLOSED_TLS: &str = "the receiver closed the connection; if it asks for a certificate, set tls.certificate and tls.key of the \
                          sink, or OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY; check that the protocol \
                          is that of the port (4317 is usual for gRPC, 4318 for HTTP)";

/// Returns the advice for an HTTP status other than success, given the receiver's answer.
pub(super) fn http_status(status: StatusCode, answer: &str) -> Advice {
    match status.as_u16() {
        300..=399 => Some(REDIRECT),
        // The answers of Pulsetrain, of Go and of nginx.
        400 if ["TLS only", "HTTPS"].iter().any(|words| answer.contains(words)) => Some(TLS_ONLY),
        400 if is_too_old(answer) => Some(TOO_OLD),
        400 => Some(NOT_OTLP),
        401 | 403 => Some(CREDENTIALS),
        404 => Some(NO_SUCH_PATH),
        405 | 501 => Some(METHOD),
        407 => Some(PROXY_CREDENTIALS),
        413 => Some(SMALLER),
        415 => Some(OTHER_ENCODING),
        429 => Some(BUSY),
        500 => Some(FAILED),
        502 => Some(NO_BACKEND),
        503 => Some(UNAVAILABLE),
        504 => Some(SLOW_BACKEND),
        _ => None,
    }
}

/// Returns whether a response contains one of Prometheus' messages for a sample older than its limit.
pub(crate) fn is_too_old(answer: &str) -> bool {
    ["out of bounds", "out of order", "too old"]
        .iter()
        .any(|words| answer.contains(words))
}

/// Returns the advice for a gRPC status other than OK, given its message.
pub(super) fn grpc_code(code: Code, message: &str) -> Advice {
    // Messages of tonic for responses that are not gRPC.
    let is_other_protocol = ["protocol error", "grpc-status header missing"]
        .iter()
        .any(|beginning| message.starts_with(beginning));
    match code {
        Code::Unauthenticated | Code::PermissionDenied => Some(CREDENTIALS),
        Code::Unimplemented => Some(NO_SUCH_SERVICE),
        Code::ResourceExhausted => Some(BUSY),
        Code::OutOfRange => Some(SMALLER),
        Code::Unavailable => Some(UNAVAILABLE),
        Code::Internal | Code::Unknown if is_other_protocol => Some(NOT_GRPC),
        Code::Internal | Code::Unknown => Some(FAILED),
        _ => None,
    }
}

/// Returns the advice for a failed connection.
pub(super) fn transport(error: &(dyn Error + 'static), protocol: Protocol, encryption: Encryption) -> Advice {
    if let Some(error) = find::<rustls::Error>(error) {
        return tls(error, encryption);
    }
    let text = chain(error);
    if find::<ThroughProxyError>(error).is_some() {
        // The words of hyper-util.
        return Some(if text.contains("authorization required") {
            PROXY_CREDENTIALS
        } else {
            PROXY
        });
    }
    if find::<io::Error>(error).is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        return Some(NOT_LISTENING);
    }
    if text.contains("dns error") {
        return Some(NO_SUCH_HOST);
    }
    // HTTP/2 passes on only the text. After the handshake, the only alerts are about the client certificate.
    if text.contains("received fatal alert") {
        return Some(IDENTITY);
    }
    let http_error = find::<hyper::Error>(error);
    // A request is canceled if the receiver ends the connection, or speaks another protocol, before it is sent.
    let closed_early = http_error.is_some_and(|error| error.is_incomplete_message() || error.is_canceled());
    // Libraries and the system differ in the case of the first letter.
    let text = text.to_ascii_lowercase();
    if closed_early || text.contains("broken pipe") || text.contains("connection reset") {
        return Some(match (encryption, protocol) {
            (Encryption::Plain, Protocol::Grpc) => CLOSED_GRPC,
            (Encryption::Plain, Protocol::HttpProtobuf | Protocol::HttpJson) => CLOSED_HTTP,
            (Encryption::SystemAuthorities | Encryption::OwnAuthorities, _) => CLOSED_TLS,
        });
    }
    http_error.map(|_| match protocol {
        Protocol::Grpc => NOT_GRPC,
        Protocol::HttpProtobuf | Protocol::HttpJson => NOT_HTTP,
    })
}

fn tls(error: &rustls::Error, encryption: Encryption) -> Advice {
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => Some(EXPIRED),
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => Some(HOST_NAME),
        rustls::Error::InvalidCertificate(error) if error.to_string().contains("CaUsedAsEndEntity") => {
            Some(CA_AS_SERVER)
        }
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) if matches!(encryption, Encryption::OwnAuthorities) => Some(OTHER_AUTHORITY),
        rustls::Error::InvalidCertificate(_) => Some(AUTHORITY),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
            | AlertDescription::HandshakeFailure,
        ) => Some(IDENTITY),
        rustls::Error::InvalidMessage(_) => Some(NO_TLS),
        _ => None,
    }
}

/// Joins the messages of an error and of all its causes, without repetitions. The client's own message adds
/// nothing.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut messages: Vec<String> = Vec::new();
    for error in causes(error).filter(|error| !error.is::<hyper_util::client::legacy::Error>()) {
        let message = error.to_string();
        if !messages.iter().any(|earlier| earlier.ends_with(&message)) {
            messages.push(message);
        }
    }
    messages.join(": ")
}

/// Returns the first cause of one type.
pub(super) fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(|error| error.downcast_ref())
}
