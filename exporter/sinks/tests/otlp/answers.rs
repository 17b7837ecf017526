//! The responses of a receiver, over HTTP and over gRPC.

use std::{
    convert::Infallible,
    future,
    io::Write,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};

use crate::receiver::Answer;

pub(crate) const PROTOBUF: &str = "application/x-protobuf";
pub(crate) const JSON: &str = "application/json";

/// `Export…ServiceResponse { partial_success { rejected = 3, error_message = "bad" } }`.
pub(crate) const THREE_REJECTED: &[u8] = b"\x0a\x07\x08\x03\x12\x03bad";

/// Returns a response over HTTP.
pub(crate) fn http(status: u16, content_type: &str, body: impl Into<Bytes>) -> Answer {
    http_with(status, &[("content-type", content_type)], body)
}

/// Returns a response over HTTP with headers.
pub(crate) fn http_with(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = status.try_into().unwrap();
    answer.headers_mut().extend(header_map(headers));
    answer
}

/// The head of a response and the beginning of a body that never ends.
pub(crate) fn endless(content_type: &str) -> Answer {
    with_content_type(
        content_type,
        Response::new(Endless { begun: false }.boxed_unsync()),
    )
}

struct Endless {
    begun: bool,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match mem::replace(&mut self.begun, true) {
            false => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"\0"))))),
            true => Poll::Pending,
        }
    }
}

/// Returns a response over gRPC: a message, then the status in the trailers.
pub(crate) fn grpc(message: &[u8], trailers: &[(&str, &str)]) -> Answer {
    grpc_frame(0, message, trailers)
}

/// Returns a success over gRPC with a compressed message.
pub(crate) fn grpc_gzip(message: &[u8]) -> Answer {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(message).unwrap();
    let mut answer = grpc_frame(1, &encoder.finish().unwrap(), &[("grpc-status", "0")]);
    answer
        .headers_mut()
        .insert("grpc-encoding", HeaderValue::from_static("gzip"));
    answer
}

fn grpc_frame(flag: u8, message: &[u8], trailers: &[(&str, &str)]) -> Answer {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let framed = [&[flag], &length[..], message].concat();
    let trailers = header_map(trailers);
    let body = Full::new(Bytes::from(framed)).with_trailers(future::ready(Some(Ok(trailers))));
    with_content_type("application/grpc", Response::new(body.boxed_unsync()))
}

/// Returns an error over gRPC: only trailers, as servers send them without a message.
pub(crate) fn grpc_status(code: u8, message: &str) -> Answer {
    grpc_refusal(&[("grpc-status", &code.to_string()), ("grpc-message", message)])
}

pub(crate) fn grpc_refusal(trailers: &[(&str, &str)]) -> Answer {
    let mut answer = http_with(200, trailers, "");
    answer
        .headers_mut()
        .insert("content-type", HeaderValue::from_static("application/grpc"));
    answer
}

fn with_content_type(content_type: &str, mut answer: Answer) -> Answer {
    answer
        .headers_mut()
        .insert("content-type", content_type.parse().unwrap());
    answer
}

fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    let header = |&(name, value): &(&str, &str)| {
        (
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    headers.iter().map(header).collect()
}
