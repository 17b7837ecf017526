//! gRPC: tonic frames and decompresses the messages, which stay bytes.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::body::Incoming;
use pulsetrain_net::grpc::{RawCodec, is_message_limit};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{BoxFuture, Reservation};
use tonic::{
    Status,
    body::Body,
    codec::CompressionEncoding,
    server::{Grpc, UnaryService},
};

use crate::{
    bodies::Collected,
    ingest::{IngestHandler, Message, wait_until_held},
    rejection::Rejection,
};

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
    let mut grpc = Grpc::new(RawCodec::default())
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
    if status.is_some_and(|status| is_message_limit(&status)) {
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
