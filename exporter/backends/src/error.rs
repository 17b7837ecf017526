//! Errors of requests to a store, with their remedies.

use std::{borrow::Cow, error::Error, fmt, time::Duration};

use http::StatusCode;
use pulsetrain_net::ClientTlsError;

use super::tls;

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
    Tls(#[source] ClientTlsError),
    /// The connection failed or broke.
    Unreachable {
        /// The URL of the request.
        url: String,
        /// The error of the connection.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body of an answer ended early or could not be decompressed, at every attempt.
    BrokenAnswer {
        /// The URL of the request.
        url: String,
        /// The error of the last read of the body.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer came before the deadline.
    Timeout {
        /// The URL of the request.
        url: String,
        /// The timeout.
        timeout: Duration,
    },
    /// The answer exceeds the size limit.
    TooLarge {
        /// The URL of the request.
        url: String,
        /// The limit in bytes.
        most: usize,
    },
    /// The store answered with an error status.
    Status {
        /// The URL of the request.
        url: String,
        /// The status.
        status: StatusCode,
        /// The message in the body.
        message: String,
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
            Self::Tls(ClientTlsError::NoAuthorities) => "name a file with some with --ca",
            Self::Url { .. } | Self::Header { .. } | Self::Tls(_) => return None,
            Self::Unreachable { source, .. } => tls::advice(source.as_ref()),
            Self::BrokenAnswer { .. } => "check the proxies between here and the store",
            Self::Timeout { .. } => "request less, or raise --timeout",
            Self::TooLarge { .. } => "request less at a time",
            Self::Status { status, .. } => match *status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    "set the tenant with --tenant, or credentials with --header"
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
            BackendError::Unreachable { url, source } => {
                write!(f, "cannot reach {url}: {}", Causes(source.as_ref()))
            }
            BackendError::BrokenAnswer { url, source } => write!(
                f,
                "the answer of {url} is truncated or corrupt: {}",
                Causes(source.as_ref())
            ),
            BackendError::Timeout { url, timeout } => {
                write!(f, "{url} did not respond within {timeout:?}")
            }
            BackendError::TooLarge { url, most } => {
                write!(f, "{url} responded with more than {most} bytes")
            }
            BackendError::Status { url, status, message } => {
                write!(f, "{url} answered {status}{}", Detail(message))
            }
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
