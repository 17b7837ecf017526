//! gRPC: one message a request, in one frame (gRPC over HTTP/2, "Length-Prefixed-Message"), compressed or not.
//!
//! The body is complete before it is read, so that it is in memory once, and its decompressed form is within the budget of bodies.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use pulsetrain_otlp::Signal;
use tonic::{Status, body::Body};

use crate::{
    bodies::Collected,
    decompress::Coding,
    ingest::{IngestHandler, Message, wait_until_held},
    rejection::Rejection,
};

/// The size of the header of a frame: a flag, and the length in four bytes.
const FRAME_HEADER_BYTES: usize = 5;
/// The frame of a message without fields, which acknowledges all items.
const EMPTY_MESSAGE: &[u8] = &[0; FRAME_HEADER_BYTES];
const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Returns whether a request is a gRPC request.
pub(super) fn is_grpc<B>(request: &Request<B>) -> bool {
    let content = request.headers().get(CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a gRPC request.
pub(super) async fn answer(handler: &IngestHandler, request: Request<Incoming>) -> Response<Body> {
    match export(handler, request).await {
        Ok(()) => success(),
        Err(rejection) => {
            let mut answer = rejected(handler, &rejection).into_http();
            let codings = HeaderValue::from_static("gzip, zstd");
            answer.headers_mut().insert(ACCEPT_ENCODING, codings);
            answer
        }
    }
}

async fn export(handler: &IngestHandler, request: Request<Incoming>) -> Result<(), Rejection> {
    handler.authorize(request.headers())?;
    let path = request.uri().path();
    let signal = signal(path).ok_or_else(|| Rejection::NoSuchMethod(path.to_owned()))?;
    let (head, mut body) = request.into_parts();
    let collected = handler.collect(&mut body).await?;
    let sent = handler.admitted(async {
        let Collected { bytes, permit } = message(handler, &head.headers, collected).await?;
        let sent = handler.ingest(signal, Message::Protobuf(bytes)).await;
        drop(permit);
        sent
    });
    wait_until_held(sent.await??).await
}

/// Returns the message in the frame of a body.
async fn message(
    handler: &IngestHandler,
    headers: &HeaderMap,
    body: Collected,
) -> Result<Collected, Rejection> {
    let unreadable = |why: &str| Err(Rejection::Unreadable(why.to_owned()));
    let Some(([flag, length @ ..], message)) = body.bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return unreadable("the body has no message");
    };
    if u32::from_be_bytes(*length) as usize != message.len() {
        return unreadable("the body is not one message of the length in its header");
    }
    let (flag, message) = (*flag, body.bytes.slice(FRAME_HEADER_BYTES..));
    match (flag, Coding::from_header(headers, ENCODING)?) {
        (0, _) if message.len() > handler.limits().bytes => Err(handler.too_large()),
        (0, _) => Ok(Collected {
            bytes: message,
            ..body
        }),
        (1, Coding::Identity) => {
            unreadable("the message is compressed, but grpc-encoding names no compression")
        }
        (1, coding) => handler.decompress(coding, message).await,
        _ => unreadable("the flag of the message is neither 0 nor 1"),
    }
}

fn success() -> Response<Body> {
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
    let body = Full::new(Bytes::from_static(EMPTY_MESSAGE));
    let mut answer = Response::new(Body::new(body.with_trailers(async { Some(Ok(trailers)) })));
    let content = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert(CONTENT_TYPE, content);
    answer
}

fn signal(path: &str) -> Option<Signal> {
    match path {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Some(Signal::Traces),
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Some(Signal::Metrics),
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Some(Signal::Logs),
        _ => None,
    }
}

/// Returns the gRPC status of a rejection, with `RetryInfo` if the client may retry.
pub(super) fn rejected(handler: &IngestHandler, rejection: &Rejection) -> Status {
    handler.report(rejection);
    let code = rejection.grpc_code();
    Status::with_details(code, rejection.to_string(), rejection.status_message().into())
}
