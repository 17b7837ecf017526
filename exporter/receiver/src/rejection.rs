//! Reasons to reject a message, and their status in each protocol (OTLP specification, "Failures" of gRPC and HTTP).

use std::time::Duration;

use http::{Method, StatusCode};
use pulsetrain_net::Unauthenticated;
use pulsetrain_otlp::write::Buffer;
use tonic::Code;

/// The time after which a client is asked to retry. Sinks accept batches many times a second, or not at all.
const RETRY_AFTER_WAIT: Duration = Duration::from_secs(1);

/// The reason to reject a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejection {
    #[error("the queue of a required sink is full; send it again")]
    QueueFull,
    #[error("too many concurrent messages; send it again")]
    Busy,
    #[error("too many connections; close some or send it again, or raise max_connections above {allowed}")]
    TooManyConnections { allowed: usize },
    #[error("the message was not complete in time; send it again")]
    TooSlow,
    #[error("the receiver is shutting down; send it again")]
    ShuttingDown,
    /// Clients that split long messages search for "larger than max".
    #[error(
        "the message is larger than max_message, longer than {allowed} bytes; send less at a time, or raise max_message"
    )]
    TooLarge { allowed: usize },
    #[error(
        "the message is longer than the {limit} bytes that the queue of a sink holds; send less at a time, or raise limits.queue_bytes"
    )]
    TooLargeToQueue { limit: usize },
    #[error("the message is not valid OTLP: {0}")]
    Malformed(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0} is not an OTLP path; send to /v1/traces, /v1/metrics or /v1/logs")]
    NoSuchPath(String),
    #[error("{0} is not an Export method of traces, metrics or logs")]
    NoSuchMethod(String),
    #[error("{0} is not supported; use POST")]
    Method(Method),
    #[error("{0}")]
    Unauthenticated(Unauthenticated),
    #[error("the request comes from a web page of origin {0}; set auth to receive from browsers")]
    WebPage(String),
    #[error("the message could not be read: {0}")]
    Unreadable(String),
}

impl Rejection {
    /// Returns the kind, by which reports are throttled.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::Busy => "busy",
            Self::TooManyConnections { .. } => "too many connections",
            Self::TooSlow => "too slow",
            Self::ShuttingDown => "shutting down",
            Self::TooLarge { .. } | Self::TooLargeToQueue { .. } => "too long",
            Self::Malformed(_) => "not OTLP",
            Self::Unsupported(_) | Self::NoSuchPath(_) | Self::NoSuchMethod(_) | Self::Method(_) => {
                "not supported"
            }
            Self::Unauthenticated(_) => "not authenticated",
            Self::WebPage(_) => "web page",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Returns the time after which the client may retry, or `None` if a retry is useless.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        matches!(
            self,
            Self::QueueFull
                | Self::Busy
                | Self::TooManyConnections { .. }
                | Self::TooSlow
                | Self::ShuttingDown
        )
        .then_some(RETRY_AFTER_WAIT)
    }

    pub(super) fn grpc_code(&self) -> Code {
        match self {
            Self::QueueFull | Self::Busy | Self::TooLarge { .. } | Self::TooLargeToQueue { .. } => {
                Code::ResourceExhausted
            }
            Self::TooManyConnections { .. } | Self::TooSlow | Self::ShuttingDown => Code::Unavailable,
            Self::Unsupported(_) | Self::NoSuchPath(_) | Self::NoSuchMethod(_) | Self::Method(_) => {
                Code::Unimplemented
            }
            Self::Unauthenticated(_) => Code::Unauthenticated,
            Self::WebPage(_) => Code::PermissionDenied,
            Self::Malformed(_) | Self::Unreadable(_) => Code::InvalidArgument,
        }
    }

    pub(super) fn http_status(&self) -> StatusCode {
        match self {
            Self::QueueFull
            | Self::Busy
            | Self::TooManyConnections { .. }
            | Self::TooSlow
            | Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge { .. } | Self::TooLargeToQueue { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoSuchPath(_) | Self::NoSuchMethod(_) => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::WebPage(_) => StatusCode::FORBIDDEN,
            Self::Malformed(_) | Self::Unreadable(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// Encodes `google.rpc.Status { code = 1, message = 2, details = 3 }`, with `RetryInfo` if the client may retry. Without
    /// `RetryInfo`, clients give up on RESOURCE_EXHAUSTED.
    pub(super) fn status_message(&self) -> Vec<u8> {
        let mut status = Buffer::default();
        status.uint(1, self.grpc_code() as u64);
        status.text(2, &self.to_string());
        if let Some(wait) = self.retry_after() {
            let mut duration = Buffer::default();
            duration.uint(1, wait.as_secs());
            let mut retry_info = Buffer::default();
            retry_info.delimited(1, duration.as_slice());
            let mut any = Buffer::default();
            any.text(1, "type.googleapis.com/google.rpc.RetryInfo");
            any.delimited(2, retry_info.as_slice());
            status.delimited(3, any.as_slice());
        }
        status.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_rejections_ask_for_a_retry() {
        for (rejection, code, status, is_retryable) in [
            (Rejection::QueueFull, Code::ResourceExhausted, 503, true),
            (Rejection::ShuttingDown, Code::Unavailable, 503, true),
            (
                Rejection::TooLarge { allowed: 5 },
                Code::ResourceExhausted,
                413,
                false,
            ),
            (
                Rejection::Malformed("x".to_owned()),
                Code::InvalidArgument,
                400,
                false,
            ),
        ] {
            assert_eq!(rejection.grpc_code(), code);
            assert_eq!(rejection.http_status(), status);
            assert_eq!(rejection.retry_after().is_some(), is_retryable);
            let details = rejection.status_message();
            let has_info = memchr::memmem::find(&details, b"google.rpc.RetryInfo").is_some();
            assert_eq!(has_info, is_retryable, "{rejection}");
        }
    }
}
