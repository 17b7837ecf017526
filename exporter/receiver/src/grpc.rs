//! gRPC clients: tonic frames and inflates the messages, which stay bytes.

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

use super::{
    bodies::Collected,
    inlet::{Inlet, Message, held},
    refusal::Refusal,
};

/// How tonic begins what it says of a message that is over the limit, as it comes and inflated.
const TOO_LARGE: [&str; 2] = [
    "Error, decoded message length too large",
    "Error decompressing: size limit",
];

/// Whether a request is of a gRPC client.
pub(super) fn is_grpc<B>(request: &Request<B>) -> bool {
    let content = request.headers().get(CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

/// Answers a request of a gRPC client.
pub(super) async fn answer(inlet: &Inlet, request: Request<Incoming>) -> Response<Body> {
    if let Err(refusal) = inlet.authorize(request.headers()) {
        return refused(inlet, &refusal).into_http();
    }
    let Some(signal) = signal(request.uri().path()) else {
        let path = request.uri().path();
        return Status::unimplemented(format!(
            "{path} is none of the Export methods of traces, metrics and logs"
        ))
        .into_http();
    };
    let (head, mut body) = request.into_parts();
    let Collected { bytes, permit } = match inlet.collect(&mut body).await {
        Ok(collected) => collected,
        Err(refusal) => return refused(inlet, &refusal).into_http(),
    };
    let request = Request::from_parts(head, Full::new(bytes));
    let sent = Arc::<Mutex<Option<Reservation>>>::default();
    let export = Export {
        inlet: inlet.clone(),
        signal,
        sent: Arc::clone(&sent),
    };
    let mut grpc = Grpc::new(RawCodec)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(inlet.limits().bytes);
    let answer = match inlet.admitted(grpc.unary(export, request)).await {
        Ok(answer) => amended(inlet, answer),
        Err(refusal) => refused(inlet, &refusal).into_http(),
    };
    drop(permit);
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner).take();
    match held(sent.unwrap_or_default()).await {
        Ok(()) => answer,
        Err(refusal) => refused(inlet, &refusal).into_http(),
    }
}

/// tonic's answer, but where a message is too long: its code for that asks the client to send the same again for ever.
fn amended(inlet: &Inlet, answer: Response<Body>) -> Response<Body> {
    let said = Status::from_header_map(answer.headers());
    let is_too_large = |said: Status| {
        let message = said.message();
        TOO_LARGE.iter().any(|beginning| message.starts_with(beginning))
    };
    if said.is_some_and(is_too_large) {
        return refused(inlet, &inlet.too_large()).into_http();
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

/// A refusal as gRPC says it, with how long to wait where it makes sense to come again.
pub(super) fn refused(inlet: &Inlet, refusal: &Refusal) -> Status {
    inlet.report(refusal);
    let code = refusal.grpc_code();
    Status::with_details(code, refusal.to_string(), refusal.status_message().into())
}

/// One call of an Export method.
struct Export {
    inlet: Inlet,
    signal: Signal,
    /// Where the message is left that was put through the door, until it may be acknowledged.
    sent: Arc<Mutex<Option<Reservation>>>,
}

impl UnaryService<Bytes> for Export {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (inlet, signal, sent) = (self.inlet.clone(), self.signal, Arc::clone(&self.sent));
        Box::pin(async move {
            let message = Message::Protobuf(request.into_inner());
            match inlet.take(signal, message).await {
                // An answer without fields says that everything was taken.
                Ok(reserved) => {
                    *sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
                    Ok(tonic::Response::new(Bytes::new()))
                }
                Err(refusal) => Err(refused(&inlet, &refusal)),
            }
        })
    }
}

/// A codec that codes nothing: messages are bytes already.
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
