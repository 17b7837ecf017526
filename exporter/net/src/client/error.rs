//! Errors of a client: of its settings, and of a request without a complete response. No message repeats a secret.

use std::{borrow::Cow, error::Error, io, iter, path::PathBuf, time::Duration};

use super::ClientTlsFile;
use crate::watched_files::Described;

/// Why a client cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A PEM file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Pem {
        /// The setting that names the file.
        variable: String,
        /// The expected content.
        content: ClientTlsFile,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system has no certificate authorities, and no file with some is given.
    #[error("this system has no certificate authorities")]
    NoAuthorities,
    /// The name that the certificate of the server must have is neither a host name nor an address.
    #[error("the server name {name:?} is not a host name or an address")]
    ServerName {
        /// The name.
        name: String,
    },
    /// The certificate and the key do not belong together.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
    /// A file with a token or a password cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Secret {
        /// The setting that names the file.
        variable: String,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The user or the password of basic authentication has line breaks or control characters.
    #[error("the user or the password has line breaks or control characters")]
    UserOrPassword,
}

impl ClientError {
    /// Returns the remedy, if it is known and the message does not name it.
    pub fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Pem { content, .. } => Some(format!("give a PEM file with {content}").into()),
            Self::Secret { .. } => Some("write one line with the token or the password".into()),
            _ => None,
        }
    }
}

impl Described for ClientError {
    fn described(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self}; {remedy}"),
            None => self.to_string(),
        }
    }
}

/// Why a request has no complete response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request was not sent: its body cannot be compressed.
    #[error("not sent: compression failed: {0}")]
    Compress(#[source] io::Error),
    /// The host did not answer: no connection, or no common protocol.
    #[error("cannot reach it")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The response was not complete before the deadline.
    #[error("no complete answer within {limit:?}")]
    Timeout {
        /// The deadline.
        limit: Duration,
    },
    /// The host answered, and the connection broke before the end of the response.
    #[error("the response is truncated")]
    Truncated(#[source] Box<dyn Error + Send + Sync>),
    /// The host answered with a body that cannot be decompressed.
    #[error("the response is corrupt")]
    Corrupt(#[source] io::Error),
    /// The host answered with more bytes than the limit.
    #[error("the answer is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

impl RequestError {
    /// Returns whether the host answered, even if its response is of no use.
    pub fn has_answer(&self) -> bool {
        matches!(
            self,
            Self::Truncated(_) | Self::Corrupt(_) | Self::TooLarge { .. }
        )
    }

    /// Returns whether the same request may succeed at once: the response broke, or the connection ended between the
    /// handshake and the request. A host that rejects a client certificate may do that. Only the connection has the cause;
    /// the next attempt either fails with it or succeeds.
    pub fn may_be_retried(&self) -> bool {
        match self {
            Self::Truncated(_) | Self::Corrupt(_) => true,
            Self::Unreachable(error) => was_canceled(error),
            _ => false,
        }
    }
}

fn was_canceled(error: &(dyn Error + 'static)) -> bool {
    causes(error)
        .filter_map(|error| error.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_canceled)
}

/// Returns an error and its causes. `io::Error::source` skips the wrapped error, which is therefore read with `get_ref`.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::Empty;
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn only_a_request_that_was_never_sent_is_retried() {
        for is_taken in [false, true] {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            let (mut sender, connection) = http1::handshake(TokioIo::new(ours)).await.unwrap();
            let asked = sender.send_request(Request::new(Empty::<Bytes>::new()));
            if is_taken {
                tokio::spawn(connection);
                theirs.read_u8().await.unwrap();
            } else {
                drop(connection);
            }
            drop(theirs);
            let error = io::Error::other(asked.await.unwrap_err());
            assert_eq!(was_canceled(&error), !is_taken, "{error}");
        }
    }
}
