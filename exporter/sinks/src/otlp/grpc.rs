//! One attempt over gRPC: tonic frames the bytes of a batch, and the status gives the outcome.
//!
//! Codes are classified by the OTLP specification, "OTLP/gRPC Response". An `Export…ServiceRequest` has the
//! same encoding as the batch.

use http::uri::PathAndQuery;
use pulsetrain_net::{
    client::{Client, GrpcClient, RequestError},
    grpc::is_message_limit,
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery};
use tonic::{Code, Status};

use super::{
    advice,
    answer::{self, BodyFormat},
    client::origin,
    config::SignalConfig,
    delay,
    peer::Peer,
};

/// The words of receivers about a request over their limit: "received message larger than max" in grpc-go,
/// "too large" and "longer than" in OTLP receivers.
const TOO_LARGE: [&str; 3] = ["larger than", "too large", "longer than"];

/// Sends one signal over gRPC.
#[derive(Clone)]
pub(super) struct GrpcExporter {
    calls: GrpcClient,
    client: Client,
    peer: Peer,
    signal: Signal,
}

impl GrpcExporter {
    pub(super) fn new(client: Client, signal: Signal, config: &SignalConfig) -> Self {
        let (to, headers) = (config.endpoint.clone(), config.headers.clone());
        let shown = format!("{} (gRPC)", origin(&config.endpoint));
        Self {
            calls: GrpcClient::new(client.clone(), to, headers, config.compression),
            client,
            peer: Peer::new(shown, config),
            signal,
        }
    }

    pub(super) async fn export(&mut self, batch: &Batch) -> Delivery {
        let (signal, length) = (self.signal, batch.bytes().len());
        if let Err(refused) = self.peer.check_size(length) {
            return refused;
        }
        match self.calls.unary(method(signal), batch.bytes().clone()).await {
            Ok(answer) => answer::success(BodyFormat::Protobuf, &answer, signal, batch.items()),
            Err(status) => outcome(&self.peer, &self.client, &status),
        }
    }
}

/// Classifies a status other than OK.
fn outcome(peer: &Peer, client: &Client, status: &Status) -> Delivery {
    if let Some(error) = advice::find::<RequestError>(status) {
        return peer.failed(error);
    }
    let what = format!(
        "gRPC status {:?}: {}",
        status.code(),
        answer::plain(status.message())
    );
    let info = delay::retry_info(status.details());
    if is_message_limit(status) || is_too_large(status) && info.is_none() {
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
        Code::Unauthenticated => peer.unauthenticated(what, client.credentials_refused()),
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

fn method(signal: Signal) -> PathAndQuery {
    PathAndQuery::from_static(match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    })
}
