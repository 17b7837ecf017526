//! One attempt over gRPC: tonic frames the bytes of a batch, and the status gives the outcome.
//!
//! An `Export…ServiceRequest` has the same encoding as the batch.

use http::uri::PathAndQuery;
use pulsetrain_net::{
    client::{Client, GrpcClient, RequestError},
    grpc::is_message_limit,
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery};
use tonic::Status;

use super::{
    advice,
    answer::{self, BodyFormat},
    client::origin,
    config::SignalConfig,
    delay,
    peer::Peer,
    verdict::Verdict,
};

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

    pub(super) fn client(&self) -> &Client {
        &self.client
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
    let verdict = if is_message_limit(status) {
        Verdict::TooLarge
    } else {
        Verdict::from_grpc(status.code(), status.message(), info.is_some())
    };
    let advice = match verdict {
        Verdict::TooLarge => Some(advice::SMALLER),
        _ => advice::grpc_code(status.code(), status.message()),
    };
    let after = info.and_then(|info| info.delay);
    peer.delivery(verdict, what, advice, after, client)
}

fn method(signal: Signal) -> PathAndQuery {
    PathAndQuery::from_static(match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    })
}
