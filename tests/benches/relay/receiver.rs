//! The receiver of the relays: counts spans and requests, and responds after a latency.

use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{
        HeaderMap, Response,
        header::{CONTENT_ENCODING, CONTENT_TYPE},
    },
    routing::post,
};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
    trace_service_server::{TraceService, TraceServiceServer},
};
use pulsetrain_otlp::{
    Signal,
    limits::{Limits, check},
};
use tokio::{net::TcpListener, runtime::Runtime};
use tonic::{Request, Response as Answer, Status, codec::CompressionEncoding, transport::Server};

use crate::relays::Protocol;

/// A receiver on loopback, which stops when it is dropped.
pub(crate) struct Receiver {
    port: u16,
    counts: Counts,
    _runtime: Runtime,
}

#[derive(Clone)]
struct Counts {
    latency: Duration,
    spans: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) fn start(protocol: Protocol, latency: Duration) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let listener = runtime
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let counts = Counts {
            latency,
            spans: Arc::default(),
            requests: Arc::default(),
        };
        match protocol {
            Protocol::Http => runtime.spawn(serve_http(listener, counts.clone())),
            Protocol::Grpc => runtime.spawn(serve_grpc(listener, counts.clone())),
        };
        Self {
            port,
            counts,
            _runtime: runtime,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn spans(&self) -> usize {
        self.counts.spans.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::Relaxed)
    }
}

async fn serve_http(listener: TcpListener, counts: Counts) {
    let limit = axum::extract::DefaultBodyLimit::disable();
    let router = Router::new().route("/v1/traces", post(receive)).layer(limit);
    let served = axum::serve(listener, router.with_state(counts)).await;
    served.expect("the receiver serves");
}

async fn serve_grpc(listener: TcpListener, counts: Counts) {
    let service = TraceServiceServer::new(counts)
        .max_decoding_message_size(usize::MAX)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd);
    let listener = tonic::transport::server::TcpIncoming::from(listener);
    let served = Server::builder()
        .add_service(service)
        .serve_with_incoming(listener)
        .await;
    served.expect("the receiver serves");
}

#[tonic::async_trait]
impl TraceService for Counts {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Answer<ExportTraceServiceResponse>, Status> {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let scopes = request
            .get_ref()
            .resource_spans
            .iter()
            .flat_map(|of| &of.scope_spans);
        self.count(scopes.map(|scope| scope.spans.len()).sum());
        Ok(Answer::new(ExportTraceServiceResponse::default()))
    }
}

impl Counts {
    fn count(&self, spans: usize) {
        self.spans.fetch_add(spans, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

async fn receive(State(counts): State<Counts>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    if !counts.latency.is_zero() {
        tokio::time::sleep(counts.latency).await;
    }
    let items = check(Signal::Traces, &inflated(&headers, body), &Limits::default())
        .expect("a relay sends OTLP")
        .items;
    counts.count(items as usize);
    let answer = Response::builder().header(CONTENT_TYPE, "application/x-protobuf");
    answer
        .body(Body::empty())
        .expect("invariant: the header is valid")
}

fn inflated(headers: &HeaderMap, body: Bytes) -> Bytes {
    let encoding = headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes());
    let mut inflated = Vec::new();
    let read = match encoding {
        Some(b"gzip") => GzDecoder::new(&*body).read_to_end(&mut inflated),
        Some(b"zstd") => zstd::Decoder::new(&*body).and_then(|mut body| body.read_to_end(&mut inflated)),
        _ => return body,
    };
    read.expect("a body is compressed as it is named");
    inflated.into()
}
