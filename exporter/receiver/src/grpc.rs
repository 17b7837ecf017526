//! gRPC: tonic frames and decompresses the messages, which stay bytes.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BufMut, Bytes};
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::body::Incoming;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{BoxFuture, Reservation};
use tonic::{
    Status,
    body::Body,
    codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::{Grpc, UnaryService},
};

use crate::{
    bodies::Collected,
    ingest::{IngestHandler, Message, wait_until_held},
    rejection::Rejection,
};

/// The prefixes of tonic's errors for a message over the limit, before and after decompression.
const TOO_LARGE: [&str; 2] = [
    "Error, decoded message length too large",
    "Error decompressing: size limit",
];

/// Returns whether a request is a gRPC request.
pub(super) fn is_grpc<B>(request: &Request<B>) -> bool {
    let content = request.headers().get(CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a gRPC request.
pub(super) async fn answer(handler: &IngestHandler, request: Request<Incoming>) -> Response<Body> {
    if let Err(rejection) = handler.authorize(request.headers()) {
        return rejected(handler, &rejection).into_http();
    }
    let Some(signal) = signal(request.uri().path()) else {
        let path = request.uri().path();
        return Status::unimplemented(format!(
            "{path} is not an Export method of traces, metrics or logs"
        ))
        .into_http();
    };
    let (head, mut body) = request.into_parts();
    let Collected { bytes, permit } = match handler.collect(&mut body).await {
        Ok(collected) => collected,
        Err(rejection) => return rejected(handler, &rejection).into_http(),
    };
    let request = Request::from_parts(head, Full::new(bytes));
    let sent = Arc::<Mutex<Option<Reservation>>>::default();
    let export = Export {
        handler: handler.clone(),
        signal,
        sent: Arc::clone(&sent),
    };
    let mut grpc = Grpc::new(RawCodec)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(handler.limits().bytes);
    let answer = match handler.admitted(grpc.unary(export, request)).await {
        Ok(answer) => replace_too_long_answer(handler, answer),
        Err(rejection) => rejected(handler, &rejection).into_http(),
    };
    drop(permit);
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner).take();
    match wait_until_held(sent.unwrap_or_default()).await {
        Ok(()) => answer,
        Err(rejection) => rejected(handler, &rejection).into_http(),
    }
}

/// Replaces tonic's answer to a message that is too long, because its code makes clients retry forever.
fn replace_too_long_answer(handler: &IngestHandler, answer: Response<Body>) -> Response<Body> {
    let status = Status::from_header_map(answer.headers());
    let is_too_large = |status: Status| {
        let message = status.message();
        TOO_LARGE.iter().any(|prefix| message.starts_with(prefix))
    };
    if status.is_some_and(is_too_large) {
        return rejected(handler, &handler.too_large()).into_http();
    }
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

/// One call of an Export method.
struct Export {
    handler: IngestHandler,
    signal: Signal,
    /// The reservation of the message that was sent to the pipeline, until it may be acknowledged.
    sent: Arc<Mutex<Option<Reservation>>>,
}

impl UnaryService<Bytes> for Export {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (handler, signal, sent) = (self.handler.clone(), self.signal, Arc::clone(&self.sent));
        Box::pin(async move {
            let message = Message::Protobuf(request.into_inner());
            match handler.ingest(signal, message).await {
                // A response without fields acknowledges all items.
                Ok(reserved) => {
                    *sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
                    Ok(tonic::Response::new(Bytes::new()))
                }
                Err(rejection) => Err(rejected(&handler, &rejection)),
            }
        })
    }
}

/// A codec that passes bytes through.
#[derive(Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}
