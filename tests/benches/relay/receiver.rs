//! The receiver behind the relays: counts what arrives, and takes its time for an answer.

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
use pulsetrain_otlp::{
    Signal,
    limits::{Limits, check},
};
use tokio::{net::TcpListener, runtime::Runtime};

/// A receiver on loopback; dropped, it stops.
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
    pub(crate) fn start(latency: Duration) -> Self {
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
        let limit = axum::extract::DefaultBodyLimit::disable();
        let router = Router::new().route("/v1/traces", post(receive)).layer(limit);
        let router = router.with_state(counts.clone());
        runtime.spawn(async move { axum::serve(listener, router).await });
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

async fn receive(State(counts): State<Counts>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    if !counts.latency.is_zero() {
        tokio::time::sleep(counts.latency).await;
    }
    let items = check(Signal::Traces, &inflated(&headers, body), &Limits::default())
        .expect("a relay sends OTLP")
        .items;
    counts.spans.fetch_add(items as usize, Ordering::Relaxed);
    counts.requests.fetch_add(1, Ordering::Relaxed);
    let answer = Response::builder().header(CONTENT_TYPE, "application/x-protobuf");
    answer
        .body(Body::empty())
        .expect("invariant: the header is valid")
}

/// Rotel 0.0.1-alpha10 sends gzip even with `--otlp-exporter-compression=none`.
fn inflated(headers: &HeaderMap, body: Bytes) -> Bytes {
    if headers
        .get(CONTENT_ENCODING)
        .is_none_or(|encoding| encoding != "gzip")
    {
        return body;
    }
    let mut inflated = Vec::new();
    GzDecoder::new(&*body)
        .read_to_end(&mut inflated)
        .expect("a body that names gzip is gzip");
    inflated.into()
}
