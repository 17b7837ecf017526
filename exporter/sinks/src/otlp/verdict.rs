//! The verdict of a receiver on a request: one classification for HTTP, gRPC and remote write.
//!
//! The codes follow the OTLP specification ("OTLP/gRPC Response", "OTLP/HTTP Response"). A code that the specification calls permanent
//! is the verdict on the contents only if it names them. Other codes (401, 403, 500, `INTERNAL`, ...) can be the same for every
//! request; the pipeline finds out whether they are.

use http::StatusCode;
use tonic::Code;

/// The words of receivers about a request over their limit, in lower case.
///
/// - grpc-go and grpc-core: `received message larger than max (5135035 vs. 4194304)`
/// - grpc-java: `gRPC message exceeds maximum size 4194304: 5135035`
/// - tonic: `decoded message length too large: found 5135035 bytes`
/// - Go's `MaxBytesReader`, as in the Collector: `http: request body too large`
/// - Tempo: `batch size (1052892 bytes) exceeds ingestion limit`
/// - Mimir: `message size of 5135035 bytes is larger than the allowed limit`
/// - Pulsetrain: `the message is longer than 50 bytes`
const TOO_LARGE: [&str; 6] = [
    "larger than",
    "longer than",
    "too large",
    "exceeds maximum size",
    "exceeds ingestion limit",
    "max message size",
];

/// The consequence of a response other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The receiver may accept the same request later.
    Later,
    /// The request is larger than the receiver accepts.
    TooLarge,
    /// The receiver will never accept the contents of the request.
    Contents,
    /// The receiver refuses the request for a reason outside its contents, as far as the code shows.
    Service,
    /// Like [`Service`](Self::Service): the credentials are missing or wrong.
    Credentials,
    /// Like [`Service`](Self::Service): this signal has no receiver.
    Signal,
}

impl Verdict {
    /// Classifies an HTTP status, given the text of the response.
    pub(crate) fn from_http(status: StatusCode, text: &str) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::BAD_REQUEST | StatusCode::TOO_MANY_REQUESTS if is_about_size(text) => Self::TooLarge,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Self::Later,
            StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
                Self::Contents
            }
            StatusCode::UNAUTHORIZED => Self::Credentials,
            StatusCode::NOT_FOUND => Self::Signal,
            _ => Self::Service,
        }
    }

    /// Classifies a gRPC status; `has_retry_info` if its details have `google.rpc.RetryInfo`, which invites a retry of the same
    /// request.
    pub(crate) fn from_grpc(code: Code, text: &str, has_retry_info: bool) -> Self {
        match code {
            Code::ResourceExhausted | Code::OutOfRange | Code::InvalidArgument
                if is_about_size(text) && !has_retry_info =>
            {
                Self::TooLarge
            }
            Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::Unavailable
            | Code::DataLoss => Self::Later,
            Code::InvalidArgument => Self::Contents,
            Code::Unauthenticated => Self::Credentials,
            Code::Unimplemented => Self::Signal,
            _ => Self::Service,
        }
    }
}

fn is_about_size(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    TOO_LARGE.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_http_status_has_one_verdict() {
        let verdicts = [
            (Verdict::Later, &[429, 502, 503, 504][..]),
            (Verdict::TooLarge, &[413]),
            (Verdict::Contents, &[400, 409, 422]),
            (Verdict::Credentials, &[401]),
            (Verdict::Signal, &[404]),
            (
                Verdict::Service,
                &[
                    301, 307, 402, 403, 405, 407, 408, 410, 415, 418, 431, 500, 501, 505, 507, 511,
                ],
            ),
        ];
        for (verdict, codes) in verdicts {
            for code in codes {
                let status = StatusCode::from_u16(*code).unwrap();
                assert_eq!(Verdict::from_http(status, "no"), verdict, "{code}");
            }
        }
    }

    #[test]
    fn each_grpc_code_has_one_verdict() {
        use Verdict::{Contents, Credentials, Later, Service, Signal};
        let verdicts = [
            Later,
            Service,
            Contents,
            Later,
            Service,
            Service,
            Service,
            Later,
            Service,
            Later,
            Later,
            Signal,
            Service,
            Later,
            Later,
            Credentials,
        ];
        for (code, verdict) in (1..).zip(verdicts) {
            let code = Code::from_i32(code);
            assert_eq!(Verdict::from_grpc(code, "no", false), verdict, "{code:?}");
        }
    }

    #[test]
    fn only_an_answer_that_names_the_size_is_about_the_size() {
        let large = [
            "grpc: received message larger than max (5135035 vs. 4194304)",
            "SERVER: Received message larger than max (5135035 vs. 4194304)",
            "gRPC message exceeds maximum size 4194304: 5135035",
            "Error, decoded message length too large: found 2 bytes, the limit is: 1 bytes",
            "http: request body too large",
            "RATE_LIMITED: batch size (29092 bytes) exceeds ingestion limit (local: 20000 bytes/s)",
            "the message is longer than 50 bytes",
        ];
        for text in large {
            assert_eq!(
                Verdict::from_grpc(Code::ResourceExhausted, text, false),
                Verdict::TooLarge,
                "{text}"
            );
            assert_eq!(
                Verdict::from_grpc(Code::ResourceExhausted, text, true),
                Verdict::Later,
                "{text}"
            );
            for status in [StatusCode::BAD_REQUEST, StatusCode::TOO_MANY_REQUESTS] {
                assert_eq!(Verdict::from_http(status, text), Verdict::TooLarge, "{text}");
            }
        }
        let other = [
            "RATE_LIMITED: ingestion rate limit (local: 20000 bytes/s) exceeded while adding 7660 bytes",
            "data refused due to high memory usage",
            "the server has no room",
            "quota exceeded",
        ];
        for text in other {
            assert_eq!(
                Verdict::from_grpc(Code::ResourceExhausted, text, false),
                Verdict::Later,
                "{text}"
            );
            assert_eq!(
                Verdict::from_http(StatusCode::TOO_MANY_REQUESTS, text),
                Verdict::Later,
                "{text}"
            );
        }
    }
}
