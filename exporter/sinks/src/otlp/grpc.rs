//! One attempt over gRPC: tonic frames the bytes of a batch, and the status gives the outcome.
//!
//! Codes are classified by the OTLP specification, "OTLP/gRPC Response". An `Export…ServiceRequest` has the
//! same encoding as the batch.

mod codec;
mod compressed;

use http::{HeaderValue, header::USER_AGENT, uri::PathAndQuery};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery};
use tonic::{Code, Request, Status, client::Grpc, codec::CompressionEncoding, metadata::MetadataMap};

use self::{codec::RawCodec, compressed::CompressedTransport};
use super::{
    advice,
    answer::{self, BodyFormat},
    config::{Compression, SignalConfig},
    delay,
    peer::{MAX_ANSWER_BYTES, Peer},
    transport::{Transport, TransportError},
};

/// The beginnings of tonic's messages about a message over a limit, compressed and decompressed. They concern
/// a response in our client, and a request in a receiver on tonic. Their first number is the size or the
/// limit.
const TONIC_LIMIT: [&str; 2] = [
    "Error, decoded message length too large",
    "Error decompressing: size limit",
];

/// The words of receivers about a request over their limit: "received message larger than max" in grpc-go,
/// "too large" and "longer than" in OTLP receivers.
const TOO_LARGE: [&str; 3] = ["larger than", "too large", "longer than"];

/// Sends one signal over gRPC.
#[derive(Clone)]
pub(super) struct GrpcExporter {
    client: Grpc<CompressedTransport>,
    transport: Transport,
    peer: Peer,
    signal: Signal,
    metadata: MetadataMap,
}

impl GrpcExporter {
    pub(super) fn new(transport: Transport, signal: Signal, config: &SignalConfig) -> Self {
        let compressed = CompressedTransport::new(transport.clone(), config.compression);
        let client = Grpc::with_origin(compressed, config.endpoint.clone())
            .max_decoding_message_size(MAX_ANSWER_BYTES);
        let mut headers = config.headers.clone();
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(super::USER_AGENT));
        let mut request =
            Request::from_parts(MetadataMap::from_headers(headers), tonic::Extensions::new(), ());
        if let Some(limit) = config.timeout {
            request.set_timeout(limit);
        }
        let shown = format!("{} (gRPC)", super::transport::origin(&config.endpoint));
        Self {
            client: match config.compression {
                Compression::None => client,
                // A server on grpc-go compresses its response like the request.
                Compression::Gzip(_) => client.accept_compressed(CompressionEncoding::Gzip),
                Compression::Zstd(_) => client.accept_compressed(CompressionEncoding::Zstd),
            },
            transport,
            peer: Peer::new(shown, config),
            signal,
            metadata: request.metadata().clone(),
        }
    }

    pub(super) async fn export(&mut self, batch: &Batch) -> Delivery {
        if let Err(refused) = self.peer.check_size(batch.bytes().len()) {
            return refused;
        }
        let Self {
            client,
            transport,
            peer,
            signal,
            metadata,
        } = self;
        let request = Request::from_parts(metadata.clone(), tonic::Extensions::new(), batch.bytes().clone());
        let call = client.unary(
            request,
            method(*signal),
            RawCodec::for_message(batch.bytes().len()),
        );
        let attempt = async {
            match call.await {
                Ok(answer) => answer::success(BodyFormat::Protobuf, answer.get_ref(), *signal, batch.items()),
                Err(status) => outcome(peer, transport, &status, batch.bytes().len()),
            }
        };
        peer.within_timeout(attempt).await
    }
}

/// Classifies a status other than OK, for a request of this many bytes.
fn outcome(peer: &Peer, transport: &Transport, status: &Status, length: usize) -> Delivery {
    if let Some(error) = advice::find::<TransportError>(status) {
        return peer.unreachable(error);
    }
    let is_limit_of_tonic = TONIC_LIMIT
        .iter()
        .any(|beginning| status.message().starts_with(beginning));
    if is_limit_of_tonic && first_number(status.message()).is_none_or(|size| size > length) {
        return peer.answer_too_large();
    }
    let what = format!(
        "gRPC status {:?}: {}",
        status.code(),
        answer::plain(status.message())
    );
    let info = delay::retry_info(status.details());
    if is_limit_of_tonic || is_too_large(status) && info.is_none() {
        return peer.too_large(what, Some(advice::SMALLER));
    }
    let advice = advice::grpc_code(status.code(), status.message());
    let retryable = match status.code() {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => true,
        Code::ResourceExhausted => info.is_some(),
        _ => false,
    };
    match status.code() {
        Code::Unavailable => peer.retry(info.and_then(|info| info.delay), what, advice),
        _ if retryable => peer.retry(info.and_then(|info| info.delay), what, None),
        Code::Unauthenticated => match transport.credentials_refused() {
            // The batch waits for valid credentials.
            Some(advice) => peer.wait_for_credentials(what, advice),
            None => peer.denied(what, Some(advice::CREDENTIALS)),
        },
        Code::Unimplemented => peer.unsupported(what, advice),
        // The result is the same for every request of this sink.
        Code::PermissionDenied => peer.denied(what, advice),
        _ => peer.refused(what, advice),
    }
}

/// Returns whether a receiver rejects a request because of its size.
fn is_too_large(status: &Status) -> bool {
    let may_be = matches!(
        status.code(),
        Code::ResourceExhausted | Code::OutOfRange | Code::InvalidArgument
    );
    may_be && TOO_LARGE.iter().any(|words| status.message().contains(words))
}

fn first_number(text: &str) -> Option<usize> {
    let mut digits = text.split(|c: char| !c.is_ascii_digit());
    digits.find(|digits| !digits.is_empty())?.parse().ok()
}

fn method(signal: Signal) -> PathAndQuery {
    PathAndQuery::from_static(match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    })
}
