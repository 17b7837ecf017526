//! One attempt over gRPC: tonic frames the bytes of a batch as they are, and the outcome comes from the status.
//!
//! Codes are classified by the OTLP specification, "OTLP/gRPC Response". An `Export…ServiceRequest` has the same bytes on
//! the wire as the batch.

mod codec;

use http::{HeaderValue, header::USER_AGENT, uri::PathAndQuery};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery};
use tonic::{Code, Request, Status, client::Grpc, codec::CompressionEncoding, metadata::MetadataMap};

use self::codec::RawCodec;
use super::{
    advice,
    answer::{self, BodyFormat},
    config::{Compression, Protocol, SignalConfig},
    delay,
    peer::{MAX_ANSWER_BYTES, Peer},
    transport::{Transport, TransportError},
};

/// How tonic's messages begin for an answer over its limit, as it came and inflated: the first one's code alone, OUT_OF_RANGE,
/// would be tried again. A receiver built on tonic says the same about a request that is too long for it, which is as final.
const TOO_LARGE: [&str; 2] = [
    "Error, decoded message length too large",
    "Error decompressing: size limit",
];

/// Sends one signal over gRPC.
pub(super) struct GrpcExporter {
    client: Grpc<Transport>,
    peer: Peer,
    signal: Signal,
    metadata: MetadataMap,
}

impl GrpcExporter {
    pub(super) fn new(transport: Transport, signal: Signal, config: &SignalConfig) -> Self {
        let client =
            Grpc::with_origin(transport, config.endpoint.clone()).max_decoding_message_size(MAX_ANSWER_BYTES);
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
                // A server on grpc-go compresses its answer as the request was.
                Compression::Gzip => client
                    .send_compressed(CompressionEncoding::Gzip)
                    .accept_compressed(CompressionEncoding::Gzip),
            },
            peer: Peer::new(shown, Protocol::Grpc, config.timeout),
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
                Err(status) => outcome(peer, &status),
            }
        };
        peer.within_timeout(attempt).await
    }
}

fn outcome(peer: &Peer, status: &Status) -> Delivery {
    if let Some(error) = advice::find::<TransportError>(status) {
        return peer.unreachable(error);
    }
    if TOO_LARGE
        .iter()
        .any(|beginning| status.message().starts_with(beginning))
    {
        return peer.answer_too_large();
    }
    let what = format!(
        "gRPC status {:?}: {}",
        status.code(),
        answer::plain(status.message())
    );
    let info = delay::retry_info(status.details());
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
        _ if retryable => peer.retry(info.and_then(|info| info.delay), what, None),
        Code::Unimplemented => peer.unsupported(what, advice::grpc_code(status.code())),
        code => peer.refused(what, advice::grpc_code(code)),
    }
}

fn method(signal: Signal) -> PathAndQuery {
    PathAndQuery::from_static(match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    })
}
