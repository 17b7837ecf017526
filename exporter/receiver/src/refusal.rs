//! Why a message is not taken, and how each protocol says it: OTLP's specification, "Failures" of gRPC and HTTP.

use std::time::Duration;

use http::{Method, StatusCode};
use pulsetrain_net::Unauthenticated;
use pulsetrain_otlp::write::Buffer;
use tonic::Code;

/// How long a client is asked to wait where there is no room: sinks take batches many times a second, or not at all.
const COME_AGAIN: Duration = Duration::from_secs(1);

/// Why a message is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("the queue of a required sink is full; send it again")]
    NoRoom,
    #[error("too many messages come at one time; send it again")]
    NoPlace,
    #[error("too many connections at one time; close some, or send it again")]
    NoConnection,
    #[error("the message did not come to its end in time; send it again")]
    TooSlow,
    #[error("the receiver ends; send it again")]
    Ending,
    /// Senders that split what is too long look for "larger than max".
    #[error(
        "the message is larger than max_message, longer than {allowed} bytes; send less at a time, or raise max_message"
    )]
    TooLarge { allowed: usize },
    #[error(
        "the message is longer than the {limit} bytes that the queue of a sink holds; send less at a time, or raise limits.queue_bytes"
    )]
    TooLargeToQueue { limit: usize },
    #[error("the message is no OTLP: {0}")]
    Malformed(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0} is not a path of OTLP; send to /v1/traces, /v1/metrics or /v1/logs")]
    NoSuchPath(String),
    #[error("{0} is not a method of OTLP; use POST")]
    Method(Method),
    #[error("{0}")]
    Unauthenticated(Unauthenticated),
    #[error("the request is of a web page, of the origin {0}; set auth to receive from browsers")]
    WebPage(String),
    #[error("the message could not be read to its end: {0}")]
    Broken(String),
}

impl Refusal {
    /// The kind, for those who count.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::NoRoom => "no room",
            Self::NoPlace => "too many at one time",
            Self::NoConnection => "too many connections",
            Self::TooSlow => "too slow",
            Self::Ending => "ending",
            Self::TooLarge { .. } | Self::TooLargeToQueue { .. } => "too long",
            Self::Malformed(_) => "no OTLP",
            Self::Unsupported(_) | Self::NoSuchPath(_) | Self::Method(_) => "not supported",
            Self::Unauthenticated(_) => "not authenticated",
            Self::WebPage(_) => "of a web page",
            Self::Broken(_) => "broken off",
        }
    }

    /// After which time the same message may be taken; none where it never will.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        matches!(
            self,
            Self::NoRoom | Self::NoPlace | Self::NoConnection | Self::TooSlow | Self::Ending
        )
        .then_some(COME_AGAIN)
    }

    pub(super) fn grpc_code(&self) -> Code {
        match self {
            Self::NoRoom | Self::NoPlace | Self::TooLarge { .. } | Self::TooLargeToQueue { .. } => {
                Code::ResourceExhausted
            }
            Self::NoConnection | Self::TooSlow | Self::Ending => Code::Unavailable,
            Self::Unsupported(_) | Self::NoSuchPath(_) | Self::Method(_) => Code::Unimplemented,
            Self::Unauthenticated(_) => Code::Unauthenticated,
            Self::WebPage(_) => Code::PermissionDenied,
            Self::Malformed(_) | Self::Broken(_) => Code::InvalidArgument,
        }
    }

    pub(super) fn http_status(&self) -> StatusCode {
        match self {
            Self::NoRoom | Self::NoPlace | Self::NoConnection | Self::TooSlow | Self::Ending => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::TooLarge { .. } | Self::TooLargeToQueue { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoSuchPath(_) => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::WebPage(_) => StatusCode::FORBIDDEN,
            Self::Malformed(_) | Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// `google.rpc.Status { code = 1, message = 2, details = 3 }` as protobuf, with `RetryInfo` where it makes sense to come
    /// again: without it a client gives up on RESOURCE_EXHAUSTED.
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
    fn only_what_may_be_taken_later_is_to_come_again() {
        for (refusal, code, status, again) in [
            (Refusal::NoRoom, Code::ResourceExhausted, 503, true),
            (Refusal::Ending, Code::Unavailable, 503, true),
            (
                Refusal::TooLarge { allowed: 5 },
                Code::ResourceExhausted,
                413,
                false,
            ),
            (
                Refusal::Malformed("x".to_owned()),
                Code::InvalidArgument,
                400,
                false,
            ),
        ] {
            assert_eq!(refusal.grpc_code(), code);
            assert_eq!(refusal.http_status(), status);
            assert_eq!(refusal.retry_after().is_some(), again);
            let details = refusal.status_message();
            let has_info = memchr::memmem::find(&details, b"google.rpc.RetryInfo").is_some();
            assert_eq!(has_info, again, "{refusal}");
        }
    }
}
