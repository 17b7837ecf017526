//! Errors of requests to a store, with their remedies.

use std::{error::Error, fmt, time::Duration};

use http::StatusCode;
use pulsetrain_net::ClientTlsError;

use super::tls;

/// The error of a request to which a store gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The address is invalid.
    #[error("{url:?} is not the address of a store: {problem}")]
    Url {
        /// The address, without the credentials before an `@`.
        url: String,
        /// The reason and the correct form.
        problem: &'static str,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} {problem}")]
    Header {
        /// The name; the value may be a secret.
        name: String,
        /// The reason.
        problem: &'static str,
    },
    /// TLS cannot be set up: a file that cannot be used, or a system without certificate authorities.
    #[error("cannot set up TLS: {error}{advice}", error = .0, advice = tls_advice(.0))]
    Tls(#[source] ClientTlsError),
    /// The connection failed or broke.
    #[error("cannot reach {url}: {}; {}", Causes(source.as_ref()), tls::advice(source.as_ref()))]
    Unreachable {
        /// The URL of the request.
        url: String,
        /// The error of the connection.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body of an answer ended early or could not be decompressed, at every attempt.
    #[error("the answer of {url} is truncated or corrupt: {}; check the proxies between here and the store", Causes(source.as_ref()))]
    BrokenAnswer {
        /// The URL of the request.
        url: String,
        /// The error of the last read of the body.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No answer came before the deadline.
    #[error("{url} did not respond within {timeout:?}; request less, or raise --timeout")]
    Timeout {
        /// The URL of the request.
        url: String,
        /// The timeout.
        timeout: Duration,
    },
    /// The answer exceeds the size limit.
    #[error("{url} responded with more than {most} bytes; request less at a time")]
    TooLarge {
        /// The URL of the request.
        url: String,
        /// The limit in bytes.
        most: usize,
    },
    /// The store answered with an error status.
    #[error("{url} answered {status}{}{}", Detail(message), advice(*status))]
    Status {
        /// The URL of the request.
        url: String,
        /// The status.
        status: StatusCode,
        /// The message in the body.
        message: String,
    },
    /// The answer is not one that such a store sends.
    #[error(
        "{url} sent a response that {store} does not send: {problem}; check that it is the address of {store}"
    )]
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
    /// Returns whether the store does not have the requested data.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { status, .. } if *status == StatusCode::NOT_FOUND)
    }
}

/// Returns the remedy if the error itself does not name it.
fn tls_advice(error: &ClientTlsError) -> &'static str {
    match error {
        ClientTlsError::NoAuthorities => "; name a file with some with --ca",
        _ => "",
    }
}

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; set the tenant with --tenant, or credentials with --header"
        }
        StatusCode::NOT_FOUND => "; is it the base address of the store?",
        StatusCode::TOO_MANY_REQUESTS => "; lower --parallel, or retry later",
        _ => "",
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
