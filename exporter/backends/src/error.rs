//! Errors of requests to a store, with their remedies.

use std::{borrow::Cow, error::Error, fmt, time::Duration};

use http::StatusCode;
use pulsetrain_net::client::{ClientError, ProxyVariableError, RequestError, ThroughProxyError, causes};
use rustls::CertificateError;

/// The error of a request to which a store gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The address is invalid.
    Url {
        /// The address, without the credentials before an `@`.
        url: String,
        /// The reason and the correct form.
        problem: &'static str,
    },
    /// A header cannot be sent.
    Header {
        /// The name; the value may be a secret.
        name: String,
        /// The reason.
        problem: &'static str,
    },
    /// TLS cannot be set up: a file that cannot be used, or a system without certificate authorities.
    Tls(#[source] ClientError),
    /// A variable is not the URL of a proxy.
    Proxy(#[from] ProxyVariableError),
    /// The store gave no complete answer.
    Request {
        /// The URL of the request.
        url: String,
        /// The reason.
        #[source]
        error: RequestError,
    },
    /// The store answered with an error status.
    Status {
        /// The URL of the request.
        url: String,
        /// The status.
        status: StatusCode,
        /// The message in the body.
        message: String,
        /// The time after which the store asks for a retry.
        retry_after: Option<Duration>,
    },
    /// The answer is not one that such a store sends.
    Answer {
        /// The URL of the request.
        url: String,
        /// The name of the expected store.
        store: &'static str,
        /// The reason.
        problem: String,
    },
}

impl BackendError {
    /// Returns the cause without the remedy.
    pub fn cause(&self) -> impl fmt::Display {
        Cause(self)
    }

    /// Returns the remedy, if it is known and the cause does not name it.
    pub fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::Tls(ClientError::NoAuthorities) => "name a file with some with --ca",
            Self::Tls(error) => return error.remedy(),
            Self::Proxy(_) => ProxyVariableError::REMEDY,
            Self::Url { .. } | Self::Header { .. } => return None,
            Self::Request { error, .. } => match error {
                RequestError::Timeout { .. } => "request less, or raise --timeout",
                RequestError::TooLarge { .. } => "request less at a time",
                error if error.has_answer() => "check the proxies between here and the store",
                error => unreachable_remedy(error),
            },
            Self::Status { status, .. } => match *status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    "set the tenant with --tenant, or credentials with --header"
                }
                StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                    "write the proxy's user and password into its URL: HTTPS_PROXY=http://user:password@host:port"
                }
                StatusCode::NOT_FOUND => "is it the base address of the store?",
                StatusCode::TOO_MANY_REQUESTS => "lower --parallel, or retry later",
                _ => return None,
            },
            Self::Answer { store, .. } => {
                return Some(format!("check that it is the address of {store}").into());
            }
        }))
    }

    /// Returns whether the store does not have the requested data.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { status, .. } if *status == StatusCode::NOT_FOUND)
    }

    /// Returns whether the next request would fail in the same way, after the same wait.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Request { error, .. } if !error.has_answer())
    }

    /// Returns the minimal backoff if a retry makes sense, or `None` otherwise.
    pub(super) fn retry_backoff(&self) -> Option<Duration> {
        let is_busy = |status| {
            matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            )
        };
        match self {
            Self::Request { error, .. } if error.may_be_retried() => Some(Duration::ZERO),
            Self::Status {
                status, retry_after, ..
            } if is_busy(*status) => Some(retry_after.unwrap_or_default()),
            _ => None,
        }
    }
}

/// Displays the cause of an error without its remedy.
struct Cause<'a>(&'a BackendError);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            BackendError::Url { url, problem } => {
                write!(f, "{url:?} is not the address of a store: {problem}")
            }
            BackendError::Header { name, problem } => write!(f, "the header {name:?} {problem}"),
            BackendError::Tls(error) => write!(f, "cannot set up TLS: {error}"),
            BackendError::Proxy(error) => error.fmt(f),
            BackendError::Request { url, error } => NoAnswer { url, error }.fmt(f),
            BackendError::Status {
                url, status, message, ..
            } => write!(f, "{url} answered {status}{}", Detail(message)),
            BackendError::Answer { url, store, problem } => {
                write!(f, "{url} sent a response that {store} does not send: {problem}")
            }
        }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cause(self).fmt(f)?;
        match self.remedy() {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

/// Returns the remedy for a failed connection.
fn unreachable_remedy(error: &(dyn Error + 'static)) -> &'static str {
    if let Some(error) = causes(error).find_map(|error| error.downcast_ref::<rustls::Error>()) {
        return handshake_remedy(error);
    }
    match causes(error).any(|error| error.is::<ThroughProxyError>()) {
        true => "check HTTPS_PROXY and HTTP_PROXY, or add the host to NO_PROXY",
        false => "is it running there?",
    }
}

/// Returns the remedy for a failed TLS handshake.
fn handshake_remedy(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidMessage(_) => "the port does not speak TLS: use http://",
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "renew its certificate, or set this machine's clock",
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "use the host name that its certificate is for",
        rustls::Error::InvalidCertificate(_) => {
            "set --ca to the file of the authority that signed its certificate"
        }
        rustls::Error::AlertReceived(_) => {
            "it may require a certificate: set --client-certificate and --client-key"
        }
        _ => "does it speak TLS there?",
    }
}

/// Displays why there is no complete answer.
struct NoAnswer<'a> {
    url: &'a str,
    error: &'a RequestError,
}

impl fmt::Display for NoAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, error } = *self;
        let causes = Causes(error.source().unwrap_or(error));
        match error {
            RequestError::Timeout { limit } => write!(f, "{url} did not respond within {limit:?}"),
            RequestError::TooLarge { limit } => write!(f, "{url} responded with more than {limit} bytes"),
            error if error.has_answer() => write!(f, "the answer of {url} is truncated or corrupt: {causes}"),
            _ => write!(f, "cannot reach {url}: {causes}"),
        }
    }
}

/// Displays the message of a server, if it sent one.
struct Detail<'a>(&'a str);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", self.0)
    }
}

/// An error with all of its causes.
struct Causes<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_busy_statuses_are_retried() {
        let error = |status, retry_after| BackendError::Status {
            url: String::new(),
            status,
            message: String::new(),
            retry_after,
        };
        let three = Some(Duration::from_secs(3));
        let backoff = |status, retry_after| error(status, retry_after).retry_backoff();
        assert_eq!(
            backoff(StatusCode::SERVICE_UNAVAILABLE, None),
            Some(Duration::ZERO)
        );
        assert_eq!(backoff(StatusCode::INTERNAL_SERVER_ERROR, three), None);
        assert_eq!(backoff(StatusCode::TOO_MANY_REQUESTS, three), three);
    }
}
